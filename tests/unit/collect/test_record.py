"""A recording becomes a run file: values, unknowns, zeros, phases, ranks and origin."""

import duckdb
import pytest

import mansard
from mansard.collect.instruments import Level
from mansard.collect.launches import Launch, Trace
from mansard.collect.marks import Range
from mansard.collect.plan import Counted
from mansard.collect.ranks import Rank, file_of_rank, this_rank
from mansard.collect.record import Origin, check_work, driver_version, trace_facts, write_recording
from mansard.collect.recording import Recording, StepRecording
from mansard.counters.table import table_for
from mansard.model.device import DeviceFacts

FADD, FMUL, FFMA = (
    f"sm__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma")
)
DRAM, SECTORS = "dram__bytes.sum", "lts__t_sectors_srcunit_tex.sum"


@pytest.fixture
def origin():
    return Origin(
        rank=Rank(None, 1, "node7", 4711),
        devices={0: DeviceFacts(name="NVIDIA H200", chip="GH100", compute_capability="9.0")},
        table=table_for(chip="GH100"),
        versions={"cupti": "13.0", "cuda": "13.0"},
    )


def copy(number, name, size):
    return Launch(
        kind=name.split()[0],
        name=name,
        device=0,
        stream=7,
        start_ns=500_000 + number,
        end_ns=510_000 + number,
        launch_ns=499_000,
        correlation=0,
        bytes_moved=size,
    )


def recording_of(trace, level=Level.COUNTERS, **step):
    recording = Recording(level=level, iterations=9, passes=2)
    recording.steps.append(StepRecording(trace=trace, **step))
    return recording


def read(path, columns, where="true"):
    return duckdb.sql(
        f"SELECT {columns} FROM read_parquet('{path}') WHERE {where} ORDER BY launch"
    ).fetchall()


def test_counters_become_work_and_bytes_and_the_trace_gives_the_times(
    origin, make_kernels, tmp_path
):
    trace = Trace(make_kernels("gemm", "add"), (), 0, 2_000_000)
    counted = Counted((FADD, FMUL, FFMA, SECTORS), ((1.0, 2.0, 10.0, 3.0), (5.0, 0.0, 0.0, 1.0)))
    write_recording(recording_of(trace, kernels=counted), origin, tmp_path / "r.parquet")
    columns = "name, flop_vector_fp32, bytes_l2, bytes_dram, start_s, duration_s, grid_x, block_x"
    assert read(tmp_path / "r.parquet", columns) == [
        ("gemm", 23.0, 96.0, None, 0.0, 1e-05, 4, 128),
        ("add", 5.0, 32.0, None, 2e-05, 1e-05, 4, 128),
    ]


def test_copies_are_rows_that_compute_nothing(origin, make_kernels, tmp_path):
    launches = (copy(0, "memcpy HtoD", 4096), copy(1, "memset", 64), *make_kernels("add"))
    counted = Counted((FADD, FMUL, FFMA), ((1.0, 1.0, 1.0),))
    write_recording(
        recording_of(Trace(launches, (), 0, 1), kernels=counted), origin, tmp_path / "r.parquet"
    )
    columns = "kind, flop_vector_fp32, flop_vector_fp64, bytes_link, bytes_dram"
    assert read(tmp_path / "r.parquet", columns) == [
        ("memcpy", 0.0, None, 4096.0, None),
        ("memset", 0.0, None, None, None),
        ("kernel", 4.0, None, None, None),
    ]


def test_launches_are_in_the_phase_that_was_open_when_they_were_launched(
    origin, make_kernel, tmp_path
):
    # The second is launched in the forward phase and runs in the backward phase.
    launches = (
        make_kernel("a", number=0, thread_start=100),
        make_kernel("b", number=1, thread_start=190),
        make_kernel("c", number=2, thread_start=250),
    )
    ranges = (Range("forward", 50, 200), Range("layer", 150, 195), Range("backward", 200, 300))
    write_recording(
        recording_of(Trace(launches, ranges, 0, 1), Level.TRACE), origin, tmp_path / "r.parquet"
    )
    assert read(tmp_path / "r.parquet", 'phase, "range"') == [
        ("forward", "forward"),
        ("forward", "forward/layer"),
        ("backward", "backward"),
    ]


def test_a_counter_that_gave_no_number_is_unknown_and_not_zero(origin, make_kernels, tmp_path):
    counted = Counted((DRAM,), ((float("nan"),), (0.0,)))
    write_recording(
        recording_of(Trace(make_kernels("a", "b"), (), 0, 1), kernels=counted),
        origin,
        tmp_path / "r.parquet",
    )
    assert read(tmp_path / "r.parquet", "bytes_dram") == [(None,), (0.0,)]


def test_operators_stand_beside_their_kernels_and_not_beside_copies(origin, make_kernels, tmp_path):
    trace = Trace((copy(0, "memcpy DtoH", 8), *make_kernels("a", "b")), (), 0, 1)
    recording = recording_of(
        trace, Level.TRACE, operators=(("aten::mm", "layer1"), ("aten::add", None))
    )
    write_recording(recording, origin, tmp_path / "r.parquet")
    assert read(tmp_path / "r.parquet", "op, module") == [
        (None, None),
        ("aten::mm", "layer1"),
        ("aten::add", None),
    ]


def test_each_phase_is_a_row_where_only_phases_were_counted(origin, make_kernel, tmp_path):
    launches = (
        make_kernel("a", number=0, thread_start=100),
        make_kernel("b", number=1, thread_start=210),
        make_kernel("c", number=2, thread_start=220),
    )
    trace = Trace(launches, (Range("forward", 50, 200), Range("backward", 200, 300)), 0, 400)
    trace = Trace(trace.launches, trace.ranges, 0, 400, splits=(200, 300))
    segments = {0: Counted((FADD, FMUL, FFMA), ((1.0, 0, 0), (2.0, 0, 0), (9.0, 0, 0)))}
    write_recording(
        recording_of(trace, Level.PHASES, segments=segments), origin, tmp_path / "r.parquet"
    )
    columns = "kind, name, phase, flop_vector_fp32, duration_s"
    # Nothing ran after the second split, so there is no third row.
    assert read(tmp_path / "r.parquet", columns) == [
        ("range", "forward", "forward", 1.0, 1e-05),
        ("range", "backward", "backward", 2.0, 2e-05),
    ]


def test_a_graph_is_one_row_of_its_kind(origin, make_kernels, tmp_path):
    trace = Trace(make_kernels("a", "b", graph=3), (), 0, 400)
    segments = {0: Counted((DRAM,), ((7.0,),))}
    write_recording(
        recording_of(trace, Level.PHASES, segments=segments), origin, tmp_path / "r.parquet"
    )
    assert read(tmp_path / "r.parquet", "kind, name, phase, bytes_dram") == [
        ("graph", "(step)", None, 7.0)
    ]


def test_vector_work_in_a_graph_is_unknown_since_its_counters_read_zero_there(
    origin, make_kernel, tmp_path
):
    launches = (
        make_kernel("a", number=0, thread_start=100),
        make_kernel("b", number=1, thread_start=210, graph=3),
    )
    trace = Trace(launches, (), 0, 400, splits=(200,))
    row = (5.0, 0.0, 0.0, 9.0)
    segments = {0: Counted((FADD, FMUL, FFMA, DRAM), (row, (0.0, *row[1:])))}
    run = write_recording(
        recording_of(trace, Level.PHASES, segments=segments), origin, tmp_path / "r.parquet"
    )
    assert read(tmp_path / "r.parquet", "kind, flop_vector_fp32, bytes_dram") == [
        ("range", 5.0, 9.0),
        ("graph", None, 9.0),
    ]
    assert "graph-vector-unknown" in {notice.code for notice in run.all_notices}


def test_what_was_cut_short_keeps_its_trace_and_says_that_it_is_partial(
    origin, make_kernels, tmp_path
):
    recording = Recording(level=Level.COUNTERS, pending=Trace(make_kernels("a"), (), 0, 1))
    run = write_recording(recording, origin, tmp_path / "r.parquet")
    assert run.partial
    assert "counters-incomplete" in {notice.code for notice in run.all_notices}
    assert read(tmp_path / "r.parquet", "name, flop_vector_fp32") == [("a", None)]


def test_the_file_says_where_and_how_it_was_made(origin, make_kernels, tmp_path):
    trace = Trace(make_kernels("a", "b"), (), 1_000_000, 1_100_000)
    recording = recording_of(trace, kernels=Counted((DRAM,), ((1.0,), (2.0,))))
    recording.seconds = {"counters": 1.25}
    recording.zeros = (FADD,)
    recording.host_ns = [900_000_000, 30_000_000, 31_000_000]  # the first tunes
    write_recording(recording, origin, tmp_path / "r.parquet")
    provenance = mansard.open(tmp_path / "r.parquet").provenance[0]
    assert provenance.collector == "Mansard (CUPTI, inside the process)"
    assert provenance.collector_version.endswith("CUPTI 13.0")
    assert provenance.replay == "application"
    assert provenance.counter_table == "gh100"
    assert provenance.devices[0].chip == "GH100"
    assert provenance.extra["gpu_busy_share"] == "0.2000"
    assert provenance.extra["counters_wall_s"] == "1.250"
    assert provenance.extra["step_host_s"] == "0.030000"
    assert "counted-zero" in {notice.code for notice in provenance.notices}
    assert read(tmp_path / "r.parquet", "DISTINCT host, process, launch, rank") == [
        ("node7", 4711, 0, None),
        ("node7", 4711, 1, None),
    ]


def test_a_host_that_runs_ahead_does_not_make_the_step_shorter_than_the_gpu_was_busy(
    origin, make_kernel, tmp_path
):
    trace = Trace((make_kernel("a", duration=32_000_000),), (), 0, 44_000_000)
    recording = recording_of(trace, Level.TRACE)
    recording.host_ns = [21_000_000]
    write_recording(recording, origin, tmp_path / "r.parquet")
    extra = mansard.open(tmp_path / "r.parquet").provenance[0].extra
    assert (extra["step_host_s"], extra["gpu_busy_s"]) == ("0.032000", "0.032000")


def test_hostile_names_of_kernels_and_ranges_come_through(origin, make_kernel, tmp_path):
    name = "k'\"; DROP TABLE x; --</script>\n\u202e" + "x" * 3000
    launch = make_kernel(name, thread_start=5)
    trace = Trace((launch,), (Range("a\"/b'", 0, 10),), 0, 1)
    write_recording(recording_of(trace, Level.TRACE), origin, tmp_path / "r.parquet")
    assert read(tmp_path / "r.parquet", "name, phase") == [(name, "a\"/b'")]


def test_work_of_the_kernels_must_be_the_work_of_the_step(make_kernels):
    trace = Trace(make_kernels("a", "b"), (), 0, 1)
    recording = recording_of(trace, kernels=Counted((FADD,), ((3.0,), (4.0,))))
    formulas = {"flop_vector_fp32": FADD}
    recording.survey = {0: {FADD: 7.0}}
    assert check_work(recording, recording.steps, formulas) == []
    recording.survey = {0: {FADD: 9.0}}
    (notice,) = check_work(recording, recording.steps, formulas)
    assert notice.code == "work-differs"
    assert "7 summed over the kernels and 9" in notice.message


def test_idle_time_of_the_gpu_is_told(make_kernels):
    facts = trace_facts(Trace(make_kernels("a", "b"), (), 1_000_000, 1_040_000))
    assert facts["gpu_busy_share"] == "0.5000"
    assert facts["kernel_time_s"] == "0.000020"


def test_the_driver_version_is_read_from_the_kernel_modules_file(tmp_path):
    file = tmp_path / "version"
    file.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
    )
    assert driver_version(file) == "580.159.04"
    assert driver_version(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("variables", "rank", "size"),
    [
        ({}, None, 1),
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, 5, 16),
        ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "9", "SLURM_NTASKS": "10"}, 0, 2),
        ({"RANK": "nonsense", "SLURM_PROCID": "4", "SLURM_NTASKS": "x"}, 4, 1),
    ],
)
def test_the_rank_is_that_of_the_first_launcher_that_says_it(variables, rank, size):
    found = this_rank(variables)
    assert (found.rank, found.size) == (rank, size)


def test_each_rank_has_a_file_of_its_own_in_one_folder(tmp_path):
    path = tmp_path / "run.parquet"
    assert file_of_rank(path, Rank(None, 1, "h", 1)) == path
    assert file_of_rank(path, Rank(0, 1, "h", 1)) == path
    assert file_of_rank(path, Rank(2, 8, "h", 1)) == tmp_path / "run" / "rank2.parquet"
    assert file_of_rank(tmp_path / "out", Rank(2, 8, "h", 1)) == tmp_path / "out" / "rank2.parquet"


def test_ranks_written_apart_are_one_run(origin, make_kernels, tmp_path):
    for number in (1, 0):
        rank = Rank(number, 2, "h", 100 + number)
        path = file_of_rank(tmp_path / "run.parquet", rank)
        trace = Trace(make_kernels("a"), (), 0, 1)
        ranked = Origin(
            rank=rank, devices=origin.devices, table=origin.table, versions=origin.versions
        )
        write_recording(recording_of(trace, Level.TRACE), ranked, path)
    run = mansard.open(tmp_path / "run")
    assert [file.name for file in run.files] == ["rank0.parquet", "rank1.parquet"]
    assert read(tmp_path / "run/*.parquet", "rank") in ([(0,), (1,)], [(1,), (0,)])
