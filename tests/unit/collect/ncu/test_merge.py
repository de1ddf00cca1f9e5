"""Reports of several runs with other counters each, put beside each other."""

import pytest
import report_writer as writer
from ncu_makers import counted, report_of

from mansard.collect.ncu.merge import read_reports
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.engine import connect

SHARED = vocabulary().shared_bytes
BYTES = '"counter.lts__t_bytes.sum"'


def other_report(path, *launches):
    """A report with one counter that the first does not have: (symbol, bytes, grid) a launch."""
    results = [
        writer.result(
            name=f"void {symbol}(float *)",
            function=symbol,
            mangled=symbol,
            grid=(grid, 1, 1),
            threads=(128, 1, 1),
            metrics=[writer.metric(0, value), writer.metric(1, 0)],
        )
        for symbol, value, grid in launches
    ]
    details = writer.message((6, [writer.device(attributes=[])]), (8, writer.TOOL))
    path.write_bytes(writer.report(results, ("lts__t_bytes.sum", SHARED), details=details))


@pytest.fixture
def merged(tmp_path):
    def run(first, *others):
        report_of(tmp_path / "r.ncu-rep", *first)
        paths = [tmp_path / "r.ncu-rep"]
        for number, launches in enumerate(others, start=2):
            paths.append(tmp_path / f"r-{number}.ncu-rep")
            other_report(paths[-1], *launches)
        with connect(threads=1) as connection:
            capture, symbols = read_reports(connection, paths, "counted", SHARED)
            rows = connection.execute(
                f'SELECT "counter.dram__bytes.sum"::INT, {BYTES}::INT '
                f'FROM "{capture.table}" ORDER BY row'
            ).fetchall()
        return rows, symbols, capture.counters

    return run


def test_the_nth_launch_of_a_shape_gets_the_counters_of_the_nth(merged):
    rows, symbols, counters = merged(
        [counted("add", dram=1), counted("mul", dram=2), counted("add", dram=3)],
        [("add", 10, 4), ("add", 30, 4), ("mul", 20, 4)],
    )
    assert rows == [(1, 10), (2, 20), (3, 30)]
    assert symbols == ["add", "mul", "add"]
    assert {"dram__bytes.sum", "lts__t_bytes.sum"} <= {*counters}


def test_a_launch_that_a_later_run_does_not_hold_has_no_counters_of_it(merged):
    rows, *_ = merged([counted("add", dram=1), counted("mul", dram=2)], [("mul", 20, 4)])
    assert rows == [(1, None), (2, 20)]


def test_where_runs_hold_different_numbers_of_a_shape_nothing_is_guessed(merged):
    rows, *_ = merged(
        [counted("add", dram=1), counted("add", dram=2), counted("mul", dram=3)],
        [("add", 20, 4), ("mul", 30, 4)],
    )
    assert rows == [(1, None), (2, None), (3, 30)]


def test_other_shapes_are_other_launches(merged):
    rows, *_ = merged(
        [counted("add", dram=1), counted("add", dram=2, shape=(8, 1, 1, 128, 1, 1))],
        [("add", 80, 8), ("add", 40, 4)],
    )
    assert rows == [(1, 40), (2, 80)]


def test_a_counter_of_two_runs_is_that_of_the_first(merged):
    rows, *_ = merged([counted("add", dram=1)], [("add", 10, 4)], [("add", 99, 4)])
    assert rows == [(1, 10)]
