import dataclasses

import pytest

from mansard.bench.cpu.ceilings import bandwidth_ceiling, order_caveats, refused_bandwidth
from mansard.bench.cpu.levels import Level
from mansard.bench.cpu.sampling import Series
from mansard.bench.samples import Summary

DRAM = Level("dram", None, 1 << 30)
EVIDENCE = {"threads": 2, "vector_bytes": 32}
QUIET = Series(
    rates=Summary((40e9, 41e9, 42e9)),
    clock_hz=2e9,
    core_share=1.0,
    work_per_call=1e8,
    rounds=1,
    settled=True,
    disturbed=0,
    disturbed_kept=0,
)


def ceiling(series=QUIET, alone=None, level=DRAM, access="read"):
    return bandwidth_ceiling(level, access, series, alone=alone, evidence=EVIDENCE)


def at(level, rate, access="read"):
    series = dataclasses.replace(QUIET, rates=Summary((rate,)))
    return ceiling(series, level=Level(level, None, 1), access=access)


def test_value_is_the_median_and_best_and_spread_are_evidence():
    found = ceiling()
    assert found.value == 41e9
    assert found.evidence["best"] == 42e9
    assert found.evidence["spread"] == pytest.approx(1.4826 / 41)
    assert found.samples == (40e9, 41e9, 42e9)
    # 41 GB/s at 2 GHz on two cores.
    assert found.evidence["bytes_per_cycle_per_core"] == pytest.approx(10.25)
    assert found.reason is None


def test_disturbed_samples_are_said_with_the_number():
    found = ceiling(dataclasses.replace(QUIET, disturbed_kept=2))
    assert "In 2 of 3 samples other programs took more than 2.0 % of a core" in found.reason


def test_unsteady_samples_are_said():
    wild = dataclasses.replace(QUIET, rates=Summary((20e9, 41e9, 62e9)), rounds=3)
    assert "in each of 3 rounds: something outside changed" in ceiling(wild).reason


def test_all_threads_slower_than_one_alone_is_said():
    alone = dataclasses.replace(QUIET, rates=Summary((50e9,)))
    found = ceiling(alone=alone)
    assert "One thread alone was faster" in found.reason
    assert found.evidence["one_thread"]["samples"] == (50e9,)


def test_the_remark_of_a_level_stands_with_its_number():
    level = Level("l3", 1, 1, remark="A small share.")
    assert ceiling(level=level).reason == "A small share."


def test_a_far_level_faster_than_a_near_one_is_said():
    said = order_caveats([at("l1", 100e9), at("l2", 50e9), at("l3", 60e9), at("dram", 20e9)])
    assert said == [
        "Reading l3 was faster than reading l2: one of the two is not what its name says."
    ]


def test_only_reading_of_measured_levels_is_compared():
    assert (
        order_caveats(
            [at("l1", 100e9), refused_bandwidth("l2", "read", "no"), at("l3", 9e9, "copy")]
        )
        == []
    )
