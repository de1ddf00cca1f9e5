"""Which counters of a file some table has a use for."""

import pytest

from mansard.counters.apply import apply
from mansard.counters.derive import derive
from mansard.counters.table import load_table, table_names
from mansard.counters.useful import is_useful


@pytest.mark.parametrize("name", table_names())
def test_every_counter_of_every_table_is_useful(name):
    table = load_table(name)
    asked = {c for ways in table.quantities.values() for way in ways for c in way.formula.counters}
    assert [counter for counter in (*asked, *table.evidence) if not is_useful(counter)] == []


@pytest.mark.parametrize(
    "counter",
    [
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "dram__bytes.sum.per_second",
        "l1tex__cycles_elapsed.avg",
        "lts__cycles_elapsed.avg.per_second",
    ],
)
def test_what_a_count_can_be_rebuilt_from_is_useful(counter):
    assert is_useful(counter)


def test_what_no_table_asks_for_is_not():
    assert not is_useful("smsp__warps_eligible.avg.per_cycle_active")
    assert not is_useful("no such counter")


@pytest.mark.parametrize("name", table_names())
def test_leaving_out_what_is_not_useful_changes_no_column(name):
    table = load_table(name)
    asked = {c for ways in table.quantities.values() for way in ways for c in way.formula.counters}
    # Rates in place of counts: the way of the sections, where most has to be rebuilt.
    rates = {
        f"{counter}.{rate}" for counter in asked for rate in ("per_second", "per_cycle_elapsed")
    }
    units = {counter.partition("__")[0] for counter in asked}
    clocks = {f"{unit}__cycles_elapsed.avg{form}" for unit in units for form in ("", ".per_second")}
    every = {*rates, *clocks, "gpu__time_duration.sum", "smsp__warps_eligible.avg", "x__y.sum"}
    useful = {counter for counter in every if is_useful(counter)}
    assert apply(table, useful) == apply(table, every)
    assert every - useful >= {"smsp__warps_eligible.avg", "x__y.sum"}


def test_a_clock_that_a_rate_is_rebuilt_with_is_among_its_origins():
    rebuilt = derive(
        "dram__bytes.sum", {"dram__bytes.sum.per_cycle_elapsed", "dram__cycles_elapsed.avg"}
    )
    assert rebuilt is not None
    assert all(is_useful(counter) for counter in rebuilt.formula.counters)
