"""A study without a GPU: cells made up by the test, with runs that come with Mansard as theirs."""

import dataclasses
import functools

import msgspec
import pytest

from mansard.demo import shipped_run
from mansard.model.device import DeviceFacts
from mansard.study.cell import Flop, Folder
from mansard.study.measure import blank, counted_flop
from mansard.study.plan import deepcam
from mansard.workloads import PhaseFlop, Workload

H200 = DeviceFacts(name="NVIDIA H200", uuid="GPU-1")


@dataclasses.dataclass
class Step:
    """A step of known duration on a clock of its own."""

    duration_s: float = 0.1
    now_s: float = 0.0
    steps: int = 0

    def clock(self):
        return self.now_s

    def step(self):
        self.now_s += self.duration_s
        self.steps += 1


def _workload(configuration, step=None, **options):
    """The least workload: two phases of known work and a loss that falls."""
    step = step or Step()
    return Workload(
        **{
            "configuration": configuration,
            "step": step.step,
            "loss": lambda: 1.0 / (1 + step.steps),
            "parameters": 7,
            "flop": (
                PhaseFlop(phase="forward", kind="conv", flop=100),
                PhaseFlop(phase="backward", kind="conv", flop=200),
            ),
            "synchronize": lambda: None,
            "phases": "torch",
            **options,
        }
    )


def _record(cell, **fields):
    """The record of a cell that ran on a GPU, in four steps of 40 ms unless told otherwise."""
    known = {
        "state": "measured",
        "created": "2026-01-02T03:04:05+00:00",
        "device": H200,
        "driver_version": "580.1",
        "versions": {"torch": "2.13"},
        "parameters": 39_000_000,
        "analytic": (
            Flop(phase="forward", kind="conv", flop=2.3e12),
            Flop(phase="backward", kind="conv", flop=4.4e12),
        ),
        "step_s": (0.040, 0.040, 0.040, 0.040),
        "timed_by": "device events between steps",
        "queued_step_s": 0.040,
        "energy_j": 20.0,
        "energy_steps": 50,
        "losses": (1.1, 0.9),
    }
    return msgspec.structs.replace(blank(cell, "paper"), **(known | fields))


@functools.cache
def _counted(run):
    return counted_flop(shipped_run(run).files[0])


@pytest.fixture
def workload_of():
    return _workload


@pytest.fixture
def step_of():
    return Step


@pytest.fixture
def cells():
    return deepcam("cuda:0")


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "study")
    made.make()
    return made


@pytest.fixture
def keep(folder):
    """Put a measured cell into the folder, with the shipped step as its run."""

    def put(cell, *, run="h200-deeplabv3-step", **fields):
        record = _record(cell, **fields)
        if run:
            file = folder.run_file(cell.name)
            file.write_bytes(shipped_run(run).files[0].read_bytes())
            record = msgspec.structs.replace(record, run=file.name, counted=_counted(run))
        folder.save(record)
        return record

    return put
