"""Axes and roofs of the Roofline chart."""

import pytest

from mansard.charts.frame import (
    Frame,
    data_frame,
    decade_above,
    decade_below,
    machine_frame,
    roofs,
    slope_labels,
)
from mansard.model.machine import Ceiling, Machine


def compute(path, value, **more):
    return Ceiling(kind="compute", value=value, unit="flop/s", path=path, **more)


def bandwidth(level, value, **more):
    return Ceiling(kind="bandwidth", value=value, unit="byte/s", level=level, **more)


def machine(*ceilings):
    return Machine(name="m", basis="measured", ceilings=ceilings)


def test_decades():
    assert decade_below(999.0) == 100.0
    assert decade_below(1000.0) == 1000.0
    assert decade_above(1001.0) == 10000.0
    assert decade_above(1e-3) == 1e-3


@pytest.mark.parametrize("value", [5e-324, 1e-200, 1e200, 1.7e308, float("inf"), 0.0])
def test_values_at_the_ends_of_a_float_have_decades_that_can_be_divided(value):
    for decade in (decade_below(value), decade_above(value)):
        assert 1e-100 <= decade <= 1e100


def test_axes_are_whole_decades_and_hold_the_ridges(v100_machine):
    # Ridge of DRAM: 103.7e12 / 828.758e9 = 125 FLOP/byte.
    assert machine_frame(v100_machine) == Frame(0.01, 1e4, 1e9, 1e15)


def test_axes_of_a_faster_machine(h200_machine):
    assert machine_frame(h200_machine) == Frame(0.01, 1e4, 1e10, 1e16)


def test_a_machine_without_device_memory_counters_uses_its_outermost_level():
    frame = machine_frame(machine(compute("tensor fp16", 1e13), bandwidth("l2", 1e12)))
    assert frame.x_min < 10 < frame.x_max


def test_a_link_does_not_set_the_axes():
    slow = bandwidth("link", 1e9)
    with_link = machine(compute("vector fp32", 1e13), bandwidth("dram", 1e12), slow)
    without = machine(compute("vector fp32", 1e13), bandwidth("dram", 1e12))
    assert machine_frame(with_link) == machine_frame(without)


def test_a_machine_without_any_ceiling_has_no_axes():
    assert machine_frame(machine()) is None
    refused = compute("tensor fp8", None, status="refused")
    assert machine_frame(machine(refused)) is None


@pytest.mark.parametrize("only", [compute("vector fp32", 1e13), bandwidth("dram", 1e12)])
def test_a_machine_with_one_kind_of_ceiling_still_has_axes_and_a_roof(only):
    frame = machine_frame(machine(only))
    (roof,) = roofs(machine(only), frame)
    assert frame.x_min <= roof.start[0] < roof.end[0] <= frame.x_max


def test_flat_roofs_reach_the_right_edge(h200_machine):
    frame = machine_frame(h200_machine)
    flats = [roof for roof in roofs(h200_machine, frame) if roof.kind == "compute"]
    assert flats
    assert {roof.end[0] for roof in flats} == {frame.x_max}


def test_slopes_run_from_the_edge_to_the_highest_flat_roof(h200_machine):
    frame = machine_frame(h200_machine)
    slopes = [roof for roof in roofs(h200_machine, frame) if roof.kind == "bandwidth"]
    assert [roof.name for roof in slopes] == ["shared", "l1", "l2", "dram"]
    for roof in slopes:
        assert roof.start[0] == frame.x_min or roof.start[1] == pytest.approx(frame.y_min)
        assert roof.end[1] == pytest.approx(1668.62e12)
        assert roof.end[1] / roof.end[0] == pytest.approx(roof.value)


def test_flat_roofs_begin_at_the_fastest_slope(v100_machine):
    by_name = {roof.name: roof for roof in roofs(v100_machine, machine_frame(v100_machine))}
    # 15.1586e12 / 14.336e12 FLOP/byte.
    assert by_name["vector fp32"].start[0] == pytest.approx(1.0574, rel=1e-4)


def test_integer_ceilings_have_no_place_on_a_flop_axis(h200_machine):
    names = {roof.name for roof in roofs(h200_machine, machine_frame(h200_machine))}
    assert "tensor int8" not in names


def test_a_refused_ceiling_is_never_drawn():
    given = machine(
        compute("vector fp32", 1e13),
        bandwidth("dram", 1e12),
        compute("tensor fp8", 4e14, status="refused", reason="emulated"),
    )
    assert [roof.name for roof in roofs(given, machine_frame(given))] == ["dram", "vector fp32"]


def test_roofs_that_the_run_does_not_use_are_marked(v100_machine):
    frame = machine_frame(v100_machine)
    used = {r.name for r in roofs(v100_machine, frame, used_paths={"tensor fp16"}) if r.used}
    assert "tensor fp16" in used
    assert "vector fp64" not in used


@pytest.mark.parametrize("hostile", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_ceiling_that_is_no_number_is_not_drawn(hostile):
    given = machine(compute("vector fp32", hostile), bandwidth("dram", 1e12))
    assert [roof.name for roof in roofs(given, machine_frame(given))] == ["dram"]


def test_axes_around_data_are_whole_decades_too():
    assert data_frame([(0.5, 2e12), (30.0, 5e9)]) == Frame(0.1, 100.0, 1e9, 1e13)


def test_one_point_gets_two_decades():
    frame = data_frame([(1.0, 1e9)])
    assert frame.x_max / frame.x_min == 100


def test_no_points_still_have_axes():
    frame = data_frame([])
    assert frame.x_min < frame.x_max
    assert frame.y_min < frame.y_max


def test_fractions_and_clamping():
    frame = Frame(1.0, 100.0, 1.0, 1e4)
    assert frame.fraction(10.0, 100.0) == (0.5, 0.5)
    assert frame.clamp(1e9, 1e-9) == (100.0, 1.0)
    assert frame.union(Frame(0.1, 10.0, 10.0, 1e5)) == Frame(0.1, 100.0, 1.0, 1e5)


def labels_of(*ceilings):
    own = machine(*ceilings)
    return [label for _, label in slope_labels(roofs(own, machine_frame(own)))]


def test_slopes_that_nearly_meet_share_a_label():
    found = labels_of(bandwidth("shared", 33.4e12), bandwidth("l1", 33.3e12), bandwidth("l2", 9e12))
    assert found == ["shared 33.4, L1 33.3 TB/s", "L2 9.00 TB/s"]


def test_slopes_with_the_same_number_say_it_once():
    found = labels_of(bandwidth("shared", 33.3e12), bandwidth("l1", 33.3e12))
    assert found == ["shared, L1 33.3 TB/s"]


def test_slopes_of_another_status_keep_their_words():
    limit = bandwidth("l1", 33.3e12, status="theoretical")
    assert labels_of(bandwidth("shared", 33.4e12), limit) == [
        "shared 33.4 TB/s, L1 33.3 TB/s (theoretical)"
    ]


def test_slopes_six_percent_apart_are_two():
    assert len(labels_of(bandwidth("l1", 10e12), bandwidth("l2", 9.4e12))) == 2
