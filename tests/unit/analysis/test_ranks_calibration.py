"""A hundred clean jobs raise no alarm; slow ranks and slow nodes that were put in are all found.

Whole analyses of files, with seeds that are fixed: log-normal noise of each launch and each rank as
in the synthetic jobs of benchmarks, ranks on nodes of eight. By design one clean job in a thousand
raises an alarm.
"""

import numpy as np
import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.store import write_run

pytestmark = pytest.mark.slow

KERNELS = 12
LAUNCH_NOISE, RANK_NOISE = 0.05, 0.004


@pytest.fixture(scope="module")
def connection():
    with engine.connect(threads=1) as found:
        yield found


@pytest.fixture
def fleet(connection, tmp_path):
    """Analyse a job: its compute times are those of a model, times a factor by rank."""

    def made(seed, *, ranks=64, launches=48, slower=None):
        draw = np.random.default_rng([7, seed, ranks])
        kernel = np.tile(np.arange(launches) % KERNELS, ranks)
        rank = np.repeat(np.arange(ranks), launches)
        usual = np.exp(np.random.default_rng(1).normal(-9, 1.0, KERNELS))[kernel]
        factor = np.exp(draw.normal(0, RANK_NOISE, ranks))
        for number, times in (slower or {}).items():
            factor[number] *= times
        duration_s = usual * factor[rank] * np.exp(draw.normal(0, LAUNCH_NOISE, len(rank)))
        connection.register("drawn", {"rank": rank, "kernel": kernel, "duration_s": duration_s})
        select = (
            "SELECT 'node' || (rank // 8) AS host, rank, 'kernel' || kernel AS name, 'step' AS phase, "
            "duration_s FROM drawn"
        )
        path = tmp_path / "run.parquet"
        write_run(connection, select, Provenance(), path)
        connection.unregister("drawn")
        return analyze(Run(files=(path,), provenance=(Provenance(),), label="run")).fleet

    return made


@pytest.mark.parametrize("tens", range(10))
def test_a_hundred_clean_jobs_have_no_straggler_and_no_slow_node(fleet, tens):
    for seed in range(10 * tens, 10 * tens + 10):
        found = fleet(seed)
        assert ([s.rank for s in found.stragglers], [n.host for n in found.nodes if n.slow]) == (
            [],
            [],
        ), seed


@pytest.mark.parametrize("factor", [1.1, 2.0])
def test_every_slow_rank_is_found_and_no_other(fleet, factor):
    for seed in range(10):
        slow = {(7 * seed + 3) % 64: factor, (11 * seed + 40) % 64: factor}
        found = {straggler.rank for straggler in fleet(seed, slower=slow).stragglers}
        assert found == set(slow), seed


def test_a_slow_node_is_found_and_no_other(fleet):
    for seed in range(5):
        slow = dict.fromkeys(range(8 * (seed + 2), 8 * (seed + 3)), 1.1)
        found = fleet(seed, ranks=128, slower=slow)
        assert [node.host for node in found.nodes if node.slow] == [f"node{seed + 2}"], seed
