"""Which launches a latency is made of, on a GPU that only takes notes."""

import types

import numpy as np
import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

from mansard.bench.cuda.latency import measure_latency
from mansard.bench.memory_plan import memory_tasks
from mansard.bench.messages import Opened, Settings
from mansard.bench.steady import Timing
from mansard.model.device import DeviceFacts

LINES = 8 * 1024**2 // 128


class Notes:
    """An H200 whose L2 answers after 353 cycles in the first pass and after 288 from then on."""

    def __init__(self):
        self.steps = []
        self.cycles = 0

    def allocate(self, size):
        return types.SimpleNamespace(address=1 << 20, size=size)

    upload = allocate

    def zero(self, _):
        pass

    def free(self, *_):
        pass

    def start(self, variant, *arguments, blocks=None):
        if variant.entry == "chase_global":
            count = int(arguments[1])
            done = sum(self.steps)
            self.steps.append(count)
            self.cycles = sum(353 if done + step < LINES else 288 for step in range(count))

    def timed(self, start, _):
        start()
        return [Timing(1e-3, 1e9)]

    def download(self, *_):
        return np.array([self.cycles], np.uint64)


def session(gpu, repeats):
    numbers = {"l2_bytes": 60.0 * 1024**2}
    return types.SimpleNamespace(gpu=gpu, settings=Settings(repeats=repeats), numbers=numbers)


def task(level):
    facts = DeviceFacts(sm_count=132, l2_bytes=60 * 1024**2)
    return next(t for t in memory_tasks(Opened(facts=facts)) if t.name == f"{level} latency")


@pytest.mark.parametrize("repeats", [5, 20])
def test_a_short_and_a_long_run_find_the_same_latency_of_l2(repeats):
    # A quick run once gave 179 ns, a whole one 145 ns of the same card: it saw the first pass alone.
    found = measure_latency(session(Notes(), repeats), task("l2"))
    assert found.values == (pytest.approx(288e-9),) * repeats
    assert found.evidence["cycles"] == 288
    assert found.evidence["first_pass_cycles"] == 353


def test_device_memory_is_not_passed_over_before():
    gpu = Notes()
    found = measure_latency(session(gpu, 3), task("dram"))
    assert len(gpu.steps) == 3
    assert "first_pass_cycles" not in found.evidence
