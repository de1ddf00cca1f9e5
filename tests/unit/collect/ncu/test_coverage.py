"""What is said of a sampled run; the uncertainty is worked out by hand."""

import pytest
from ncu_makers import counted, in_order, report_of

from mansard.collect.ncu.coverage import coverage_notices, measure_coverage
from mansard.collect.ncu.join import JoinContext, join
from mansard.collect.ncu.plan import Plan
from mansard.collect.ncu.symbols import symbols_in
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.collect.ranks import Rank
from mansard.counters.apply import apply
from mansard.counters.table import table_for
from mansard.engine import connect
from mansard.readers.ncu_rep import read_ncu_rep


@pytest.fixture
def coverage(tmp_path):
    def look(results, launches, plan=None):
        report = report_of(tmp_path / "run.ncu-rep", *results)
        with connect(threads=1) as connection:
            capture = read_ncu_rep(report, connection, "counted", name="run.ncu-rep")
            context = JoinContext(
                rank=Rank(None, 1, "node", 4),
                symbols=symbols_in(report),
                shared_bytes=vocabulary().shared_bytes,
                plan=plan,
            )
            join(connection, capture, launches, context)
            applied = apply(table_for(chip="GH100"), capture.counters)
            return measure_coverage(connection, applied)

    return look


def test_launches_are_measured_inferred_or_uncounted(coverage):
    found = coverage(
        [counted("add"), counted("add"), counted("mul")],
        in_order(
            *({"symbol": "add"} for _ in range(5)),
            {"symbol": "mul"},
            {"symbol": "ncclDevKernel_AllReduce", "duration_us": 30},
            {"symbol": "tuned_gemm", "duration_us": 10},
        ),
    )
    assert (found.launches, found.configurations) == (8, 4)
    assert (found.measured, found.inferred, found.collectives) == (3, 3, 1)
    assert found.uncounted == {"void tuned_gemm(float *)": 1}
    # 10 us of 6 x 10 + 30 + 10.
    assert found.uncounted_share == pytest.approx(0.1)


def test_repeats_that_differ_make_the_total_uncertain(coverage):
    # Repeats of 100 and 110 bytes; the third launch has 110: total 320, uncertain by 5.
    found = coverage(
        [counted(dram=100, time_us=10), counted(dram=110, time_us=20)],
        in_order({"duration_us": 10}, {"duration_us": 20}, {"duration_us": 20}),
    )
    spread = found.spreads["bytes_dram"]
    assert spread.share == pytest.approx(5 / 320)
    assert spread.checked == 1
    assert found.spreads["flop"].share is None  # no operation at all: no share of it


def test_launches_of_other_times_are_no_repeats(coverage):
    # 100 and 900 bytes belong to groups of their own: of neither was there a second.
    found = coverage(
        [counted(dram=100), counted(dram=900)],
        in_order({"duration_us": 10}, {"duration_us": 90}, {"duration_us": 90}),
        Plan(groups=[[0], [1, 2]], picked=frozenset({0, 1})),
    )
    assert (found.groups, found.configurations) == (2, 1)
    assert found.spreads["bytes_dram"].share == 0
    assert found.spreads["bytes_dram"].checked == 0


def test_work_that_repeats_exactly_is_certain(coverage):
    found = coverage([counted(adds=64), counted(adds=64)], in_order({}, {}, {}, {}))
    assert found.spreads["flop"].share == 0
    assert found.facts["flop_uncertainty"] == "0"


def test_one_sample_says_nothing_of_the_spread(coverage):
    found = coverage([counted(adds=64, dram=10)], in_order({}, {}))
    assert found.spreads["flop"].checked == 0
    (notice,) = coverage_notices(found, sampled=True)
    assert notice.code == "sampled"
    assert "Each group was counted once; --sample 2" in notice.message
    assert "flop_uncertainty" not in found.facts


def test_times_of_a_launch_and_of_its_sample_say_how_far_totals_may_be_off(coverage):
    # 10 us against 11 and 12: 3 of 33 us.
    found = coverage(
        [counted(dram=10)],
        in_order({"duration_us": 10}, {"duration_us": 11}, {"duration_us": 12}),
    )
    assert found.time_apart == pytest.approx(3 / 33)
    (notice,) = coverage_notices(found, sampled=True)
    assert "by 9.1 % of the time" in notice.message


def test_a_launch_that_takes_much_longer_than_its_sample_is_told(coverage):
    found = coverage([counted()], in_order({"duration_us": 10}, {"duration_us": 30}))
    assert found.unlike == 1
    assert found.unlike_share == pytest.approx(0.75)
    assert {n.code for n in coverage_notices(found, sampled=True)} == {"sampled", "sampled-unlike"}


def test_what_was_not_counted_is_told_and_makes_the_run_partial(coverage):
    found = coverage([counted()], in_order({}, {"symbol": "other"}))
    notices = {n.code: n for n in coverage_notices(found, sampled=True)}
    assert notices["launches-uncounted"].partial
    assert "50.0 %" in notices["launches-uncounted"].message
    assert "void other(float *)" in notices["launches-uncounted"].message


def test_collectives_without_counters_are_expected_and_not_partial(coverage):
    found = coverage([counted()], in_order({}, {"symbol": "ncclKernel"}))
    notices = {n.code: n for n in coverage_notices(found, sampled=True)}
    assert not notices["collectives-not-counted"].partial
    assert "launches-uncounted" not in notices


def test_a_full_run_that_repeats_the_trace_has_nothing_to_say(coverage):
    found = coverage([counted(), counted()], in_order({}, {}))
    assert coverage_notices(found, sampled=False) == []


def test_a_full_run_that_does_not_repeat_the_trace_is_told(coverage):
    found = coverage([counted()], in_order({}, {}))
    assert [n.code for n in coverage_notices(found, sampled=False)] == ["runs-differ"]


def test_counted_launches_without_a_place_in_the_trace_are_known(coverage):
    assert coverage([counted(), counted()], in_order({})).only_counted == 1
