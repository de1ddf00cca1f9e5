"""Recorded ranges and graphs: the report gives what ncu prints of it, number by number."""

import csv
import gzip

import pytest
import report_writer as w

import mansard
from mansard.engine import connect, parquet
from mansard.readers.ncu_csv import read_ncu_csv
from mansard.readers.ncu_rep import read_ncu_rep
from mansard.units import unit_factor

KINDS = ("kind-range", "kind-app-range", "kind-graph", "kind-kernels", "graph-whole")
CLEARED = ("gpu__time_duration.", "sm__cycles_elapsed.")


def rows_of(engine, table):
    found = engine.execute(f"SELECT * FROM {table} ORDER BY row")
    names = [entry[0] for entry in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def printed(path):
    """What ncu prints of each result: numbers in SI units, by metric; all else is text."""
    with gzip.open(path, "rt", newline="") as file:
        titles, units, *results = csv.reader(file)
    found = []
    for result in results:
        numbers = {}
        for title, unit, text in zip(titles, units, result, strict=True):
            try:
                numbers[title] = float(text.replace(",", "")) * unit_factor(unit)[0]
            except ValueError:
                continue
        found.append(numbers)
    return found


@pytest.fixture(scope="module")
def both(data_folder):
    """Reads a recorded profile as a report and as a page: captures and rows."""

    def read(kind):
        with connect(threads=1) as engine:
            report = read_ncu_rep(
                data_folder / f"{kind}.ncu-rep.gz", engine, "report", name="k.ncu-rep"
            )
            page = read_ncu_csv(data_folder / f"{kind}.raw.csv.gz", engine, "page", name="k.csv")
            return report, rows_of(engine, "report"), page, rows_of(engine, "page")

    return read


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_that_ncu_prints_of_a_result_is_read(both, data_folder, kind):
    capture, rows, *_ = both(kind)
    results = printed(data_folder / f"{kind}.raw.csv.gz")
    assert len(rows) == len(results)
    # Attributes of the GPU are beside the results, and in base units.
    known = set(capture.counters)
    for row, result in zip(rows, results, strict=True):
        names = {name for name in result if "__" in name and "device__" not in name}
        assert names <= known
        # Of these alone: bytes, work and time of the kinds, and how they were launched.
        assert len(names) > 90
        assert {name for name in known if row[f"counter.{name}"] is not None} <= set(result)
        for name in names:
            value = row[f"counter.{name}"]
            if value is None:
                assert kind != "kind-kernels"
                assert name.startswith(CLEARED)
            else:
                # Six decimals of a unit that ncu chose, two of a count that is no whole number.
                assert value == pytest.approx(result[name], rel=2e-6, abs=0.0051), name


@pytest.mark.parametrize("kind", KINDS)
def test_report_and_page_give_the_same_rows(both, kind):
    _, rows, _, lines = both(kind)
    columns = (
        "row",
        "kind",
        "name",
        "device",
        "stream",
        "process",
        "grid_x",
        "block_x",
        "phase",
        "range",
    )
    for row, line in zip(rows, lines, strict=True):
        assert {name: row[name] for name in columns} == {name: line[name] for name in columns}


@pytest.mark.parametrize(
    ("kind", "kinds", "sectors"),
    [
        # Two kernels of 128 blocks of 128 threads write 4 bytes a thread, in sectors of 32 bytes.
        ("kind-range", ["range"], [4096]),
        ("kind-app-range", ["range"], [4096]),
        ("kind-kernels", ["kernel", "kernel"], [2048, 2048]),
        # Three kernels of 64 such blocks are a graph; two of 128 are beside it.
        ("kind-graph", ["graph", "graph", "kernel", "kernel"], [3072, 3072, 2048, 2048]),
    ],
)
def test_the_known_traffic_is_there(both, kind, kinds, sectors):
    _, rows, _, lines = both(kind)
    for found in (rows, lines):
        assert [row["kind"] for row in found] == kinds
        assert [row["counter.lts__t_sectors_srcunit_tex.sum"] for row in found] == sectors


def test_the_tensor_work_of_a_whole_graph_is_that_of_its_product(both):
    _, rows, _, lines = both("graph-whole")
    for found in (rows, lines):
        assert [row["kind"] for row in found] == ["graph"] * 4
        counter = "counter.sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"
        work = [row[counter] for row in found]
        assert work == [2 * 2048**3] * 4


@pytest.mark.parametrize("kind", ["kind-range", "kind-app-range"])
def test_short_times_of_ranges_are_unknown_and_said(both, kind):
    report, rows, page, lines = both(kind)
    for capture, (row,) in ((report, rows), (page, lines)):
        assert row["counter.gpu__time_duration.sum"] is None
        assert row["counter.sm__cycles_elapsed.avg.per_second"] is None
        (said,) = [n for n in capture.provenance.notices if n.code == "range-time-unknown"]
        assert "1 row below 6.00 ms for ranges and graphs as a whole, which" in said.message


def test_kernels_beside_whole_graphs_have_no_time_either(both):
    report, rows, page, lines = both("kind-graph")
    for capture, found in ((report, rows), (page, lines)):
        for counter in ("gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"):
            assert [row[f"counter.{counter}"] for row in found] == [None] * 4
        (said,) = [n for n in capture.provenance.notices if n.code == "range-time-unknown"]
        assert "4 rows below 6.00 ms for ranges and graphs as a whole, and kernels" in said.message


def test_a_graph_has_the_stream_that_it_was_launched_into_and_no_grid(both):
    for kind, stream in (("kind-graph", 13), ("graph-whole", 7)):
        _, rows, _, lines = both(kind)
        for row in (rows[0], lines[0]):
            assert (row["stream"], row["grid_x"], row["block_x"]) == (stream, None, None)
    assert both("kind-range")[1][0]["stream"] is None


def test_times_of_kernels_are_kept_as_they_are(both):
    for _, rows in (both("kind-kernels")[:2], both("kind-kernels")[2:]):
        assert [row["counter.gpu__time_duration.sum"] for row in rows] == pytest.approx(
            [1.984e-6] * 2
        )
        clocks = [row["counter.sm__cycles_elapsed.avg.per_second"] for row in rows]
        assert clocks == pytest.approx([1.882209e9, 1.968490e9], rel=1e-6)


@pytest.mark.parametrize("suffix", ["ncu-rep", "raw.csv"])
def test_a_range_is_a_run_with_traffic_and_without_time(data_folder, tmp_path, suffix):
    path = tmp_path / f"kind-range.{suffix}"
    path.write_bytes(gzip.decompress((data_folder / f"kind-range.{suffix}.gz").read_bytes()))
    run = mansard.open(path)
    with connect(threads=1) as connection:
        rows = connection.execute(
            "SELECT kind, duration_s, sm_clock_hz, bytes_l1, bytes_l2, bytes_dram "
            f"FROM {parquet(run.files)}"
        ).fetchall()
    assert rows == [("range", None, None, 131072, 131072, 512)]
    assert "range-time-unknown" in {notice.code for notice in run.all_notices}


NAMES = ("gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second", "dram__bytes.sum")
DEVICE = w.device(attributes=[("device__attribute_clock_rate", 1_980_000)])


def report(*ranges, results=(), graphs=(), command="ncu --replay-mode range app"):
    details = w.message((6, [DEVICE]), (8, w.TOOL), (11, command))
    block = w.block(results=results, ranges=ranges, graphs=graphs, names=NAMES, details=details)
    return w.header() + block


def metrics(time_ns, clock_hz, dram=7):
    return [w.metric(0, time_ns), w.metric(1, float(clock_hz)), w.metric(2, dram)]


def test_long_times_of_ranges_are_kept_and_their_gaps_said(opened):
    capture, rows = opened(
        report(w.range_result(metrics(6_000_000, 1.9e9)), w.range_result(metrics(5_999_999, 1.9e9)))
    )
    times = [row["counter.gpu__time_duration.sum"] for row in rows]
    assert times == [pytest.approx(6e-3), None]
    assert [row["counter.dram__bytes.sum"] for row in rows] == [7, 7]
    codes = [notice.code for notice in capture.provenance.notices]
    assert codes == ["not-kernels", "range-time-unknown", "range-time"]


@pytest.mark.parametrize(
    ("clock_hz", "codes"), [(1.98e9, []), (2.01e9, []), (2.03e9, ["clock-above-highest"])]
)
def test_a_clock_above_the_highest_of_the_gpu_is_said(opened, clock_hz, codes):
    # Two percent are rounding: time is counted in steps of 32 ns.
    capture, (row,) = opened(
        report(results=[w.result(metrics=metrics(5000, clock_hz))], command="ncu app")
    )
    # GPUs of desktops do run above it, so the value is kept.
    assert row["counter.sm__cycles_elapsed.avg.per_second"] == clock_hz
    assert row["counter.gpu__time_duration.sum"] == pytest.approx(5e-6)
    assert [notice.code for notice in capture.provenance.notices] == codes


def test_a_range_is_called_so_and_lies_in_the_ranges_around_its_start(opened):
    state = w.nvtx_state(pushed=[(1234, 0, [("step", 1)])])
    _, (row,) = opened(report(w.range_result(metrics(7_000_000, 1.9e9), nvtx=state)))
    assert (row["kind"], row["name"], row["phase"]) == ("range", "range", "step")
    assert row["process"] == 1234
    assert row["grid_x"] is row["block_x"] is row["stream"] is None


def test_a_graph_is_known_by_its_list_where_the_command_line_does_not_say_it(opened):
    """A configuration file may ask for whole graphs as well."""
    state = w.nvtx_state(pushed=[(1234, 0, [("step", 1)])])
    graph = w.graph_result(metrics(200_000, 2.9e9), nvtx=state, stream=9)
    beside = w.result(metrics=metrics(210_000, 1.7e9))
    capture, rows = opened(report(results=[beside], graphs=[graph], command="ncu app"))
    # Entries are in the order of the lists.
    assert [(row["kind"], row["phase"], row["stream"]) for row in rows] == [
        ("kernel", None, 7),
        ("graph", "step", 9),
    ]
    assert [row["counter.gpu__time_duration.sum"] for row in rows] == [None, None]
    assert [row["counter.dram__bytes.sum"] for row in rows] == [7, 7]
    (whole, short) = capture.provenance.notices
    assert "has 1 whole graph: each of these rows sums several kernels" in whole.message
    assert "2 rows below 6.00 ms" in short.message
    assert capture.provenance.lost_launches == 0


def test_kernels_of_another_process_than_that_of_graphs_keep_their_times(opened):
    details = w.message((6, [DEVICE]), (8, w.TOOL), (11, "ncu app"))
    other = w.block(results=[w.result(metrics=metrics(5000, 1.9e9))], process=(99, "node17"))
    one = w.block(graphs=[w.graph_result(metrics(5000, 1.9e9))], names=NAMES, details=details)
    _, rows = opened(w.header() + one + other)
    assert [row["counter.gpu__time_duration.sum"] for row in rows] == [None, pytest.approx(5e-6)]


def test_a_graph_that_its_block_announces_and_lacks_is_lost(opened):
    whole = report(graphs=[w.graph_result(metrics(1, 1.0))], command="ncu app")
    head = w.message((2, 1), (5, len(entry := w.sized(w.result()))), (9, 1))
    capture, rows = opened(whole + w.sized(head) + entry)
    assert (len(rows), capture.provenance.lost_launches) == (2, 1)


@pytest.mark.parametrize("number", [3, 6, 20])
def test_a_result_of_an_unknown_sort_is_read_by_the_form_of_its_metrics(opened, number):
    """Whole graphs are not counted among results or ranges by every version."""
    entry = w.field(1, 1234) + w.field(15, "graph 1") + b"".join(
        w.field(number, metric) for metric in metrics(9_000_000, 1.9e9)
    )  # fmt: skip
    details = w.message((6, [DEVICE]), (8, w.TOOL), (11, "ncu --graph-profiling graph app"))
    head = w.message(
        (1, 0), (2, 0), (3, details), (4, w.message((1, list(NAMES)))), (5, len(entry) + 4)
    )
    capture, (row,) = opened(w.header() + w.sized(head) + w.sized(entry))
    assert (row["kind"], row["name"], row["counter.dram__bytes.sum"]) == ("graph", "graph", 7)
    assert row["counter.gpu__time_duration.sum"] == pytest.approx(9e-3)
    assert capture.provenance.lost_launches == 0


def test_bytes_behind_the_results_that_are_no_entry_are_left_alone(opened):
    entry = w.sized(w.result())
    head = w.message((2, 1), (5, len(entry) + 5))
    capture, rows = opened(w.header() + w.sized(head) + entry + b"\xff" * 5)
    assert len(rows) == 1
    assert capture.provenance.lost_launches == 0
