"""The whole course with the fake ncu: what is written, kept, said, and how it ends."""

import dataclasses
import gzip
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from ncu_makers import DATA, GRAPH_NODES, traced

from mansard.collect.ncu import (
    Conditions,
    NcuOptions,
    Replay,
    Selection,
    Times,
    collect,
    collect_with_ncu,
    failures,
    target,
)
from mansard.collect.ncu.process import Ended
from mansard.collect.ncu.symbols import symbols_in
from mansard.collect.ncu.trace import ProgramTrace, Traced
from mansard.engine import connect, parquet
from mansard.errors import (
    CollectError,
    DeviceError,
    InputError,
    OutputError,
    PermissionDeniedError,
    UsageError,
)

pytestmark = pytest.mark.slow

HOPPER = NcuOptions(chip="9.0")
PROGRAM = (sys.executable, "-S", "-E", "-c", "print('hello')")
GEMM, ADD = symbols_in(GRAPH_NODES)[:2]


def rows(run, columns):
    with connect(threads=1) as connection:
        return connection.execute(
            f"SELECT {columns} FROM {parquet(run.files)} ORDER BY launch"
        ).fetchall()


def codes(collected):
    return {notice.code for notice in collected.run.all_notices}


def test_a_program_becomes_a_run_and_nothing_else_is_left(fake_ncu, tmp_path, capfd):
    output = tmp_path / "out put" / "100% run.parquet"
    collected = collect_with_ncu(PROGRAM, output, HOPPER)
    assert capfd.readouterr().out == "hello\n"
    assert collected.failure is None
    assert (collected.program_code, collected.report) == (0, None)
    assert [path.name for path in output.parent.iterdir()] == ["100% run.parquet"]
    found = rows(collected.run, "name, bytes_dram > 0, duration_s > 0, counters_from")
    assert len(found) == 4
    assert found[0] == ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", True, True, None)


def test_conditions_and_their_reasons_are_recorded(fake_ncu, tmp_path):
    origin = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).run.provenance[0]
    assert (origin.clock_control, origin.cache_control, origin.replay) == ("none", "none", "kernel")
    assert origin.extra["clock_control_reason"].startswith("clocks as the program finds them")
    assert origin.extra["times_from"] == "ncu"
    assert origin.extra["passes"] == "8"
    assert (origin.collector, origin.sources) == ("Nsight Compute", ("r.ncu-rep",))


def test_the_command_line_reaches_ncu_as_it_was_built(fake_ncu, tmp_path, seen):
    collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    line = seen()
    assert line[-len(PROGRAM) :] == list(PROGRAM)
    assert "regex:^(?!" in line[line.index("--kernel-name") + 1]
    assert "dram__bytes.sum" in line[line.index("--metrics") + 1].split(",")


def test_the_report_is_kept_on_request(fake_ncu, tmp_path):
    options = NcuOptions(chip="9.0", keep_report=tmp_path / "kept.ncu-rep")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    assert collected.report == tmp_path / "kept.ncu-rep"
    assert collected.report.read_bytes()[:4] == b"NVR\0"


def test_progress_is_told_with_kernels_and_passes(fake_ncu, tmp_path):
    seen = []
    collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER, watch=seen.append)
    assert seen[-1].stage == "write"
    assert (seen[-1].step.kernels, seen[-1].step.passes) == (4, 8)


def test_each_rank_writes_a_file_of_its_own(fake_ncu, tmp_path, monkeypatch):
    for rank in ("0", "3"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "4")
        collected = collect_with_ncu(PROGRAM, tmp_path / "run.parquet", HOPPER)
        assert {row[0] for row in rows(collected.run, "rank")} == {int(rank)}
        assert "collectives-excluded" in codes(collected)
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["rank0.parquet", "rank3.parquet"]


def test_without_permission_the_remedy_is_told(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "permission")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    assert isinstance(collected.failure, PermissionDeniedError)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(collected.failure)
    assert "--cap-add=SYS_ADMIN" in str(collected.failure)
    # ncu ended the program: its code 9 is not the program's own.
    assert collected.program_code == 0
    assert list(tmp_path.glob("*.parquet")) == []


def test_a_busy_gpu_is_told(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "busy")
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).failure
    assert isinstance(failure, DeviceError)
    assert "dcgmi profile --pause" in str(failure)


def test_no_kernels_come_with_the_hint_on_threads(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "no-kernels")
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).failure
    assert isinstance(failure, CollectError)
    assert failure.slug == "no-launches"
    assert "backward pass from another thread" in str(failure)


def test_a_program_that_fails_keeps_its_code_and_what_was_counted(fake_ncu, tmp_path):
    program = (sys.executable, "-S", "-E", "-c", "raise SystemExit(42)")
    collected = collect_with_ncu(program, tmp_path / "r.parquet", HOPPER)
    assert collected.program_code == 42
    assert len(rows(collected.run, "name")) == 4
    assert "ncu-program-failed" in codes(collected)
    assert collected.run.partial


def test_a_crash_of_ncu_keeps_the_launches_that_are_whole(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "crash")
    monkeypatch.setenv("FAKE_NCU_REPORT", str(DATA / "ncu_rep" / "zoo.ncu-rep.gz"))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    assert 0 < len(rows(collected.run, "name")) < 9
    assert {"report-cut", "ncu-failed"} <= codes(collected)
    assert collected.run.partial


def test_a_crash_that_leaves_nothing_is_told_and_the_rest_is_kept(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "crash")
    monkeypatch.setenv("FAKE_NCU_PART", "0.02")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    assert collected.run is None
    assert f"signal {signal.SIGSEGV}" in str(collected.failure)
    assert collected.report == tmp_path / "r.ncu-rep"


def test_a_full_disk_is_told(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "disk-full")
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).failure
    assert isinstance(failure, OutputError)
    assert "is full: make room" in str(failure)


def test_a_disk_without_room_is_the_reason_even_if_ncu_does_not_say_so(
    fake_ncu, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU", "no-kernels")
    usage = shutil.disk_usage(tmp_path)._replace(free=4096)
    monkeypatch.setattr(failures.shutil, "disk_usage", lambda path: usage)
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).failure
    assert isinstance(failure, OutputError)


def test_an_option_that_ncu_refuses_is_told(fake_ncu, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("FAKE_NCU", "bad-option")
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).failure
    assert "ended with code 1 and left no report" in str(failure)
    assert "unrecognised option" in capfd.readouterr().out


def test_an_old_ncu_counts_all_launches_and_refuses_to_sample(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "old")
    assert collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER).run is not None
    options = NcuOptions(chip="9.0", selection=Selection(sample=1))
    with pytest.raises(UsageError, match=r"2022\.1\.1\.0 .* has no --filter-mode"):
        collect_with_ncu(PROGRAM, tmp_path / "s.parquet", options)


def test_without_ncu_or_program_nothing_runs(fake_ncu, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"no program ./missing"):
        collect_with_ncu(("./missing",), tmp_path / "r.parquet", HOPPER)
    monkeypatch.setenv("FAKE_NCU", "silent")
    with pytest.raises(DeviceError, match="not an ncu that runs"):
        collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(fake_ncu, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write in"):
        collect_with_ncu(PROGRAM, tmp_path / "file" / "r.parquet", HOPPER)


def test_an_interrupt_ends_the_program_and_keeps_what_was_recorded(fake_ncu, tmp_path):
    code = f"""
        import sys
        from pathlib import Path
        from mansard.collect.ncu import NcuOptions, collect_with_ncu
        told = []
        def watch(progress):
            if progress.step.kernels > 2 and not told:
                told.append(print("counting", flush=True))
        program = (sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)")
        c = collect_with_ncu(program, Path({str(tmp_path / "r.parquet")!r}), NcuOptions(chip="9.0"), watch=watch)
        print(c.stopped_by, c.program_code, c.run.partial, [n.code for n in c.run.all_notices])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "FAKE_NCU": "slow"},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout.readline() == "counting\n"
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=40)
    assert time.perf_counter() - begin < 20
    last = out.splitlines()[-1]
    assert last.startswith(f"{int(signal.SIGINT)} 0 True ")
    assert "'interrupted'" in last
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["r.parquet"]


@pytest.fixture
def trace(monkeypatch):
    """Let the traced run give these launches."""

    def give(*launches, code=0, missing="", stopped_by=None):
        made = ProgramTrace(launches=launches, source="a test") if launches else None
        ended = None if missing and not launches else Ended(code, 0.1, stopped_by)
        monkeypatch.setattr(
            collect,
            "trace_program",
            lambda program, folder, **options: Traced(trace=made, ended=ended, missing=missing),
        )

    return give


def launches_of_the_report(gemms=2, adds=2):
    """The launches of the recorded report, more of each: gemm, add, gemm, add, ..."""
    # Field for field what the report holds of them.
    shapes = {GEMM: (2, 64, 1, 384, 1, 1), ADD: (65536, 1, 1, 128, 1, 1)}
    shared = {GEMM: 213188, ADD: 0}
    order = [
        *([GEMM, ADD] * min(gemms, adds)),
        *([GEMM] * (gemms - adds)),
        *([ADD] * (adds - gemms)),
    ]
    return [
        traced(symbol, number=number, shape=shapes[symbol], shared_bytes=shared[symbol])
        for number, symbol in enumerate(order)
    ]


def sampled(sample, **changes):
    return NcuOptions(chip="9.0", selection=Selection(sample=sample, **changes))


def test_a_sample_gives_every_launch_its_counters_and_says_whose(fake_ncu, tmp_path, trace, seen):
    trace(*launches_of_the_report(gemms=10, adds=5))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(2))
    found = rows(collected.run, "counters_from, bytes_dram, duration_s")
    assert [row[0] for row in found].count("measured") == 4
    assert [row[0] for row in found].count("inferred") == 11
    assert all(row[1] > 0 for row in found)
    assert {round(row[2] * 1e6) for row in found} == {10}
    assert seen()[seen().index("--preload-library") + 1].endswith("libmansard_gate.so")
    assert seen()[seen().index("--profile-from-start") + 1] == "off"
    assert not {"--kernel-id", "--kernel-name"} & {*seen()}
    assert "sampled" in codes(collected)
    extra = collected.run.provenance[0].extra
    assert (extra["launches_measured"], extra["launches_inferred"]) == ("4", "11")
    assert (extra["times_from"], extra["sample"]) == ("a test", "2")
    assert not collected.run.partial


def test_an_output_with_blanks_in_its_path_has_its_gate_elsewhere(fake_ncu, tmp_path, trace, seen):
    trace(*launches_of_the_report())
    collect_with_ncu(PROGRAM, tmp_path / "my runs" / "r.parquet", sampled(1))
    gate = seen()[seen().index("--preload-library") + 1]
    assert " " not in gate
    assert not Path(gate).exists()


def test_where_launches_cannot_be_shown_one_by_one_ncu_takes_the_first(
    fake_ncu, tmp_path, trace, seen
):
    launches = launches_of_the_report(gemms=10, adds=5)
    trace(*launches, dataclasses.replace(launches[-1], in_graph=True))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(2))
    assert seen()[seen().index("--kernel-id") + 1].endswith(":1|2")
    assert seen()[seen().index("--kernel-name-base") + 1] == "mangled"
    assert [row[0] for row in rows(collected.run, "counters_from")].count("measured") == 4
    notices = {notice.code: notice.message for notice in collected.run.all_notices}
    assert "CUDA graphs" in notices["sampled-by-number"]


@pytest.fixture
def two_groups(monkeypatch):
    """Bytes in one pass, time and fp32 in another; nothing of integers."""

    def groups_for(table, counters):
        first = tuple(each for each in counters if "bytes" in each)
        second = tuple(each for each in counters if "bytes" not in each and "imma" not in each)
        return [first, second], tuple(each for each in counters if "imma" in each)

    monkeypatch.setattr(target, "groups_for", groups_for)


def test_a_sample_of_a_short_program_runs_it_once_for_each_group_of_counters(
    fake_ncu, tmp_path, trace, seen, two_groups
):
    trace(*launches_of_the_report(gemms=300, adds=300))
    watched = []
    collected = collect_with_ncu(
        PROGRAM, tmp_path / "r.parquet", sampled(200), watch=watched.append
    )
    origin = collected.run.provenance[0]
    assert origin.replay == "application"
    assert (origin.extra["counted_runs"], origin.extra["passes"]) == ("2", "16")
    assert seen()[seen().index("--replay-mode") + 1] == "kernel"
    # The last line: the second group alone.
    assert "dram__bytes.sum" not in seen()[seen().index("--metrics") + 1]
    assert "counters-left-out" in codes(collected)
    assert all(row[0] > 0 for row in rows(collected.run, "bytes_dram"))
    assert (watched[-1].step.kernels, watched[-2].expected) == (8, 800)


def test_application_replay_without_a_trace_runs_once_for_each_group_too(
    fake_ncu, tmp_path, two_groups
):
    options = NcuOptions(chip="9.0", conditions=Conditions(replay=Replay.APPLICATION))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    assert collected.run.provenance[0].extra["counted_runs"] == "2"
    assert len(rows(collected.run, "name")) == 4


def test_without_a_trace_nothing_tells_that_several_runs_pay(fake_ncu, tmp_path, two_groups):
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    assert "counted_runs" not in collected.run.provenance[0].extra


def test_ranks_of_a_job_run_the_program_equally_often(
    fake_ncu, tmp_path, trace, two_groups, monkeypatch
):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    trace(*launches_of_the_report(gemms=300, adds=300))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(200))
    assert "counted_runs" not in collected.run.provenance[0].extra


def test_kernel_replay_on_request_counts_all_in_one_run(
    fake_ncu, tmp_path, trace, seen, two_groups
):
    trace(*launches_of_the_report(gemms=300, adds=300))
    options = dataclasses.replace(sampled(200), conditions=Conditions(replay=Replay.KERNEL))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    assert "counted_runs" not in collected.run.provenance[0].extra
    assert "dram__bytes.sum" in seen()[seen().index("--metrics") + 1]


def test_a_later_run_that_fails_keeps_what_the_first_counted(
    fake_ncu, tmp_path, trace, two_groups, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU", "busy-later")
    trace(*launches_of_the_report())
    options = dataclasses.replace(sampled(1), conditions=Conditions(replay=Replay.APPLICATION))
    keep = dataclasses.replace(options, keep_report=tmp_path / "kept.ncu-rep")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", keep)
    assert all(row[0] > 0 for row in rows(collected.run, "bytes_dram"))
    assert "runs-incomplete" in codes(collected)
    assert collected.run.partial
    assert (tmp_path / "kept.ncu-rep").exists()


def test_all_reports_are_kept_on_request(fake_ncu, tmp_path, trace, two_groups):
    trace(*launches_of_the_report())
    options = dataclasses.replace(
        sampled(1),
        conditions=Conditions(replay=Replay.APPLICATION),
        keep_report=tmp_path / "kept.ncu-rep",
    )
    collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    assert sorted(path.name for path in tmp_path.glob("kept*")) == [
        "kept-2.ncu-rep",
        "kept.ncu-rep",
    ]


def test_a_program_that_does_not_hear_the_gate_is_counted_by_the_filters_of_ncu(
    fake_ncu, tmp_path, trace, seen, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU", "deaf")
    trace(*launches_of_the_report(gemms=10, adds=5))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(2))
    assert "--preload-library" not in seen()
    assert "--kernel-id" in seen()
    assert len(rows(collected.run, "bytes_dram")) == 15
    assert "sampled-by-number" in codes(collected)


def test_a_program_that_the_gate_harms_is_counted_without_it(
    fake_ncu, tmp_path, trace, seen, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU", "harmed")
    trace(*launches_of_the_report())
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert "--preload-library" not in seen()
    assert (collected.program_code, collected.failure) == (0, None)
    assert "sampled-by-number" in codes(collected)


def test_missing_permission_does_not_run_the_program_again(
    fake_ncu, tmp_path, trace, seen, monkeypatch
):
    monkeypatch.setenv("FAKE_NCU", "permission")
    trace(*launches_of_the_report())
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert isinstance(collected.failure, PermissionDeniedError)
    assert "--preload-library" in seen()


def test_counters_that_ncu_refuses_are_left_out_and_told(fake_ncu, tmp_path, monkeypatch, seen):
    monkeypatch.setenv("FAKE_NCU", "refuse")
    options = NcuOptions(chip="9.0", conditions=Conditions(replay=Replay.RANGE))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    assert collected.failure is None
    asked = seen()[seen().index("--metrics") + 1]
    assert "__sass_" not in asked
    assert "dram__bytes.sum" in asked
    assert not {"--kernel-name", "--kernel-id"} & {*seen()}
    assert "counters-refused" in codes(collected)


@pytest.fixture
def ranges(monkeypatch):
    """The fake ncu writes the report of a range of two kernels."""
    monkeypatch.setenv("FAKE_NCU_REPORT", str(DATA / "ncu_rep" / "kind-range.ncu-rep.gz"))
    return NcuOptions(chip="9.0", conditions=Conditions(replay=Replay.RANGE))


def test_a_range_has_its_counters_of_ncu_and_its_time_of_a_trace(fake_ncu, tmp_path, trace, ranges):
    trace(traced("_Z4addsPfi", number=1), traced("_Z4addsPfi", number=2))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", ranges)
    # 4096 sectors of 32 bytes; twice 10 us.
    columns = "kind, name, bytes_l2, round(duration_s * 1e6), sm_clock_hz, counters_from"
    assert rows(collected.run, columns) == [("range", "range", 131072, 20, None, None)]
    assert not {"no-trace", "range-time-unknown", "runs-differ", "collectives-excluded"} & codes(
        collected
    )
    assert collected.run.provenance[0].extra["times_from"] == "a test"


def test_a_range_that_the_trace_does_not_have_stays_without_time(fake_ncu, tmp_path, trace, ranges):
    trace(traced("_Z4addsPfi", region=0))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", ranges)
    assert rows(collected.run, "duration_s, bytes_l2") == [(None, 131072)]
    assert {"no-trace", "range-time-unknown"} <= codes(collected)
    trace(traced("_Z4addsPfi", region=1), traced("_Z4addsPfi", region=2, number=1))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", ranges)
    assert rows(collected.run, "duration_s, bytes_l2") == [(None, 131072)]
    assert {"runs-differ", "range-time-unknown"} <= codes(collected)


def test_a_range_without_a_trace_has_no_time_and_says_so(fake_ncu, tmp_path, trace, ranges):
    trace(missing="nsys is not on PATH")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", ranges)
    assert rows(collected.run, "duration_s") == [(None,)]
    assert {"no-trace", "range-time-unknown"} <= codes(collected)
    ncu_times = dataclasses.replace(ranges, times=Times.NCU)
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", ncu_times)
    assert "no-trace" not in codes(collected)
    assert "range-time-unknown" in codes(collected)


def test_a_report_whose_results_cannot_be_read_is_kept_and_not_called_empty(
    fake_ncu, tmp_path, monkeypatch
):
    import report_writer as writer

    path = tmp_path / "strange.gz"
    path.write_bytes(gzip.compress(writer.header() + writer.block(results=[b"\xff" * 60]), mtime=0))
    monkeypatch.setenv("FAKE_NCU_REPORT", str(path))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", HOPPER)
    assert collected.failure.slug == "report-unread"
    assert str(collected.failure).startswith("ncu counted 4 launches, ranges or graphs, and none")
    assert "ncu --import REPORT --csv --page raw" in str(collected.failure)
    assert collected.report == tmp_path / "r.ncu-rep"


def test_when_ncu_refuses_all_counters_it_is_asked_once(fake_ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "refuse")
    options = NcuOptions(chip="9.0", columns=("flop_vector_fp32",))
    failure = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options).failure
    assert "is not supported in range replay" in str(failure)


def test_what_will_be_counted_is_known_from_the_trace(fake_ncu, tmp_path, trace):
    trace(*launches_of_the_report(gemms=10, adds=1), traced("ncclKernel", number=50))
    seen = []
    collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(2), watch=seen.append)
    assert seen[-1].expected == 3


def test_collectives_keep_their_times(fake_ncu, tmp_path, trace):
    trace(*launches_of_the_report(), traced("ncclDevKernel_AllReduce", number=9, duration_us=500))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert rows(collected.run, "counters_from, bytes_dram, round(duration_s * 1e6)")[-1] == (
        None,
        None,
        500,
    )
    assert "collectives-not-counted" in codes(collected)


def test_a_full_run_can_have_the_times_of_a_trace(fake_ncu, tmp_path, trace):
    trace(*launches_of_the_report())
    options = NcuOptions(chip="9.0", times=Times.TRACE)
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", options)
    found = rows(collected.run, "counters_from, round(duration_s * 1e6), bytes_dram > 0")
    assert found == [("measured", 10, True)] * 4
    assert "sampled" not in codes(collected)


def test_a_sample_without_a_trace_says_that_its_totals_are_not_the_programs(
    fake_ncu, tmp_path, trace
):
    trace(missing="nsys is not on PATH")
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    notices = {notice.code: notice for notice in collected.run.all_notices}
    assert notices["no-trace"].partial
    assert "nsys is not on PATH" in notices["no-trace"].message


def test_a_program_that_fails_alone_is_not_counted(fake_ncu, tmp_path, trace, seen):
    trace(*launches_of_the_report(), code=3)
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert (collected.run, collected.program_code) == (None, 3)
    assert "ended with code 3 in its run without ncu" in str(collected.failure)
    assert not (tmp_path / "seen").exists()


def test_a_signal_that_ends_the_program_is_told_as_shells_do(fake_ncu, tmp_path, trace):
    trace(*launches_of_the_report(), code=-int(signal.SIGSEGV))
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert collected.program_code == 128 + signal.SIGSEGV


def test_an_interrupt_of_the_traced_run_ends_it_all(fake_ncu, tmp_path, trace):
    trace(*launches_of_the_report(), code=-2, stopped_by=2)
    collected = collect_with_ncu(PROGRAM, tmp_path / "r.parquet", sampled(1))
    assert (collected.run, collected.stopped_by) == (None, 2)


def test_names_and_shapes_of_the_recorded_report_are_what_the_tests_think():
    assert GEMM == "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
    assert ADD.startswith("_ZN2at6native29vectorized_elementwise_kernel")
