"""What the time chart shows, without drawing it."""

import math

import pytest

from mansard.charts.frame import Frame
from mansard.charts.time_scene import TimePoint, time_scene


def place(analysis):
    (point,) = time_scene(analysis).points
    return point


def test_positions_are_least_times_of_one_launch(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel(
        "k", launches=4, duration_s=8e-3, floors_s={"tensor": 2e-3, "vector": 1e-3, "dram": 4e-3}
    )
    analysis = make_analysis([kernel], machine=h200_machine)
    analysis.totals.bytes_by_level["dram"] = 1.0
    point = place(analysis)
    assert (point.byte_s, point.flop_s, point.measured_s) == (1e-3, 0.5e-3, 2e-3)


def test_the_measured_time_keeps_the_intensity(make_analysis, make_kernel, h200_machine):
    # Bound by bytes: byte time becomes the measured time, FLOP time follows on the same line.
    kernel = make_kernel("k", duration_s=2e-3, floors_s={"tensor": 0.25e-3, "dram": 1e-3})
    assert place(make_analysis([kernel], machine=h200_machine)).reached == (2e-3, 0.5e-3)


def test_a_kernel_at_its_roof_has_no_link(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel("k", duration_s=1e-3, floors_s={"tensor": 0.25e-3, "dram": 1e-3})
    point = place(make_analysis([kernel], machine=h200_machine))
    assert point.reached == (point.byte_s, point.flop_s)


def test_a_least_time_below_the_axes_moves_along_its_line_to_the_edge():
    point = TimePoint(number=1, byte_s=1e-9, flop_s=1e-10, measured_s=1e-5, area=10)
    best, real = point.ends(Frame(1e-8, 1e-2, 1e-8, 1e-2))
    # The line of equal intensity has FLOP time = byte time / 10; it enters at FLOP time 1e-8.
    assert best == pytest.approx((1e-7, 1e-8))
    assert real == pytest.approx((1e-5, 1e-6))


def test_a_kernel_wholly_below_the_axes_stays_at_its_byte_time():
    # Hardly any FLOP: the line of equal intensity would meet the axes beyond their right end.
    point = TimePoint(number=1, byte_s=1e-5, flop_s=1e-14, measured_s=2e-5, area=10)
    best, real = point.ends(Frame(1e-9, 1e-2, 1e-9, 1e-2))
    assert best == (1e-5, 1e-9)
    assert real == (2e-5, 1e-9)


def test_one_kernel_without_a_place_is_singular(make_analysis, make_kernel, h200_machine):
    placed = make_kernel("k", floors_s={"tensor": 0.0, "dram": 1e-4})
    notes = time_scene(make_analysis([placed, make_kernel("u")], machine=h200_machine)).notes
    assert "1 kernel without FLOP stands on the strip below the chart." in notes
    assert "1 kernel has no known bytes, FLOP or time, so no place." in notes


def test_kernels_without_flop_have_a_place(v100):
    scene = time_scene(v100)
    without = [point for point in scene.points if point.flop_s == 0]
    assert len(without) == 15
    assert any("15 kernels without FLOP" in note for note in scene.notes)


def test_the_launch_box_is_the_launch_cost_of_the_machine(h200):
    assert time_scene(h200).launch_s == 3.482e-6


def test_all_places_lie_in_the_frame_or_below_it(h200):
    scene = time_scene(h200)
    for point in scene.points:
        x, y = point.reached
        assert x <= scene.frame.x_max
        assert y <= scene.frame.y_max


def test_without_a_machine_nothing_can_be_placed(make_analysis, make_kernel):
    scene = time_scene(make_analysis([make_kernel("k")]))
    assert scene.points == ()
    assert any("nothing can be placed" in note for note in scene.notes)


@pytest.mark.parametrize("hostile", [math.nan, math.inf, -1.0, None, 0.0])
def test_hostile_times_have_no_place(hostile, make_analysis, make_kernel, h200_machine):
    for kernel in (
        make_kernel("k", duration_s=hostile, floors_s={"tensor": 1.0, "dram": 1.0}),
        make_kernel("k", floors_s={"tensor": 1.0, "dram": hostile}),
        make_kernel("k", launches=0, floors_s={"tensor": 1.0, "dram": 1.0}),
    ):
        assert time_scene(make_analysis([kernel], machine=h200_machine)).points == ()


def test_iso_times_are_decades(h200):
    times = time_scene(h200).iso_times
    assert times
    assert all(math.log10(time) == pytest.approx(round(math.log10(time))) for time in times)
