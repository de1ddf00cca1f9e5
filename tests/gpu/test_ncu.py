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


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(replay=Replay.RANGE),
        Conditions(replay=Replay.APP_RANGE),
        Conditions(graphs=Graphs.GRAPH),
    ],
    ids=["range", "app-range", "graph"],
)
def test_ranges_and_graphs_are_rows_with_what_ncu_counts_of_them(kinds, tmp_path, conditions):
    options = NcuOptions(conditions=conditions)
    collected = collect_with_ncu((kinds,), tmp_path / "whole.parquet", options)
    assert collected.failure is None
    assert "counters-refused" in {notice.code for notice in collected.run.all_notices}
    with connect() as connection:
        rows = connection.execute(
            "SELECT kind, bytes_l2 > 0, flop_vector_fp32 "
            f"FROM {parquet(collected.run.files)} WHERE kind IN ('range', 'graph')"
        ).fetchall()
    assert rows
    assert all(counted and flop is None for _, counted, flop in rows)


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
