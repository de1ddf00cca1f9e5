"""From flat values to the table of the engine."""

import math

import numpy as np
import pytest

from mansard.model.capture import CAPTURE_COLUMNS
from mansard.readers.ncu_rep import table
from mansard.readers.ncu_rep.result import MetricValues
from mansard.readers.ncu_rep.table import counter_columns, create_table
from mansard.readers.ncu_rep.vocabulary import si_factor


def _values(*results: list[tuple[int, float]]) -> MetricValues:
    metrics = MetricValues()
    for entries in results:
        for number, value in entries:
            metrics.ids.append(number)
            metrics.values.append(value)
        metrics.counts.append(len(entries))
    return metrics


def _columns(metrics: MetricValues, names: list[str]) -> dict[str, list[float]]:
    counters = counter_columns(metrics, names, file_bytes=1000)
    return {name: column.tolist() for name, column in counters.columns.items()}


def test_values_land_in_the_row_of_their_result():
    metrics = _values([(0, 1.0), (1, 2.0)], [], [(1, 3.0)])
    columns = _columns(metrics, ["a__x.sum", "b__x.sum"])
    assert columns["a__x.sum"][0] == 1.0
    assert math.isnan(columns["a__x.sum"][1])
    assert math.isnan(columns["a__x.sum"][2])
    assert columns["b__x.sum"][0] == 2.0
    assert columns["b__x.sum"][2] == 3.0


def test_a_metric_that_is_listed_twice_keeps_its_first_value():
    assert _columns(_values([(0, 1.0), (0, 9.0)]), ["a"]) == {"a": [1.0]}
    # The same name at two places of the table of names is one metric too.
    assert _columns(_values([(1, 1.0), (0, 9.0)]), ["a", "a"]) == {"a": [1.0]}


def test_a_name_that_no_value_uses_makes_no_column():
    assert _columns(_values([(0, 1.0)]), ["a", "CachePreferNone"]) == {"a": [1.0]}


def test_values_without_a_usable_name_are_counted():
    metrics = _values([(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0), (4_000_000_000, 5.0)])
    names = ["good", "", "new\nline", "x" * 513]
    counters = counter_columns(metrics, names, file_bytes=1000)
    assert list(counters.columns) == ["good"]
    assert counters.nameless == 4


def test_names_that_differ_by_case_only_do_not_meet_in_the_engine():
    counters = counter_columns(_values([(0, 1.0), (1, 2.0)]), ["a__X", "a__x"], file_bytes=1000)
    assert len(counters.columns) == 1
    assert counters.nameless == 1


def test_results_without_any_value_make_no_columns():
    assert _columns(_values([], []), []) == {}


def test_rare_counters_are_left_out_before_the_table_outgrows_the_file(monkeypatch):
    monkeypatch.setattr(table, "_SMALL_TABLE", 30)
    metrics = _values(*([(0, 1.0), (row + 1, 2.0)] for row in range(10)))
    names = ["common", *(f"rare{row}" for row in range(10))]
    counters = counter_columns(metrics, names, file_bytes=1)
    # 30 cells in 10 rows leave 3 columns.
    assert len(counters.columns) == 3
    assert "common" in counters.columns
    assert counters.left_out == 8


@pytest.mark.parametrize(
    ("metric", "factor"),
    [
        ("gpu__time_duration.sum", 1e-9),
        ("gpu__time_duration.avg", 1e-9),
        ("gpu__time_active.max", 1e-9),
        ("device__attribute_clock_rate", 1e3),
        ("device__attribute_max_mem_frequency_khz", 1e3),
        ("dram__bytes.sum", 1.0),
        ("dram__bytes.sum.per_second", 1.0),
        ("sm__cycles_elapsed.avg.per_second", 1.0),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
        ("gpu__time_duration.sum.pct_of_peak_sustained_elapsed", 1.0),
        ("launch__block_size", 1.0),
    ],
)
def test_values_are_brought_to_si_base_units_by_name(metric, factor):
    assert si_factor(metric) == factor


def test_the_table_has_the_columns_and_types_of_a_capture(engine):
    create_table(
        engine,
        'odd "name"',
        launches={"row": [0, 1], "name": ["k", None], "device": [3, None], "stream": [2**63, 0]},
        counters={"x.sum": np.array([1.5, np.nan]), 'quoted "y"': np.array([1.0, 2.0])},
    )
    described = engine.execute('DESCRIBE "odd ""name"""').fetchall()
    expected = [*CAPTURE_COLUMNS, ("counter.x.sum", "DOUBLE"), ('counter.quoted "y"', "DOUBLE")]
    assert [(row[0], row[1]) for row in described] == expected
    rows = engine.execute(
        'SELECT "row", name, device, stream, rank, "counter.x.sum" FROM "odd ""name""" ORDER BY 1'
    ).fetchall()
    # A stream beyond the signed range is unknown; NaN is null; zero stays zero.
    assert rows == [(0, "k", 3, None, None, 1.5), (1, None, None, 0, None, None)]


def test_a_text_known_for_one_of_many_launches_is_kept(engine):
    phases = [None] * 5000
    phases[4321] = "the only one"
    create_table(
        engine, "sparse", launches={"row": list(range(5000)), "phase": phases}, counters={}
    )
    found = engine.execute("SELECT row, phase FROM sparse WHERE phase IS NOT NULL").fetchall()
    assert found == [(4321, "the only one")]


def test_names_with_any_character_survive(engine):
    names = ["a\0b", "'; DROP TABLE x; --", "ядро", "\ud7ff", "x" * 100_000]
    create_table(engine, "names", launches={"row": range(5), "name": names}, counters={})
    found = engine.execute("SELECT name FROM names ORDER BY row").fetchall()
    assert [row[0] for row in found] == names
