"""Machines side by side."""

import msgspec
import numpy as np
import pytest

from mansard.bench.fleet import compare, oddities, standings
from mansard.errors import MachineError
from mansard.model.machine import Ceiling, Machine


def machine(name, dram, fp64=33e12, launch=1e-6):
    return Machine(
        name=name,
        basis="measured",
        ceilings=(
            Ceiling(kind="bandwidth", value=dram, unit="byte/s", level="dram", access="read"),
            Ceiling(kind="compute", value=fp64, unit="flop/s", path="vector fp64"),
            Ceiling(kind="launch", value=launch, unit="s", access="stream"),
        ),
    )


def test_ratios_are_to_the_first_machine():
    lines = compare([machine("a", 4e12), machine("b", 3e12)])
    assert {line.name: line.ratios for line in lines}["dram read"] == (1.0, 0.75)


def test_a_ceiling_that_only_one_machine_has_is_shown_and_has_no_ratio():
    other = Machine(name="b", basis="measured", ceilings=())
    line = compare([machine("a", 4e12), other])[0]
    assert (line.values, line.ratios) == ((4e12, None), (1.0, None))


def test_a_ceiling_that_only_a_later_machine_has_has_no_ratio():
    nothing = Machine(name="b", basis="measured", ceilings=())
    line = compare([nothing, machine("a", 4e12), machine("c", 3e12)])[0]
    assert (line.values, line.ratios) == ((None, 4e12, 3e12), (None, None, None))


def test_fewer_than_four_machines_have_no_score():
    lines = compare([machine(str(i), 4e12) for i in range(3)])
    assert all(score is None for line in lines for score in line.scores)


def test_the_slow_gpu_of_a_fleet_is_found_and_named():
    fleet = [machine(f"gpu{i}", 4.0e12 + i * 1e9) for i in range(7)]
    fleet.append(machine("sick", 3.2e12))
    found = {standing.name: standing for standing in standings(fleet)}
    name, ratio, score = found["sick"].slow[0]
    assert name == "dram read"
    assert ratio == pytest.approx(0.8, abs=0.01)
    assert score < -10
    assert all(not found[f"gpu{i}"].slow for i in range(7))


def test_a_longer_time_is_slower():
    fleet = [machine(f"gpu{i}", 4e12) for i in range(5)]
    fleet.append(machine("late", 4e12, launch=2e-6))
    found = {standing.name: standing for standing in standings(fleet)}
    assert [name for name, _, _ in found["late"].slow] == ["stream"]
    assert found["late"].slow[0][1] == pytest.approx(0.5)


def test_noise_of_half_a_percent_is_no_difference():
    fleet = [machine(f"gpu{i}", 4e12) for i in range(5)] + [machine("x", 3.985e12)]
    assert not any(standing.slow for standing in standings(fleet))


def test_a_fleet_of_three_is_none():
    with pytest.raises(MachineError, match="4 machines or more"):
        standings([machine(str(i), 4e12) for i in range(3)])


def test_one_machine_cannot_be_compared():
    with pytest.raises(MachineError, match="at least two"):
        compare([machine("a", 4e12)])


def test_a_refused_ceiling_is_no_value():
    refused = Ceiling(
        kind="compute", value=None, unit="flop/s", status="refused", path="tensor fp8"
    )
    one = Machine(name="a", basis="measured", ceilings=(refused,))
    assert compare([one, one])[0].values == (None, None)


def made(seed, machines, *, ceilings=30, noise=0.01, slow=None):
    """A fleet of cards that differ by some noise, and a slow one: (place, ceiling, ratio)."""
    values = np.exp(np.random.default_rng([seed, machines]).normal(0, noise, (machines, ceilings)))
    if slow is not None:
        place, ceiling, ratio = slow
        values[place, ceiling] *= ratio
    return [
        Machine(
            name=f"gpu{place}",
            basis="measured",
            ceilings=tuple(
                Ceiling(kind="compute", value=float(v), unit="flop/s", path=f"path {number}")
                for number, v in enumerate(row)
            ),
        )
        for place, row in enumerate(values)
    ]


@pytest.mark.parametrize("machines", [4, 8, 64])
def test_no_machine_of_a_hundred_clean_fleets_of_thirty_ceilings_is_called_slow(machines):
    found = [
        (seed, standing.name)
        for seed in range(100)
        for standing in standings(made(seed, machines))
        if standing.slow
    ]
    assert found == []


@pytest.mark.parametrize(("machines", "ratio"), [(8, 0.6), (16, 0.7), (64, 0.88)])
def test_a_slow_card_is_found_on_its_ceiling_and_no_other(machines, ratio):
    for seed in range(30):
        place, ceiling = seed % machines, seed % 30
        fleet = standings(made(seed, machines, slow=(place, ceiling, ratio)))
        slow = {(one.name, name) for one in fleet for name, _, _ in one.slow}
        assert slow == {(f"gpu{place}", f"path {ceiling}")}, seed


def with_facts(name, **facts):
    return msgspec.structs.replace(machine(name, 4e12), provenance=facts)


def test_the_odd_driver_of_a_fleet_is_named():
    fleet = [with_facts(f"n{i}", driver_version="580.159") for i in range(6)]
    fleet += [with_facts("old", driver_version="570.86"), with_facts("silent")]
    (odd,) = oddities(fleet)
    assert (odd.fact, odd.usual, odd.found) == ("driver_version", "580.159", {"570.86": ("old",)})


def test_without_a_majority_none_is_odd():
    fleet = [with_facts(f"n{i}", driver_version="580" if i % 2 else "570") for i in range(6)]
    assert oddities(fleet) == ()
