"""Counted launches and traced launches put together; expected values are worked out by hand."""

import pytest
from ncu_makers import counted, in_order, report_of, traced

from mansard.collect.ncu.join import JoinContext, join
from mansard.collect.ncu.plan import Plan
from mansard.collect.ncu.symbols import symbols_in
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.collect.ranks import Rank
from mansard.engine import connect
from mansard.readers.ncu_rep import read_ncu_rep

RANK = Rank(None, 1, "node", 4)


@pytest.fixture
def joined(tmp_path):
    """Join results with launches: rows as (name, counters_from, dram bytes, time in us)."""

    def run(results, launches, *, symbols=None, fields="", plan=None):
        report = report_of(tmp_path / "run.ncu-rep", *results)
        with connect(threads=1) as connection:
            capture = read_ncu_rep(report, connection, "counted", name="run.ncu-rep")
            context = JoinContext(
                rank=RANK,
                symbols=symbols_in(report) if symbols is None else symbols,
                shared_bytes=vocabulary().shared_bytes,
                work_columns=("flop_vector_fp32",),
                plan=plan,
            )
            result = join(connection, capture, launches, context)
            wanted = fields or (
                'counters_from, "counter.dram__bytes.sum"::BIGINT, round(duration_s * 1e6)::INT'
            )
            return connection.execute(
                f"SELECT {wanted} FROM {result.table} ORDER BY row"
            ).fetchall()

    return run


def test_the_nth_launch_of_a_shape_is_the_nth_in_the_other_run(joined):
    rows = joined(
        [counted("add", dram=100), counted("mul", dram=7), counted("add", dram=300)],
        in_order(
            {"symbol": "add", "duration_us": 1},
            {"symbol": "mul", "duration_us": 2},
            {"symbol": "add", "duration_us": 3},
        ),
    )
    assert rows == [("measured", 100, 1), ("measured", 7, 2), ("measured", 300, 3)]


def test_another_launch_takes_the_counters_of_the_one_whose_time_is_nearest(joined):
    rows = joined(
        [counted(dram=100), counted(dram=900)],
        in_order(
            {"duration_us": 10},
            {"duration_us": 90},
            {"duration_us": 80},
            {"duration_us": 12},
        ),
    )
    assert rows == [
        ("measured", 100, 10),
        ("measured", 900, 90),
        ("inferred", 900, 80),
        ("inferred", 100, 12),
    ]


def test_time_tells_more_of_the_work_than_the_phase(joined):
    rows = joined(
        [counted(dram=100), counted(dram=200)],
        in_order(
            {"phase": "forward", "duration_us": 10},
            {"phase": "backward", "duration_us": 50},
            {"phase": "backward", "duration_us": 10},
        ),
    )
    assert rows[2] == ("inferred", 100, 10)


def test_of_two_of_the_same_time_the_one_of_the_same_phase_is_taken(joined):
    rows = joined(
        [counted(dram=100), counted(dram=200)],
        in_order({"phase": "forward"}, {"phase": "backward"}, {"phase": "backward"}),
    )
    assert rows[2] == ("inferred", 200, 10)


def test_counted_launches_take_the_places_of_those_that_were_picked(joined):
    launches = in_order(
        {"duration_us": 90},
        {"duration_us": 10},
        {"symbol": "mul"},
        {"duration_us": 91},
        {"duration_us": 11},
    )
    rows = joined(
        [counted("mul", dram=7), counted("add", dram=900), counted("add", dram=100)],
        launches,
        plan=Plan(groups=[[0, 3], [1, 4], [2]], picked=frozenset({2, 3, 4})),
    )
    assert rows == [
        ("inferred", 900, 90),
        ("inferred", 100, 10),
        ("measured", 7, 10),
        ("measured", 900, 91),
        ("measured", 100, 11),
    ]


def test_shared_memory_tells_launches_of_one_shape_apart(joined):
    """ncu counts the first of each; in launch order they are the first and the third."""
    rows = joined(
        [counted(dram=100, shared=0), counted(dram=500, shared=4096)],
        in_order({}, {}, {"shared_bytes": 4096}, {"shared_bytes": 4096}),
    )
    assert [row[:2] for row in rows] == [
        ("measured", 100),
        ("inferred", 100),
        ("measured", 500),
        ("inferred", 500),
    ]


def test_shared_memory_that_the_trace_does_not_know_spoils_nothing(joined):
    rows = joined([counted(dram=100, shared=4096)], in_order({"shared_bytes": None}))
    assert rows == [("inferred", 100, 10)]


def test_a_kernel_that_was_not_counted_has_times_and_no_counters(joined):
    rows = joined([counted("add", dram=1)], in_order({"symbol": "ncclKernel", "duration_us": 5}))
    assert rows == [(None, None, 5)]


def test_another_grid_is_another_configuration(joined):
    rows = joined(
        [counted(dram=100, shape=(4, 1, 1, 128, 1, 1))],
        in_order({}, {"shape": (8, 1, 1, 128, 1, 1)}),
    )
    assert rows == [("measured", 100, 10), (None, None, 10)]


def test_counters_of_zero_are_zero_and_not_unknown(joined):
    assert joined([counted(dram=0)], in_order({}, {}))[1] == ("inferred", 0, 10)


def test_processes_are_paired_in_their_order(joined):
    rows = joined(
        [counted(dram=100)],
        [traced(process=11, number=0), traced(process=12, number=1)],
    )
    assert [row[:2] for row in rows] == [("measured", 100), ("inferred", 100)]


def test_copies_are_rows_without_work_and_with_the_bytes_of_the_link(joined):
    copy = {"kind": "memcpy", "symbol": "", "name": "memcpy HtoD", "shape": None}
    rows = joined(
        [counted(dram=100)],
        [traced(number=0), traced(number=1, bytes_moved=4096, shared_bytes=None, **copy)],
        fields="kind, name, grid_x, flop_vector_fp32, bytes_link, counters_from",
    )
    assert rows == [
        ("kernel", "void add(float *)", 4, None, None, "measured"),
        ("memcpy", "memcpy HtoD", None, 0.0, 4096.0, None),
    ]


def test_a_trace_without_symbols_is_matched_by_the_names_of_ncu(joined):
    rows = joined([counted("add", dram=9)], [traced("", name="void add(float *)")])
    assert rows[0][:2] == ("measured", 9)


def test_starts_count_from_the_first_launch(joined):
    rows = joined([counted()], in_order({}, {}), fields="round(start_s * 1e6)::INT")
    assert rows == [(0,), (100,)]


def test_ranges_and_phases_come_from_the_trace(joined):
    rows = joined(
        [counted()],
        [traced(ranges=("step", "forward"), phase="step")],
        fields='phase, "range", device, stream, process',
    )
    assert rows == [("step", "step/forward", 0, 7, 77)]
