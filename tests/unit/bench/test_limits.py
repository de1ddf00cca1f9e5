"""Theory beside the measured values."""

import msgspec
import pytest

from mansard.bench.limits import limit_of
from mansard.bench.messages import Task
from mansard.model.device import DeviceFacts

H200 = DeviceFacts(
    name="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    sm_clock_max_hz=1.98e9,
    dram_clock_hz=3.201e9,
    dram_bus_bits=6016,
)


def compute(path, instruction="fma"):
    return Task(name="t", recipe="compute", kind="compute", path=path, instruction=instruction)


def bandwidth(level, access="read", instruction=None):
    return Task(
        name="t",
        recipe="cache",
        kind="bandwidth",
        level=level,
        access=access,
        instruction=instruction,
    )


@pytest.mark.parametrize(
    ("test", "clock", "expected"),
    [
        # The vendor's figures: 4096 FLOP a clock and SM at 1.83 GHz, 128 at 1.98 GHz.
        (compute("tensor bf16", "wgmma"), 1.83e9, 989.4e12),
        (compute("vector fp64"), 1.98e9, 33.45e12),
        (compute("vector bf16"), 1.98e9, 133.8e12),
        (compute("vector int32"), 1.98e9, 33.45e12),
        (compute("vector fp32", "add"), 1.98e9, 33.45e12),
        (bandwidth("shared"), 1.98e9, 33.45e12),
        (bandwidth("l1"), 1.0e9, 16.90e12),
        (bandwidth("dram"), None, 4.814e12),
        (bandwidth("l2"), None, 10.28e12),
    ],
)
def test_limits_of_an_h200_are_those_of_its_documents_and_counters(test, clock, expected):
    assert limit_of(test, H200, {}, clock).value == pytest.approx(expected, rel=1e-3)


def test_without_a_clock_there_is_no_limit_of_anything_that_follows_it():
    assert limit_of(compute("vector fp64"), H200, {}, None) is None
    assert limit_of(bandwidth("l1"), H200, {}, None) is None


def test_an_unknown_chip_or_path_has_no_limit():
    unknown = msgspec.structs.replace(H200, compute_capability="9.9")
    assert limit_of(compute("vector fp64"), unknown, {}, 1e9) is None
    assert limit_of(compute("tensor fp128"), H200, {}, 1e9) is None


def test_the_l2_of_another_product_is_not_known():
    other = msgspec.structs.replace(H200, name="NVIDIA H100 80GB HBM3")
    assert limit_of(bandwidth("l2"), other, {}, 1e9) is None
    assert limit_of(bandwidth("l2", "write"), H200, {}, 1e9) is None


def test_device_memory_of_a_mig_slice_has_no_limit():
    mig = msgspec.structs.replace(H200, name="NVIDIA H200 MIG 1g.18gb")
    assert limit_of(bandwidth("dram"), mig, {}, 1e9) is None


def test_both_directions_of_a_link_add_up():
    numbers = {"pcie_byte_per_s": 63e9, "nvlink_links": 18.0}
    assert limit_of(bandwidth("link", "read", "PCIe 5.0 x16"), H200, numbers, None).value == 63e9
    assert limit_of(bandwidth("link", "copy", "PCIe 5.0 x16"), H200, numbers, None).value == 126e9
    assert limit_of(bandwidth("link", "read", "NVLink"), H200, numbers, None).value == 450e9
    assert limit_of(bandwidth("link", "copy", "NVLink"), H200, numbers, None).value == 900e9
    assert limit_of(bandwidth("link", "read", "PCIe"), H200, {}, None) is None


@pytest.mark.parametrize(
    ("capability", "told", "expected", "whose"),
    [
        ("9.0", 18, 450e9, "as NVML counts them"),
        ("9.0", 6, 150e9, "as NVML counts them"),
        ("9.0", None, 450e9, "NVML does not count them"),
        ("9.0", 36, 450e9, "as NVML counts them"),
        ("8.0", None, 300e9, "NVML does not count them"),
        ("7.0", None, 150e9, "NVML does not count them"),
        ("10.0", 18, 900e9, "as NVML counts them"),
    ],
)
def test_nvlink_is_links_times_the_payload_of_one(capability, told, expected, whose):
    facts = DeviceFacts(name="GPU", compute_capability=capability)
    numbers = {} if told is None else {"nvlink_links": float(told)}
    limit = limit_of(bandwidth("link", "read", "NVLink"), facts, numbers, None)
    assert limit.value == expected
    assert whose in limit.source


def test_the_nvlink_of_a_chip_that_has_none_has_no_limit():
    facts = DeviceFacts(name="GPU", compute_capability="8.9")
    assert limit_of(bandwidth("link", "read", "NVLink"), facts, {}, None) is None


def test_a_link_of_unknown_kind_is_not_held_against_pcie():
    numbers = {"pcie_byte_per_s": 63e9, "nvlink_links": 18.0}
    assert limit_of(bandwidth("link", "read", "peer link"), H200, numbers, None) is None


def test_every_limit_says_where_it_comes_from():
    for test in (compute("tensor bf16"), compute("vector int32"), bandwidth("l2")):
        assert limit_of(test, H200, {}, 1e9).source


def test_latencies_and_launches_have_no_limit():
    test = Task(name="t", recipe="latency", kind="latency", unit="s", level="l2")
    assert limit_of(test, H200, {}, 1e9) is None
