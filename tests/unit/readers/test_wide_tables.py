"""Files with thousands of counters: read as fast as others, and never more than memory holds."""

import contextlib
import io
import sys
from pathlib import Path

import pytest

from mansard import readers
from mansard.engine import connect, room_for
from mansard.readers import ImportOptions
from mansard.readers.ncu_csv import read_ncu_csv
from mansard.readers.ncu_rep import read_ncu_rep
from mansard.readers.wanted import MOST_COUNTERS, counter_filter, first_counters

WRITER = Path(__file__).parents[2] / "data" / "ncu_rep"
if str(WRITER) not in sys.path:
    sys.path.append(str(WRITER))

import report_writer  # noqa: E402

pytestmark = pytest.mark.slow

TIME, DRAM = "gpu__time_duration.sum", "dram__bytes.sum"
LAUNCH = ("ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "CC")


def _row(fields):
    return ",".join(f'"{field}"' for field in fields) + "\n"


def _wide_page(metrics, *launches):
    """Launches of a raw page: a value of each metric; ``metrics`` are (name, unit)."""
    launch = ("4", "k", "(32, 1, 1)", "(8, 1, 1)", "9.0")
    head = _row((*LAUNCH, *(name for name, _ in metrics)))
    units = _row((*("" for _ in LAUNCH), *(unit for _, unit in metrics)))
    rows = (_row((number, *launch, *values)) for number, values in enumerate(launches))
    return head + units + "".join(rows)


def _many(count):
    """The metrics that matter, behind so many others."""
    return [*((f"sm__other_{n}.sum", "inst") for n in range(count)), (TIME, "ns"), (DRAM, "byte")]


def _imported(tmp_path, content, keep=(), name="wide.csv"):
    source = tmp_path / name
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    output = tmp_path / "run.parquet"
    run = readers.import_files([source], output, options=ImportOptions(keep=keep))
    with connect(threads=1) as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{output}')")
        names = [entry[0] for entry in found.description]
        return run, [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _codes(run):
    return {notice.code for notice in run.all_notices}


def test_a_page_of_ten_thousand_columns_is_read_whole_where_it_matters(tmp_path):
    # It brought the engine down with a division by zero.
    page = _wide_page(_many(10_000), [*["5"] * 10_000, "1,500", "64"])
    run, (launch,) = _imported(tmp_path, page)
    assert (launch["duration_s"], launch["bytes_dram"]) == (1.5e-6, 64.0)
    assert "counters-left-out" not in _codes(run)
    assert not run.partial


def test_a_page_of_every_metric_of_every_section_fits_into_the_memory_limit(tmp_path):
    # 2500 metrics of 300 launches took more than the limit while the table was filled.
    page = _wide_page(_many(2_500), *[[*["5"] * 2_500, "1,500", "64"]] * 300)
    _, launches = _imported(tmp_path, page)
    assert len(launches) == 300


def test_a_kept_counter_of_a_wide_page_is_kept(tmp_path):
    page = _wide_page(_many(6_000), [*map(str, range(6_000)), "1,500", "64"])
    _, (launch,) = _imported(tmp_path, page, keep=("sm__other_5999.*",))
    assert launch["counter.sm__other_5999.sum"] == 5999.0
    assert "counter.sm__other_0.sum" not in launch


def test_more_kept_counters_than_can_be_read_are_said_and_none_that_matters_goes(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("mansard.readers.wanted.MOST_COUNTERS", 20)
    page = _wide_page(_many(30), [*["5"] * 30, "1,500", "64"])
    run, (launch,) = _imported(tmp_path, page, keep=("*",))
    assert (launch["duration_s"], launch["bytes_dram"]) == (1.5e-6, 64.0)
    assert sum(name.startswith("counter.") for name in launch) == 20
    assert "counters-left-out" in _codes(run)
    assert run.partial


def test_a_long_page_of_many_metrics_is_read_where_it_matters(tmp_path):
    head = _row((*LAUNCH, "Section Name", "Metric Name", "Metric Unit", "Metric Value"))
    launch = ("0", "4", "k", "(32, 1, 1)", "(8, 1, 1)", "9.0", "Command line profiler metrics")
    rows = (_row((*launch, name, unit, "1,500")) for name, unit in _many(10_000))
    run, (found,) = _imported(tmp_path, head + "".join(rows))
    assert (found["duration_s"], found["bytes_dram"]) == (1.5e-6, 1500.0)
    assert not run.partial


def test_the_decimal_sign_is_told_by_a_counter_that_is_not_read(tmp_path):
    # 117,344 alone may be a fraction or a thousand; 65,77 of another metric can be only one.
    metrics = [("sm__other.avg", "inst"), (TIME, "ns"), (DRAM, "byte")]
    _, (launch,) = _imported(tmp_path, _wide_page(metrics, ["65,77", "117,344", "64"]))
    assert launch["duration_s"] == pytest.approx(117.344e-9)


def test_the_decimal_sign_is_told_by_a_far_column_too(tmp_path):
    metrics = _many(1_500)
    values = [*["5"] * 1_499, "65,77", "117,344", "64"]
    _, (launch,) = _imported(tmp_path, _wide_page(metrics, values))
    assert launch["duration_s"] == pytest.approx(117.344e-9)


def test_a_report_of_many_counters_is_read_where_it_matters(tmp_path):
    names = [name for name, _ in _many(8_000)]
    metrics = [report_writer.metric(place, 1_500) for place in range(len(names))]
    data = report_writer.report([report_writer.result(metrics=metrics)], names)
    run, (launch,) = _imported(tmp_path, data, name="wide.ncu-rep")
    assert (launch["duration_s"], launch["bytes_dram"]) == (1.5e-6, 1500.0)
    assert "counters-left-out" not in _codes(run)


def test_readers_take_every_counter_unless_told_otherwise():
    names = [TIME, "sm__other.sum"]
    data = report_writer.report(
        [report_writer.result(metrics=[report_writer.metric(n, 1) for n in range(2)])], names
    )
    page = _wide_page([(name, "inst") for name in names], ["1", "2"]).encode()
    with connect(threads=1) as connection:
        report = read_ncu_rep(io.BytesIO(data), connection, "report", name="x")
        text = read_ncu_csv(io.BytesIO(page), connection, "page", name="x")
    assert set(report.counters) == set(text.counters) == set(names)


def test_a_pattern_keeps_what_no_table_has_a_use_for():
    is_wanted = counter_filter(("launch__*",))
    assert is_wanted("launch__grid_size")
    assert is_wanted(DRAM)
    assert not is_wanted("sm__other.sum")
    assert not counter_filter(())("sm__other.sum")


def test_useful_counters_come_before_others_and_the_order_stays():
    others = [f"sm__other_{n}.sum" for n in range(MOST_COUNTERS)]
    chosen = first_counters([*others, TIME, DRAM])
    assert len(chosen) == MOST_COUNTERS
    assert chosen == [*others[: MOST_COUNTERS - 2], TIME, DRAM]


def _settings(connection):
    return connection.execute(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    ).fetchone()


def test_a_table_of_usual_width_is_made_with_the_usual_settings():
    with connect(threads=2) as connection:
        before = _settings(connection)
        with room_for(connection, columns=60, rows=100_000):
            assert _settings(connection) == before


def test_a_wide_table_is_made_by_fewer_threads():
    with connect(threads=8) as connection:
        before = _settings(connection)
        with room_for(connection, columns=1_000, rows=10):
            # 1000 columns of 320 KiB are 312 MiB: two threads fit into 768 MB.
            assert _settings(connection)[0] == 2
        assert _settings(connection) == before


def test_the_memory_limit_is_raised_where_not_even_one_thread_fits_and_is_as_before_after():
    with connect(threads=8) as connection:
        before = _settings(connection)
        for _ in range(3):
            with room_for(connection, columns=5_000, rows=9):
                assert _settings(connection) == (1, "1.5 GiB")
            assert _settings(connection) == before


def test_the_settings_are_as_before_after_a_failure():
    with connect(threads=8) as connection:
        before = _settings(connection)
        with contextlib.suppress(KeyError), room_for(connection, columns=5_000, rows=9):
            raise KeyError
        assert _settings(connection) == before
