"""The public function: which device is measured."""

import pytest

import mansard
import mansard.bench
from mansard.bench import Options, entry, gpu
from mansard.errors import DeviceError, UsageError
from mansard.model.machine import Machine

CPU = Machine(name="cpu", basis="measured")
GPU = Machine(name="gpu", basis="measured")


@pytest.fixture
def devices(monkeypatch):
    """Fakes: a CPU that always works; a GPU that works unless `broken` says why not."""
    state = {"broken": None, "asked": []}

    def measure_gpu(index, choice, _progress):
        state["asked"].append((index, choice))
        if state["broken"] is not None:
            raise state["broken"]
        return GPU

    monkeypatch.setattr(gpu, "measure_gpu", measure_gpu)
    monkeypatch.setattr(entry, "_cpu", lambda _options, _progress: CPU)
    return state


def test_the_first_gpu_is_the_default(devices):
    assert entry.bench() is GPU
    assert devices["asked"][0][0] == 0


def test_without_a_gpu_the_cpu_is_measured_and_the_reason_is_said(devices):
    devices["broken"] = gpu.NoGpuError("there is no NVIDIA driver on this machine")
    seen = []
    machine = entry.bench(progress=lambda what, _share: seen.append(what))
    assert machine.name == "cpu"
    assert machine.caveats == (
        "No GPU is used, the CPU is measured: there is no NVIDIA driver on this machine.",
    )
    assert machine.caveats[0] in seen


def test_a_gpu_that_was_asked_for_is_not_replaced(devices):
    devices["broken"] = gpu.NoGpuError("there is no cuda:3")
    with pytest.raises(DeviceError, match="cuda:3"):
        entry.bench("cuda:3")


def test_a_failure_after_opening_is_no_reason_to_measure_something_else(devices):
    devices["broken"] = DeviceError("NVRTC does not compile for 7.0")
    with pytest.raises(DeviceError, match="NVRTC"):
        entry.bench()


@pytest.mark.parametrize("device", ["cuda:x", "gpu", "cuda:-1", "cpu:0", "cuda:1:2", ""])
def test_a_device_that_is_none_is_refused(devices, device):
    if device == "":
        assert entry.bench(device) is GPU  # nothing given: the default
        return
    with pytest.raises(UsageError, match="give cpu, or cuda:0"):
        entry.bench(device)


def test_the_cpu_can_be_asked_for(devices):
    assert entry.bench("cpu") is CPU
    assert devices["asked"] == []


def test_a_study_needs_a_gpu(monkeypatch):
    with pytest.raises(UsageError, match="needs a GPU"):
        entry.bench("cpu", options=Options(study="fp16"))


def test_options_reach_the_plan(devices):
    entry.bench("cuda:1", options=Options(everything=True, quick=True, only=("l2",)))
    index, choice = devices["asked"][0]
    assert (index, choice.everything, choice.quick, choice.only) == (1, True, True, ("l2",))


def test_the_package_is_also_its_function(devices):
    # Importing a submodule binds `mansard.bench` to the package: the public name must still work.
    assert mansard.bench() is GPU
