"""How device memory is passed over, on a GPU that only takes notes."""

import types

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

from mansard.bench.cuda.session import Arrays
from mansard.bench.cuda.stream import measure_stream, tile_bytes
from mansard.bench.memory_plan import memory_tasks
from mansard.bench.messages import Opened, Outcome
from mansard.model.device import DeviceFacts

SIZE = 4 * 1024**3


class Session:
    """Samples of six iterations; notes the grid of each launch."""

    def __init__(self):
        self.grids = []
        self.gpu = types.SimpleNamespace(start=self.started)
        memory = tuple(types.SimpleNamespace(address=at) for at in (1, 2, 3))
        self.arrays = Arrays(memory, SIZE, "random")
        self.work = None
        self.numbers = {"l2_bytes": 60.0 * 1024**2}

    def started(self, variant, *arguments, blocks):
        self.grids.append(blocks)

    def choose(self, _key, variants, _starter, *, iterations):
        return variants[0]

    def once(self, _task, _problem):
        return None

    def sample(self, start, work, *, warm_s, evidence, iterations=0):
        assert iterations == 0  # so many as make a sample: a launch must not be most of it
        start(6)
        self.work = work
        return Outcome(values=(1.0,), clocks_hz=(None,), evidence=evidence)


def task(name):
    facts = DeviceFacts(sm_count=132, l2_bytes=60 * 1024**2)
    return next(t for t in memory_tasks(Opened(facts=facts)) if t.name == name)


@pytest.mark.parametrize(("access", "streams"), [("read", 1), ("copy", 2), ("triad", 3)])
def test_one_launch_passes_over_the_arrays_several_times(access, streams):
    session = Session()
    wanted = task(f"dram {access} random")
    found = measure_stream(session, wanted)
    tiles = SIZE // tile_bytes(wanted.variants[0])
    assert session.grids == [(tiles, 6)]
    assert session.work == streams * tiles * tile_bytes(wanted.variants[0])
    assert sum(found.evidence["bytes_per_pass"].values()) == streams * SIZE
