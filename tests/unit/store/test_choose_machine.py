"""Which machine a run is placed under, and which is refused."""

import pytest

from mansard.errors import MachineError
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.store import save_machine
from mansard.store.choose_machine import machine_for

ROOF = Ceiling(kind="compute", value=1e11, unit="flop/s", path="vector fp32")
H200 = DeviceFacts(name="NVIDIA H200", compute_capability="9.0")


def run_of(device=None, **more):
    origin = Provenance(devices=(device,) if device else (), **more)
    return Run(files=(), provenance=(origin,), label="step")


@pytest.fixture
def cpu(tmp_path):
    """As ``mansard bench`` writes it where there is no GPU."""
    path = tmp_path / "machine.json"
    save_machine(
        Machine(
            name="machine",
            basis="measured",
            device=DeviceFacts(name="Some CPU", sm_count=2),
            ceilings=(ROOF,),
            provenance={"cpus": [0, 1], "architecture": "x86_64"},
        ),
        path,
    )
    return str(path)


@pytest.mark.parametrize("run", [run_of(H200), run_of(counter_table="paper-volta")])
def test_the_roofs_of_a_cpu_are_refused_for_a_run_of_a_gpu(cpu, run):
    with pytest.raises(
        MachineError, match=r"'machine' are of a CPU \(Some CPU\), and step"
    ) as told:
        machine_for(run, cpu)
    assert "'mansard bench' wrote on that GPU" in str(told.value)
    assert told.value.slug == "cpu-machine"


def test_the_name_of_the_gpu_is_told(cpu):
    with pytest.raises(MachineError, match="step is of NVIDIA H200"):
        machine_for(run_of(H200), cpu)


def test_a_run_that_nobody_says_is_of_a_gpu_takes_them(cpu):
    machine, told = machine_for(run_of(), cpu)
    assert machine.is_cpu
    assert told == ()


def test_a_file_that_does_not_say_its_device_is_no_cpu(tmp_path):
    path = tmp_path / "ert.json"
    save_machine(Machine(name="ert", basis="measured", ceilings=(ROOF,)), path)
    machine, _ = machine_for(run_of(H200), str(path))
    assert (machine.name, machine.is_cpu) == ("ert", False)


def test_the_roofs_of_another_gpu_are_taken(tmp_path):
    machine, _ = machine_for(run_of(H200), "v100-paper")
    assert not machine.is_cpu
