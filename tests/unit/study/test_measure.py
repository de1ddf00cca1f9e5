"""What the process of one cell writes: a measurement, or the reason why there is none."""

import contextlib
import dataclasses
import importlib.util
import os

import pytest

import mansard
from mansard.demo import shipped_run
from mansard.errors import CollectError, DeviceError, PermissionDeniedError
from mansard.model.device import DeviceFacts
from mansard.study import child, measure
from mansard.study.measure import Gpu, measure_cell
from mansard.study.plan import deepcam
from mansard.workloads import Unavailable
from mansard.workloads.workload import Operation

CPU_CELL = deepcam("cpu", "tiny")[0]
FACTS = DeviceFacts(name="NVIDIA H200")


class Sensor:
    joules = 0.0

    def energy_j(self):
        self.joules += 100.0
        return self.joules


@pytest.fixture
def on_cpu(folder, workload_of):
    def run(build=workload_of):
        return measure_cell(CPU_CELL, folder, preset="tiny", build_step=build)

    return run


@pytest.fixture
def on_gpu(folder, cells, workload_of, monkeypatch):
    """Measure the first cell; ``profile`` stands for the collector."""

    def run(profile, cell=cells[0]):
        monkeypatch.setattr(measure, "profile_steps", profile)
        monkeypatch.setattr(measure, "time_steps", lambda _workload, meter: _timed(meter, steps=20))
        return measure_cell(
            cell,
            folder,
            preset="paper",
            build_step=workload_of,
            gpu_of=lambda _device: Gpu(FACTS, "580.1", Sensor()),
        )

    return run


def _timed(meter, steps):
    from mansard.study.timing import Timed

    meter.start()
    meter.stop(steps)
    return Timed(step_s=(0.04,) * steps, timed_by="device events", queued_step_s=0.04)


def record_step(_workload, path, _level):
    path.write_bytes(shipped_run("h200-deeplabv3-step").files[0].read_bytes())


def test_a_cpu_cell_has_times_analytic_work_and_losses_and_no_counters(on_cpu, folder):
    found = on_cpu()
    assert found == folder.load(CPU_CELL.name)
    assert found.state == "measured"
    assert len(found.step_s) == 20
    assert [(each.phase, each.kind, each.flop) for each in found.analytic] == [
        ("forward", "conv", 100),
        ("backward", "conv", 200),
    ]
    assert found.losses[0] > found.losses[1]
    assert (found.counted, found.run, found.energy_j) == ((), None, None)
    assert found.collect_reason == "a CPU has no GPU counters"
    assert found.versions["mansard"]


def test_the_layers_are_kept_as_the_forward_pass_calls_them(on_cpu, folder, workload_of):
    layers = (
        Operation(name="stem", kind="conv", forward=10, backward=10),
        Operation(name="score", kind="gemm", forward=20, backward=40),
    )
    on_cpu(lambda configuration: workload_of(configuration, layers=layers))
    found = folder.load(CPU_CELL.name).layers
    assert [(each.name, each.kind, each.forward, each.backward) for each in found] == [
        ("stem", "conv", 10, 10),
        ("score", "gemm", 20, 40),
    ]


def test_what_cannot_be_built_is_unavailable_with_its_reason(on_cpu):
    def refuse(_configuration):
        raise Unavailable("Keras is not installed")

    found = on_cpu(refuse)
    assert (found.state, found.reason) == ("unavailable", "Keras is not installed")


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OutOfMemoryError("tried 2 GiB"), "out of memory (OutOfMemoryError): tried 2 GiB"),
        (
            RuntimeError("RESOURCE_EXHAUSTED: 3 GiB"),
            "out of memory (RuntimeError): RESOURCE_EXHAUSTED: 3 GiB",
        ),
        (ValueError("a\n b"), "ValueError: a b"),
        (KeyError(), "KeyError"),
        (DeviceError("no driver"), "DeviceError: no driver"),
    ],
    ids=["pytorch-memory", "xla-memory", "two-lines", "no-message", "ours"],
)
def test_an_error_of_the_framework_is_the_reason(on_cpu, workload_of, error, reason):
    def step():
        raise error

    found = on_cpu(lambda configuration: workload_of(configuration, step=_Failing(step)))
    assert (found.state, found.reason) == ("failed", reason)


@dataclasses.dataclass
class _Failing:
    step: object
    steps: int = 0


def test_a_gpu_cell_has_counted_work_and_energy(on_gpu):
    found = on_gpu(record_step)
    assert found.energy_j == 100.0 / 20
    assert found.device == FACTS
    assert {each.phase: each.flop for each in found.counted} == {
        "forward": 2327280096978.0,
        "backward": 4477272107552.0,
        "optimizer": 198383235.0,
    }
    assert found.collect_reason is None


def test_the_run_says_how_long_a_step_takes_when_nothing_records_it(on_gpu, folder):
    found = on_gpu(record_step)
    (origin,) = mansard.open(folder.run_file(found.name)).provenance
    assert origin.extra["step_host_s"] == "0.040000"  # not the 33 ms that the recorded run says
    assert "timed before" in origin.extra["step_host_from"]


def test_refused_counters_leave_a_trace_and_their_reason(on_gpu):
    levels = []

    def profile(workload, path, level):
        levels.append(level)
        if level == "counters":
            return PermissionDeniedError("the driver does not let this user read counters")
        return record_step(workload, path, level)

    found = on_gpu(profile)
    assert levels == ["counters", "trace"]
    assert found.state == "measured"
    assert found.run is not None
    assert found.collect_reason == "the driver does not let this user read counters"


def test_what_the_collector_recorded_before_it_stopped_is_kept(on_gpu):
    def profile(workload, path, level):
        record_step(workload, path, level)
        return CollectError("the iterations differ")

    found = on_gpu(profile)
    assert found.run is not None
    assert found.collect_reason == "the iterations differ"


def test_times_stay_where_nothing_can_be_collected(on_gpu):
    def profile(_workload, _path, _level):
        raise RuntimeError("a step broke under the profiler")

    found = on_gpu(profile)
    assert (found.state, found.run) == ("measured", None)
    assert len(found.step_s) == 20
    assert found.collect_reason == "RuntimeError: a step broke under the profiler"


def test_times_are_on_the_disk_before_the_profile_begins(on_gpu, folder, cells):
    seen = []

    def profile(workload, path, level):
        seen.append(folder.load(cells[0].name))
        return record_step(workload, path, level)

    on_gpu(profile)
    assert len(seen[0].step_s) == 20
    assert seen[0].collect_reason == "the process ended in the profile"


def test_an_earlier_run_does_not_stay_beside_a_later_record(on_gpu, folder, cells):
    folder.run_file(cells[0].name).write_bytes(b"old")
    found = on_gpu(lambda *_: CollectError("nothing was recorded"))
    assert found.run is None
    assert not folder.run_file(cells[0].name).exists()


@pytest.mark.parametrize("framework", ["keras-jax", "keras-tensorflow", "keras-torch"])
def test_the_backend_of_keras_is_chosen_before_it_starts(monkeypatch, framework):
    monkeypatch.setattr(os, "environ", {})
    cell = next(c for c in deepcam("cpu", "tiny") if c.configuration.framework == framework)
    child.prepare(cell)
    assert os.environ["KERAS_BACKEND"] == framework.removeprefix("keras-")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_xla_on_a_gpu_makes_no_command_buffers_and_leaves_memory(monkeypatch, cells):
    monkeypatch.setattr(os, "environ", {})
    child.prepare(next(c for c in cells if c.configuration.framework == "keras-jax"))
    assert "--xla_gpu_enable_command_buffer=" in os.environ["XLA_FLAGS"]
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_pytorch_needs_no_preparation(monkeypatch, cells):
    monkeypatch.setattr(os, "environ", {})
    child.prepare(cells[0])
    assert os.environ == {}


class FakeProfile:
    """A collector that needs three steps."""

    run, failure = "run", None

    def __init__(self, path, **options):
        self.path, self.options, self.left = path, options, 3

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    @property
    def done(self):
        return self.left == 0

    @contextlib.contextmanager
    def step(self):
        yield
        self.left -= 1


@pytest.fixture
def collector(monkeypatch):
    """The fake profiles that were taken."""
    import mansard.collect

    taken = []

    def profile(path, **options):
        taken.append(FakeProfile(path, **options))
        return taken[-1]

    monkeypatch.setattr(mansard.collect, "profile", profile)
    return taken


def test_the_collector_gets_as_many_steps_as_it_needs(collector, workload_of, step_of, tmp_path):
    step = step_of()
    workload = workload_of(CPU_CELL.configuration, step, phases="own")
    assert measure.profile_steps(workload, tmp_path / "run.parquet", "counters") is None
    assert step.steps == 3
    assert collector[0].options == {"level": "counters", "warmup": 3, "phases": "own"}


def test_a_collection_that_recorded_nothing_says_so(collector, workload_of, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeProfile, "run", None)
    workload = workload_of(CPU_CELL.configuration)
    failure = measure.profile_steps(workload, tmp_path / "run.parquet", "trace")
    assert str(failure) == "nothing was recorded"
