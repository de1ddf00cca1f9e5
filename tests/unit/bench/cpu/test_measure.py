import sys

import msgspec
import pytest

from mansard.bench.cpu import CpuOptions, measure_cpu
from mansard.errors import UsageError
from mansard.model.machine import Machine


@pytest.fixture(scope="module")
def machine():
    return measure_cpu(CpuOptions(quick=True, only=("vector fp64", "l1 read", "l1 copy")))


def test_a_real_machine_has_ceilings_with_samples_and_evidence(machine):
    assert machine.basis == "measured"
    assert not machine.partial
    measured = [ceiling for ceiling in machine.ceilings if ceiling.status == "measured"]
    assert {ceiling.path or f"{ceiling.level} {ceiling.access}" for ceiling in measured} == {
        "vector fp64",
        "l1 read",
        "l1 copy",
    }
    for ceiling in measured:
        assert len(ceiling.samples) >= 20
        assert min(ceiling.samples) <= ceiling.value <= max(ceiling.samples)
        assert ceiling.sm_clock_hz > 0.3e9
        assert ceiling.evidence["machine_code"]["spills"] == 0


def test_no_core_does_more_than_any_core_can(machine):
    fp64 = machine.compute("vector fp64")
    # 2 pipes of 512 bits or 4 of 128: nothing built does more than 32 FLOP a cycle. Half as much
    # again is left for a clock that was disturbed.
    assert fp64.evidence["flop_per_cycle_per_core"] < 48


def test_provenance_says_how(machine):
    for key in ("llvmlite", "llvm", "date", "load_average_before", "cpus", "caches", "rule"):
        assert key in machine.provenance
    assert machine.provenance["effort"] == "quick"


def test_a_machine_survives_its_file(machine):
    text = msgspec.json.encode(machine)
    read = msgspec.json.decode(text, type=Machine)
    assert read.bandwidth("l1").samples == machine.bandwidth("l1").samples
    assert msgspec.json.encode(read) == text


def test_without_llvmlite_every_ceiling_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    machine = measure_cpu(CpuOptions(quick=True, only=("vector fp64", "l1 read"), threads=1))
    assert {ceiling.status for ceiling in machine.ceilings} == {"refused"}
    assert all("pip install llvmlite" in ceiling.reason for ceiling in machine.ceilings)


def test_unknown_parts_are_refused_before_anything_runs():
    with pytest.raises(UsageError):
        measure_cpu(CpuOptions(only=("l9",)))
