"""From samples to ceilings: values, shares, refusals, remarks."""

import pytest

from mansard.bench.messages import Opened, Outcome, Task
from mansard.bench.verdict import ceiling_of
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling

H200 = Opened(
    facts=DeviceFacts(
        name="NVIDIA H200",
        compute_capability="9.0",
        sm_count=132,
        sm_clock_max_hz=1.98e9,
        dram_clock_hz=3.201e9,
        dram_bus_bits=6016,
    )
)
FP64 = Task(
    name="t",
    recipe="compute",
    kind="compute",
    unit="flop/s",
    path="vector fp64",
    instruction="fma",
    arm="random",
)
PER_HZ = 132 * 128  # FLOP a clock of the whole chip


def outcome(values, clocks=None, **evidence):
    clocks = clocks or (1.98e9,) * len(values)
    return Outcome(values=tuple(values), clocks_hz=tuple(clocks), evidence=evidence)


def dram(value):
    return Ceiling(kind="bandwidth", value=value, unit="byte/s", level="dram", access="read")


def test_the_value_is_the_median_and_the_share_is_of_the_limit_at_its_clock():
    found = ceiling_of(FP64, outcome([30e12, 33e12, 20e12]), H200, [])
    assert found.value == 30e12
    assert found.limit_at_clock == pytest.approx(PER_HZ * 1.98e9)
    assert found.share_of_limit == pytest.approx(30e12 / (PER_HZ * 1.98e9))
    assert found.samples == (30e12, 33e12, 20e12)
    assert found.evidence["best"] == 33e12


def test_the_clock_is_that_of_the_median_sample_not_the_median_of_the_clocks():
    # Rates follow the clock exactly, so the share must be the same whatever the order.
    clocks = [1.4e9, 1.5e9, 1.6e9, 1.9e9]
    values = [PER_HZ * clock * 0.99 for clock in clocks]
    found = ceiling_of(FP64, outcome(values, clocks), H200, [])
    assert found.sm_clock_hz == pytest.approx(1.55e9)
    assert found.share_of_limit == pytest.approx(0.99)


def test_the_limit_at_the_maximum_clock_stands_in_the_evidence():
    found = ceiling_of(FP64, outcome([PER_HZ * 1e9] * 3, [1e9] * 3), H200, [])
    assert found.evidence["limit_at_maximum_clock"] == pytest.approx(PER_HZ * 1.98e9)
    assert found.evidence["share_at_maximum_clock"] == pytest.approx(1 / 1.98, rel=1e-4)


def test_equal_work_is_also_held_against_the_slowest_sm():
    # The median SM runs at 1.8 GHz, the slowest 1 % below: all wait for it.
    value = PER_HZ * 1.8e9 * 0.99
    found = ceiling_of(
        FP64, outcome([value] * 3, [1.8e9] * 3, sm_clock_slowest_hz=[1.782e9] * 3), H200, []
    )
    assert found.share_of_limit == pytest.approx(0.99)
    assert found.evidence["share_at_slowest_sm"] == pytest.approx(1.0)


@pytest.mark.parametrize(("recipe", "level"), [("shared", "shared"), ("cache", "l1")])
def test_levels_of_an_sm_are_held_against_the_slowest_too(recipe, level):
    # 128 bytes a clock and SM: 132 x 128 x 1.782 GHz, while the median SM runs at 1.8 GHz.
    test = Task(name="t", recipe=recipe, kind="bandwidth", level=level, access="read")
    clocks = [1.8e9] * 3
    slowest = [1.782e9] * 3
    run = outcome([132 * 128 * 1.782e9] * 3, clocks, sm_clock_slowest_hz=slowest)
    found = ceiling_of(test, run, H200, [])
    assert found.share_of_limit == pytest.approx(0.99)
    assert found.evidence["share_at_slowest_sm"] == pytest.approx(1.0)


def test_work_that_is_cut_by_time_waits_for_no_sm():
    test = Task(name="t", recipe="l2", kind="bandwidth", level="l2", access="read")
    run = outcome([9e12] * 3, [1.8e9] * 3, sm_clock_slowest_hz=[1.782e9] * 3)
    assert "share_at_slowest_sm" not in ceiling_of(test, run, H200, []).evidence


def test_without_the_clock_of_each_sample_there_is_no_share_of_the_slowest_sm():
    found = ceiling_of(
        FP64, outcome([PER_HZ * 1e9] * 2, [1e9] * 2, sm_clock_slowest_hz=[1e9, None]), H200, []
    )
    assert "share_at_slowest_sm" not in found.evidence


def test_above_its_limit_a_ceiling_is_refused():
    found = ceiling_of(FP64, outcome([1.02 * PER_HZ * 1.98e9] * 5), H200, [])
    assert (found.status, found.value) == ("refused", None)
    assert "102.0 % of the limit" in found.reason


def test_a_hair_above_the_limit_is_the_uncertainty_of_the_clock():
    found = ceiling_of(FP64, outcome([1.001 * PER_HZ * 1.98e9] * 5), H200, [])
    assert found.status == "measured"


def test_a_kernel_that_memory_may_limit_is_refused():
    # 683 / 4.0 = 170.7 FLOP/byte against a ridge of 171: in truth device memory, not the pipe.
    bf16 = Task(
        name="t",
        recipe="compute",
        kind="compute",
        unit="flop/s",
        path="tensor bf16",
        instruction="wgmma",
        arm="random",
    )
    run = outcome([683e12] * 5, work_per_sample=262_144.0, bytes_per_sample=1536)
    found = ceiling_of(bf16, run, H200, [dram(4.0e12)])
    assert found.status == "refused"
    assert "ridge of dram" in found.reason


def test_enough_intensity_stands_in_the_evidence_beside_the_ridge():
    run = outcome([33e12] * 5, work_per_sample=1e12, bytes_per_sample=1e6)
    found = ceiling_of(FP64, run, H200, [dram(4.0e12)])
    assert found.evidence["flop_per_byte"] == 1e6
    assert found.evidence["ridge_flop_per_byte"] == {"dram": 8.25}


def test_a_refusal_of_the_child_is_kept_with_its_reason_and_evidence():
    found = ceiling_of(FP64, Outcome(refusal="wrong result", evidence={"x": 1}), H200, [])
    assert (found.status, found.reason, found.evidence) == ("refused", "wrong result", {"x": 1})


def test_no_samples_is_a_refusal():
    assert ceiling_of(FP64, Outcome(), H200, []).status == "refused"


def test_the_power_limit_is_a_remark():
    found = ceiling_of(FP64, outcome([30e12] * 5, clock_held_by=["power cap"]), H200, [])
    assert found.reason == "held by the power limit"


def test_a_thermal_slowdown_is_an_alarm():
    held = ["power cap", "thermal slowdown (hardware)"]
    found = ceiling_of(FP64, outcome([30e12] * 5, clock_held_by=held), H200, [])
    assert "thermal slowdown (hardware)" in found.reason


def test_unsteady_samples_are_said():
    found = ceiling_of(FP64, outcome([30e12, 25e12, 20e12, 31e12, 26e12]), H200, [])
    assert "unsteady" in found.reason


def test_a_clock_that_moves_is_said():
    clocks = [1.5e9, 1.6e9, 1.6e9, 1.6e9, 1.6e9]
    found = ceiling_of(FP64, outcome([26e12] * 5, clocks), H200, [])
    assert "the SM clock moved by 7 %" in found.reason


def test_a_latency_has_its_shortest_sample_as_best_and_no_share():
    test = Task(name="t", recipe="latency", kind="latency", unit="s", level="l2", access="read")
    found = ceiling_of(test, outcome([2e-7, 1e-7, 3e-7]), H200, [])
    assert (found.value, found.evidence["best"], found.share_of_limit) == (2e-7, 1e-7, None)


def test_a_sample_without_a_clock_leaves_the_share_open():
    found = ceiling_of(FP64, Outcome(values=(30e12,) * 3, clocks_hz=(None,) * 3), H200, [])
    assert (found.value, found.sm_clock_hz, found.share_of_limit) == (30e12, None, None)
