"""Nsight Compute on a GPU: a C++ program of known work, in full and in samples."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mansard.collect.cupti.driver import load_driver
from mansard.collect.ncu import (
    Conditions,
    Graphs,
    NcuOptions,
    Replay,
    Selection,
    Times,
    collect_with_ncu,
)
from mansard.collect.ncu.installation import find_ncu
from mansard.engine import connect, parquet
from mansard.errors import MansardError

pytestmark = pytest.mark.gpu

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "ncu_programs"
ROUNDS = 5
#: Worked out from known.cu: fused multiply-adds 2, adds and muls 1.
ROUND_FLOP = (2 * 1024 * 2 + 2 * 2048 + 64 + 128) * 128 * 256 + 2 * 1024 * 256 * 256
CONFIGURATIONS = 7


def built(source, path):
    """A program, built; skips without a GPU, ncu or nvcc."""
    try:
        if not load_driver().device_count:
            pytest.skip("needs a GPU: the driver sees none")
        find_ncu()
    except MansardError as error:
        pytest.skip(f"needs a GPU and ncu: {error}")
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    subprocess.run(["nvcc", "-O2", "-arch=native", "-o", str(path), str(source)], check=True)
    return str(path)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Kernels of known work in seven configurations."""
    return built(PROGRAMS / "known.cu", tmp_path_factory.mktemp("known work") / "known work")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A range of two kernels and two launches of a graph."""
    return built(PROGRAMS / "kinds.cu", tmp_path_factory.mktemp("kinds") / "kinds")


def sums(run):
    with connect() as connection:
        return connection.execute(
            "SELECT count(*), sum(flop_vector_fp32), count(*) FILTER (counters_from = 'measured'), "
            "count(*) FILTER (counters_from = 'inferred'), min(duration_s) > 0 "
            f"FROM {parquet(run.files)} WHERE kind = 'kernel'"
        ).fetchone()


def test_all_launches_counted_give_the_work_exactly(known, tmp_path):
    collected = collect_with_ncu((known, str(ROUNDS)), tmp_path / "full.parquet")
    assert collected.failure is None
    launches, flop, *_, timed = sums(collected.run)
    assert (launches, flop, timed) == (7 * ROUNDS, ROUNDS * ROUND_FLOP, True)


@pytest.mark.parametrize("replay", [Replay.KERNEL, Replay.APPLICATION])
@pytest.mark.parametrize("sample", [1, 2])
def test_a_sample_gives_the_same_work_exactly(known, tmp_path, sample, replay):
    options = NcuOptions(selection=Selection(sample=sample), conditions=Conditions(replay=replay))
    collected = collect_with_ncu((known, str(ROUNDS)), tmp_path / "sampled.parquet", options)
    launches, flop, measured, inferred, timed = sums(collected.run)
    assert (launches, flop, timed) == (7 * ROUNDS, ROUNDS * ROUND_FLOP, True)
    # More where times of one kernel and shape scatter.
    assert measured >= CONFIGURATIONS * sample
    assert measured + inferred == 7 * ROUNDS


def test_the_chosen_launches_are_shown_to_ncu(known, tmp_path):
    options = NcuOptions(selection=Selection(sample=1))
    collected = collect_with_ncu((known, str(ROUNDS)), tmp_path / "shown.parquet", options)
    assert "sampled-by-number" not in {notice.code for notice in collected.run.all_notices}
    launches, _, measured, *_ = sums(collected.run)
    assert 0 < measured < launches


#: Bytes that kinds.cu writes, each once: kernels of 64 and of 128 blocks of 128 threads.
GRAPH_BYTES, KERNEL_BYTES = 3 * 4 * 64 * 128, 4 * 128 * 128


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(replay=Replay.RANGE), [("range", 2 * KERNEL_BYTES)]),
        (Conditions(replay=Replay.APP_RANGE), [("range", 2 * KERNEL_BYTES)]),
        (
            Conditions(graphs=Graphs.GRAPH),
            [("graph", GRAPH_BYTES)] * 2 + [("kernel", KERNEL_BYTES)] * 2,
        ),
    ],
    ids=["range", "app-range", "graph"],
)
def test_ranges_and_graphs_are_rows_with_what_ncu_counts_of_them(
    kinds, tmp_path, conditions, expected
):
    options = NcuOptions(conditions=conditions, keep_report=tmp_path / "whole.ncu-rep")
    collected = collect_with_ncu((kinds,), tmp_path / "whole.parquet", options)
    assert collected.failure is None
    said = {notice.code for notice in collected.run.all_notices}
    assert "counters-refused" in said
    assert not {"runs-differ", "no-trace", "range-time-unknown"} & said
    with connect() as connection:
        rows = connection.execute(
            "SELECT kind, bytes_l2, flop_vector_fp32, duration_s "
            f"FROM {parquet(collected.run.files)} ORDER BY launch"
        ).fetchall()
    assert [row[:2] for row in rows] == expected
    # Of a trace: kernels of a few microseconds, without what ncu adds.
    assert all(flop is None and 0 < time_s < 1e-4 for _, _, flop, time_s in rows)


def test_a_range_may_be_named(kinds, tmp_path):
    if not (Path(shutil.which("nvcc")).resolve().parents[1] / "include" / "nvtx3").exists():
        pytest.skip("needs the headers of NVTX")
    options = NcuOptions(
        conditions=Conditions(replay=Replay.RANGE), selection=Selection(nvtx_include=("pair/",))
    )
    collected = collect_with_ncu((kinds,), tmp_path / "named.parquet", options)
    assert collected.failure is None
    with connect() as connection:
        rows = connection.execute(
            "SELECT kind, phase, bytes_l2, 0 < duration_s AND duration_s < 1e-4 "
            f"FROM {parquet(collected.run.files)}"
        ).fetchall()
    assert rows == [("range", "pair", 2 * KERNEL_BYTES, True)]


def test_kernels_of_graphs_and_ranges_are_counted_one_by_one_by_default(kinds, tmp_path):
    collected = collect_with_ncu((kinds,), tmp_path / "kernels.parquet")
    launches, flop, *_ = sums(collected.run)
    assert (launches, flop) == (2 * 3 + 2, 2 * 3 * 64 * 128 * 100 + 128 * 128 * (10 + 20))


def test_times_of_a_trace_belong_to_the_counted_launches(known, tmp_path):
    options = NcuOptions(times=Times.TRACE)
    collected = collect_with_ncu((known, str(ROUNDS)), tmp_path / "traced.parquet", options)
    launches, flop, measured, _, timed = sums(collected.run)
    assert (launches, measured, timed) == (7 * ROUNDS, 7 * ROUNDS, True)
    assert flop == ROUNDS * ROUND_FLOP


def test_the_exit_code_of_the_program_is_kept_under_ncu(known, tmp_path):
    collected = collect_with_ncu((known, "1", "7"), tmp_path / "failed.parquet")
    assert collected.program_code == 7
    assert sums(collected.run)[0] == 7
