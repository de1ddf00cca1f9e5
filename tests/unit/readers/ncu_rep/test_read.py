"""Whole reports, synthetic and real, whole and damaged."""

import gzip
import io
import math
import random
import tracemalloc

import pytest
import report_writer as w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mansard.engine import connect
from mansard.errors import FormatError, MansardError
from mansard.readers.ncu_rep import read_ncu_rep

NAMES = ["gpu__time_duration.sum", "dram__bytes.sum", "launch__device_id", "launch__grid_size"]


def _codes(capture) -> list[str]:
    return [notice.code for notice in capture.provenance.notices]


def _stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


def test_a_launch_has_its_identity_shape_and_counters(opened):
    result = w.result(
        metrics=[w.metric(0, 2000.0), w.metric(1, 4096), w.metric(2, 3)],
        nvtx=w.nvtx_state(pushed=[(1234, 0, [("step", 1), ("forward", 2)])]),
    )
    capture, (row,) = opened(w.report([result], NAMES))
    assert capture.table == "launches"
    assert capture.counters == ("dram__bytes.sum", "gpu__time_duration.sum", "launch__device_id")
    assert row.pop("counter.gpu__time_duration.sum") == pytest.approx(2e-6)
    assert row == {
        "row": 0,
        "host": "node17",
        "rank": None,
        "process": 1234,
        "device": 3,
        "id": "0",
        "stream": 7,
        "kind": "kernel",
        "name": "void kernel<float>(float *)",
        "grid_x": 16,
        "grid_y": 2,
        "grid_z": 1,
        "block_x": 128,
        "block_y": 1,
        "block_z": 1,
        "phase": "step",
        "range": "step/forward",
        "counter.dram__bytes.sum": 4096.0,
        "counter.launch__device_id": 3.0,
    }
    assert capture.provenance.sources == ("sample.ncu-rep",)
    assert capture.provenance.lost_launches == 0
    assert capture.provenance.notices == ()


def test_names_added_by_later_blocks_serve_earlier_results(opened):
    data = (
        w.header()
        + w.block(results=[w.result(metrics=[w.metric(0, 1.0), w.metric(2, 7)])], names=NAMES[:1])
        + w.block(names=["b__x.sum"])
        + w.block(results=[w.result(metrics=[w.metric(1, 5)])], names=["c__x.sum"])
    )
    _, (first, second) = opened(data)
    assert first["counter.c__x.sum"] == 7.0
    assert first["counter.b__x.sum"] is None
    assert second["counter.b__x.sum"] == 5.0


def test_results_of_one_file_may_have_different_counters(opened):
    data = w.report(
        [w.result(metrics=[w.metric(0, 1.0)]), w.result(metrics=[w.metric(1, 0)])], NAMES
    )
    _, (first, second) = opened(data)
    # Not collected is null, zero is zero.
    assert (first["counter.dram__bytes.sum"], second["counter.dram__bytes.sum"]) == (None, 0.0)


def test_processes_and_hosts_are_kept_apart(opened):
    data = w.header() + b"".join(
        w.block(results=[w.result()], process=(pid, host))
        for pid, host in ((10, "node1"), (11, "node1"), (10, "node2"))
    )
    _, rows = opened(data)
    assert [(row["process"], row["host"]) for row in rows] == [
        (10, "node1"),
        (11, "node1"),
        (10, "node2"),
    ]


def test_the_device_is_the_launchs_or_the_only_one_or_unknown(opened):
    one = w.message((6, w.device(0)), (8, w.TOOL))
    two = w.message((6, [w.device(0), w.device(1)]), (8, w.TOOL))
    said = w.result(metrics=[w.metric(2, 1)])
    for details, results, devices in (
        (one, [w.result()], [0]),
        (two, [w.result()], [None]),
        (two, [said, w.result()], [1, None]),
    ):
        _, rows = opened(w.report(results, NAMES, details=details))
        assert [row["device"] for row in rows] == devices


def test_a_failed_launch_keeps_its_row_with_nulls_and_a_notice(opened):
    failed = w.result(grid=(0, 0, 0), threads=(0, 0, 0), metrics=[w.metric(0, math.nan)])
    capture, (_, row) = opened(w.report([w.result(metrics=[w.metric(0, 5.0)]), failed], NAMES))
    assert row["kind"] == "kernel"
    assert row["grid_x"] is row["block_x"] is row["counter.gpu__time_duration.sum"] is None
    assert _codes(capture) == ["launch-failed"]
    assert not capture.provenance.notices[0].partial


def test_a_report_of_2019_has_its_grid_in_blocks(opened):
    old = w.result(grid=(256, 4, 1), threads=(128, 2, 1), metrics=[w.metric(3, 4)])
    capture, (row,) = opened(w.report([old], NAMES, details=b"", process=None))
    assert (row["grid_x"], row["grid_y"], row["grid_z"]) == (2, 2, 1)
    assert row["process"] is row["host"] is None
    assert capture.provenance.collector_version is None


def test_ranges_are_named_as_such_and_have_no_grid(opened):
    command = w.message((8, w.TOOL), (11, "ncu --replay-mode app-range app"))
    data = w.report([w.result(name="range", code=None)], NAMES, details=command)
    capture, (row,) = opened(data)
    assert (row["kind"], row["grid_x"], row["block_x"]) == ("range", None, None)
    assert _codes(capture) == ["not-kernels"]
    assert capture.provenance.replay == "app-range"


@pytest.mark.parametrize(("scope", "phase"), [("process", "backward"), ("thread", None)])
def test_the_backward_pass_has_the_phase_of_another_thread_where_ncu_was_told_so(
    opened, scope, phase
):
    state = w.nvtx_state(pushed=[(1234, 0, [("backward", 3)]), (1300, 0, [])])
    details = w.message((8, w.TOOL), (11, f"ncu --nvtx --nvtx-push-pop-scope {scope} app"))
    _, (row,) = opened(w.report([w.result(nvtx=state, thread=1300)], details=details))
    assert row["phase"] == phase


def test_range_results_of_the_container_are_ranges(opened):
    data = w.header() + w.block(results=[w.result()], ranges=[w.range_result()])
    _, rows = opened(data)
    assert [row["kind"] for row in rows] == ["kernel", "range"]


def test_a_whole_graph_is_named_as_such(opened):
    data = w.report(
        [w.result(name="Graph 5", code=None, metrics=[w.metric(0, 17)]), w.result()],
        ["launch__graph_exec_cuda_id"],
    )
    _, rows = opened(data)
    assert [row["kind"] for row in rows] == ["graph", "kernel"]


def test_a_result_of_unknown_kind_is_kept_with_a_notice(opened):
    capture, (row,) = opened(w.report([w.result(grid=None, threads=None, code=None)]))
    assert row["kind"] is None
    assert _codes(capture) == ["unknown-result-kind"]


def test_the_command_line_and_paths_are_not_kept(opened):
    command = "/home/jane/bin/ncu --clock-control none -o /home/jane/out python secret.py --key=k"
    settings = w.message((1, "/home/jane/app"), (2, "/home/jane"), (3, "--key=k"), (4, "TOKEN=x"))
    system = w.message((1, "Linux"), (5, "janes-laptop"), (7, w.message((1, "192.0.2.7"))))
    details = w.message((3, system), (4, system), (8, w.TOOL), (9, settings), (11, command))
    capture, rows = opened(w.report([w.result()], details=details))
    assert capture.provenance.clock_control == "none"
    for secret in ("jane", "secret", "192.0.2", "TOKEN", "/home"):
        assert secret not in repr((capture, rows))


def test_a_result_that_is_damaged_is_counted_and_the_others_are_read(opened):
    capture, rows = opened(w.report([w.result(), b"\xff" * 60, w.result()]))
    assert len(rows) == 2
    assert capture.provenance.lost_launches == 1
    assert _codes(capture) == ["report-damaged"]
    assert capture.provenance.notices[0].partial


def test_values_whose_name_is_lost_are_told(opened):
    capture, (row,) = opened(w.report([w.result(metrics=[w.metric(5, 1.0)])], NAMES))
    assert capture.counters == ()
    assert "counter-names-missing" in _codes(capture)
    assert row["kind"] == "kernel"


def test_a_file_without_its_header_is_read_with_a_notice(opened):
    capture, rows = opened(w.report([w.result()])[len(w.header()) :])
    assert len(rows) == 1
    assert _codes(capture) == ["report-version"]


def test_another_version_is_read_with_a_notice(opened):
    data = w.header(9) + w.report([w.result()])[len(w.header()) :]
    capture, rows = opened(data)
    assert len(rows) == 1
    assert "version 9" in capture.provenance.notices[0].message


def test_a_report_without_launches_says_that_none_was_profiled(opened):
    with pytest.raises(FormatError, match="holds no launches") as caught:
        opened(w.report([]))
    assert caught.value.slug == "no-launches"


def test_a_report_of_which_nothing_is_whole_says_so(opened):
    with pytest.raises(FormatError, match="no launch in it is whole"):
        opened(w.report([w.result()])[:-5])


def test_a_file_that_only_looks_like_a_block_is_no_report(opened):
    with pytest.raises(FormatError, match="is no report"):
        opened(b"\x02\0\0\0\x08\x07")


def test_a_table_that_exists_is_not_overwritten(engine):
    engine.execute("CREATE TABLE taken (a INTEGER)")
    with pytest.raises(Exception, match="already exists"):
        read_ncu_rep(_stream(w.report([w.result()])), engine, "taken", name="x")
    assert engine.execute("SELECT count(*) FROM taken").fetchall() == [(0,)]


@pytest.fixture(scope="module")
def zoo(data_folder):
    """Nine launches of known work on an H200, --set roofline, ranges named after the work."""
    with connect(threads=1) as connection:
        path = data_folder / "zoo.ncu-rep.gz"
        capture = read_ncu_rep(path, connection, "zoo", name="zoo.ncu-rep")
        found = connection.execute("SELECT * FROM zoo ORDER BY row")
        names = [entry[0] for entry in found.description]
        return capture, [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_a_real_report_is_read(zoo):
    capture, rows = zoo
    assert [row["phase"] for row in rows] == [
        "gemm_fp64",
        "gemm_fp16",
        "gemm_bf16",
        "gemm_tf32",
        "gemm_int8",
        "gemm_fp8",
        "mul_fp16",
        "sort",
        "transpose",
    ]
    assert rows[7]["range"] == "sort/cub::DeviceRadixSort"
    assert {row["kind"] for row in rows} == {"kernel"}
    assert len(capture.counters) == 1298
    assert capture.provenance.notices == ()


@pytest.mark.parametrize(
    ("phase", "counter"),
    [
        ("gemm_fp64", "sm__ops_path_tensor_src_fp64.sum"),
        ("gemm_fp16", "sm__ops_path_tensor_src_fp16.sum"),
        ("gemm_bf16", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"),
        ("gemm_tf32", "sm__ops_path_tensor_src_tf32_dst_fp32.sum"),
        ("gemm_int8", "sm__ops_path_tensor_src_int8.sum"),
        ("gemm_fp8", "sm__ops_path_tensor_src_fp8_sparsity_off.sum"),
    ],
)
def test_a_matrix_product_of_2048_has_2mnk_operations(zoo, phase, counter):
    (row,) = [row for row in zoo[1] if row["phase"] == phase]
    assert row[f"counter.{counter}"] == 2 * 2048**3


def test_counts_follow_from_rates_per_cycle_and_the_clock(zoo):
    # mul_fp16 multiplies 2^26 half numbers through FP32, one multiplication each.
    (row,) = [row for row in zoo[1] if row["phase"] == "mul_fp16"]
    clock = row["counter.sm__cycles_elapsed.avg.per_second"]
    cycles = row["counter.gpu__time_duration.sum"] * clock
    rate = row["counter.smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"]
    assert rate * cycles == pytest.approx(2**26, rel=1e-9)
    assert 1.0e9 < clock <= 1.98e9


def test_a_real_report_cut_at_every_percent_gives_its_whole_launches(engine, data_folder):
    whole = gzip.decompress((data_folder / "graph-nodes.ncu-rep.gz").read_bytes())
    columns = (
        'id, name, grid_x, block_x, phase, "counter.gpu__time_duration.sum", '
        '"counter.lts__t_bytes.sum", "counter.launch__waves_per_multiprocessor"'
    )

    def launches(data: bytes):
        engine.execute("DROP TABLE IF EXISTS cut")
        capture = read_ncu_rep(_stream(data), engine, "cut", name="cut.ncu-rep")
        found = engine.execute(f"SELECT {columns} FROM cut ORDER BY row").fetchall()
        return capture, found

    complete, expected = launches(whole)
    seen = set()
    for percent in range(1, 100):
        try:
            capture, found = launches(whole[: len(whole) * percent // 100])
        except FormatError:
            seen.add(0)
            continue
        seen.add(len(found))
        assert found == expected[: len(found)]
        assert capture.counters == complete.counters
        (notice,) = capture.provenance.notices
        assert notice.code == "report-cut"
        assert notice.partial
        # One result per block here: a cut inside a result loses one, elsewhere it is unknown.
        lost = capture.provenance.lost_launches
        assert lost in (None, 1)
        assert ("1 launch lost" if lost else "unknown number of launches lost") in notice.message
    # The file ends with the fourth launch.
    assert seen == {0, 1, 2, 3}


SMALL = w.report(
    [
        w.result(
            metrics=[w.metric(0, 1.5), w.metric(1, 2**40), w.metric(2, 0)],
            nvtx=w.nvtx_state(pushed=[(1234, 0, [("step", 1)])]),
        ),
        w.result(name="", metrics=[w.metric(3, 4)]),
    ],
    NAMES,
    details=w.message((6, w.device(0, "GPU", [("device__attribute_chip", 384)])), (8, w.TOOL)),
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=5),
    st.integers(0, len(SMALL)),
)
def test_changed_and_cut_bytes_raise_nothing_but_our_errors(opened, changes, size):
    data = bytearray(SMALL)
    for at, byte in changes:
        data[at] = byte
    try:
        _, rows = opened(bytes(data[:size]) if size > 16 else bytes(data))
    except MansardError:
        return
    assert len(rows) <= 2 + len(SMALL) // 24


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_raise_nothing_but_our_errors(opened, data, with_magic):
    try:
        opened((w.header() if with_magic else b"") + data)
    except MansardError:
        return


def test_a_hostile_report_of_many_names_does_not_fill_the_memory(opened, monkeypatch):
    # 1500 launches with a counter each of their own: as a table, more than two million cells.
    count = 1500
    monkeypatch.setattr("mansard.readers.ncu_rep.table._SMALL_TABLE", 60_000)
    results = [w.result(metrics=[w.metric(number, 1)]) for number in range(count)]
    data = w.report(results, [f"c{number}" for number in range(count)])
    tracemalloc.start()
    capture, rows = opened(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == count
    assert "counters-left-out" in _codes(capture)
    assert peak < 40 * len(data)


def test_results_in_any_number_of_blocks_read_the_same(opened):
    generator = random.Random(7)
    results = [
        w.result(name=f"k{number}", metrics=[w.metric(0, generator.random())])
        for number in range(20)
    ]
    one = w.header() + w.block(results=results, names=NAMES)
    many = w.header() + b"".join(
        w.block(results=[result], names=NAMES if number == 0 else ())
        for number, result in enumerate(results)
    )
    assert opened(one)[1] == opened(many)[1]
