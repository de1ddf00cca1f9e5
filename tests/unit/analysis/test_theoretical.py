"""Ceilings from attributes, against the vendors' own figures for dense work."""

import tomllib
from importlib import resources

import pytest

from mansard.analysis import theoretical
from mansard.analysis.theoretical import lacking_paths
from mansard.model.device import DeviceFacts
from mansard.model.paths import FLOP_PATHS, PATHS

TERA = 1e12

#: (compute capability, SMs, clock in GHz) and the published dense figures in T(FL)OP/s.
PUBLISHED = {
    "V100 SXM2": (("7.0", 80, 1.53), {"vector fp64": 7.8, "vector fp32": 15.7, "vector fp16": 31.4, "tensor fp16": 125}),
    "T4": (("7.5", 40, 1.59), {"vector fp32": 8.1, "tensor fp16": 65, "tensor int8": 130, "tensor int4": 260}),
    "A100 SXM": (("8.0", 108, 1.41), {"vector fp64": 9.7, "vector fp32": 19.5, "vector fp16": 78, "tensor fp64": 19.5, "tensor tf32": 156, "tensor fp16": 312, "tensor bf16": 312, "tensor int8": 624, "tensor int4": 1248, "tensor int1": 4992}),
    "RTX A6000": (("8.6", 84, 1.80), {"vector fp32": 38.7, "tensor tf32": 77.4, "tensor fp16": 154.8, "tensor bf16": 154.8, "tensor int8": 309.7, "tensor int4": 619.3}),
    "AGX Orin": (("8.7", 16, 1.3), {"vector fp32": 5.3, "tensor int8": 85}),
    "L40S": (("8.9", 142, 2.505), {"vector fp32": 91.1, "tensor tf32": 182.1, "tensor fp16": 364.2, "tensor fp8": 728.5, "tensor int8": 728.5}),
    "H100 SXM, high precision": (("9.0", 132, 1.98), {"vector fp64": 33.5, "vector fp32": 66.9, "vector fp16": 133.8, "tensor fp64": 66.9}),
    "H100 SXM, low precision": (("9.0", 132, 1.83), {"tensor tf32": 494.7, "tensor fp16": 989.4, "tensor bf16": 989.4, "tensor fp8": 1978.9, "tensor int8": 1978.9}),
    "B200": (("10.0", 148, 1.85), {"tensor fp16": 2250, "tensor bf16": 2250, "tensor fp8": 4500, "tensor fp6": 4500, "tensor fp4": 9000, "tensor int8": 4500}),
    "B300": (("10.3", 148, 2.03), {"vector fp64": 1.2, "tensor fp4": 15000}),
    "RTX PRO 6000": (("12.0", 188, 2.617), {"vector fp32": 125.95, "tensor tf32": 251.9, "tensor fp16": 503.8, "tensor fp8": 1007.6, "tensor fp4": 2015.2}),
}  # fmt: skip


@pytest.mark.parametrize("part", PUBLISHED)
def test_compute_roofs_equal_the_published_dense_figures(part):
    (capability, sms, ghz), figures = PUBLISHED[part]
    machine = theoretical(
        DeviceFacts(compute_capability=capability, sm_count=sms, sm_clock_max_hz=ghz * 1e9)
    )
    found = {path: machine.compute(path).value / TERA for path in figures}
    assert found == pytest.approx(figures, rel=0.02)


def test_device_memory_is_clock_times_width_at_two_transfers_a_clock():
    b200 = DeviceFacts(compute_capability="10.0", dram_clock_hz=3.996e9, dram_bus_bits=7680)
    assert theoretical(b200).bandwidth("dram").value == pytest.approx(7.67e12, rel=1e-3)
    v100 = DeviceFacts(compute_capability="7.0", dram_clock_hz=877e6, dram_bus_bits=4096)
    assert theoretical(v100).bandwidth("dram").value == pytest.approx(898e9, rel=1e-3)


def test_l1_and_shared_memory_share_one_path():
    v100 = DeviceFacts(compute_capability="7.0", sm_count=80, sm_clock_max_hz=1.4e9)
    machine = theoretical(v100)
    assert machine.bandwidth("l1").value == machine.bandwidth("shared").value == 14336e9
    t4 = DeviceFacts(compute_capability="7.5", sm_count=80, sm_clock_max_hz=1.4e9)
    assert theoretical(t4).bandwidth("l1").value == 7168e9


def test_every_ceiling_is_labelled_and_none_is_made_up():
    facts = DeviceFacts(
        name="NVIDIA H200",
        compute_capability="9.0",
        sm_count=132,
        sm_clock_max_hz=1.98e9,
        dram_clock_hz=3.201e9,
        dram_bus_bits=6016,
    )
    machine = theoretical(facts)
    assert machine.basis == "theoretical"
    assert machine.name == "nvidia-h200-theoretical"
    assert {ceiling.status for ceiling in machine.ceilings} == {"theoretical"}
    assert all(ceiling.source for ceiling in machine.ceilings)
    assert machine.bandwidth("l2") is None
    assert machine.launch_cost("graph node") is None
    assert "no L2 roof" in " ".join(machine.caveats)


@pytest.mark.parametrize(
    "facts",
    [
        DeviceFacts(),
        DeviceFacts(compute_capability="3.5", sm_count=15, sm_clock_max_hz=1e9),
        DeviceFacts(sm_count=15, sm_clock_max_hz=1e9, dram_clock_hz=1e9, dram_bus_bits=64),
        DeviceFacts(compute_capability="9.0"),
        # Of damaged files.
        DeviceFacts(compute_capability="9.0", sm_count=132, sm_clock_max_hz=1e308),
        DeviceFacts(compute_capability="9.0", sm_count=-1, sm_clock_max_hz=1e9),
        DeviceFacts(compute_capability="9.0", dram_clock_hz=1e308, dram_bus_bits=512),
    ],
)
def test_an_unknown_gpu_has_no_roofs(facts):
    assert theoretical(facts) is None


def test_what_cannot_be_computed_is_said():
    machine = theoretical(DeviceFacts(compute_capability="9.0", sm_count=132, sm_clock_max_hz=1e9))
    assert machine.bandwidth("dram") is None
    assert "no roof of device memory" in " ".join(machine.caveats)


def test_geforce_parts_are_warned_of_their_half_rate():
    facts = {"compute_capability": "8.9", "sm_count": 128, "sm_clock_max_hz": 2.52e9}
    geforce = theoretical(DeviceFacts(name="NVIDIA GeForce RTX 4090", **facts))
    assert "half of the roof" in " ".join(geforce.caveats)
    assert "half of the roof" in " ".join(theoretical(DeviceFacts(**facts)).caveats)
    assert "half of the roof" not in " ".join(
        theoretical(DeviceFacts(name="NVIDIA L40S", **facts)).caveats
    )


def test_the_table_names_paths_that_exist_and_cites_its_sources():
    text = (resources.files("mansard.analysis") / "rates.toml").read_text("utf-8")
    known = {path.name for path in PATHS}
    for capability, entry in tomllib.loads(text).items():
        assert entry["source"], capability
        assert entry["l1_source"], capability
        assert entry["rates"].keys() <= known
        assert set(entry["lacks"]) <= {path.name for path in FLOP_PATHS}
        assert not set(entry["lacks"]) & entry["rates"].keys()
        assert set(entry.get("half_on_geforce", ())) <= known


def test_what_a_chip_lacks_is_known_by_its_capability():
    assert "tensor bf16" in lacking_paths("7.0")
    assert "tensor bf16" not in lacking_paths("8.0")
    assert lacking_paths("9.9") is None
    assert lacking_paths(None) is None
