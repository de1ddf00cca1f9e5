"""Labels never overlap."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.charts.placement import Box, Mark, Slope, along_lines, place_labels, spread


def test_boxes_that_only_touch_do_not_overlap():
    assert not Box(0, 0, 10, 10).overlaps(Box(10, 0, 10, 10))
    assert Box(0, 0, 10, 10).overlaps(Box(9.9, 0, 10, 10))


def test_a_lonely_label_stands_beside_its_marker():
    (placed,) = place_labels([((10, 8), [Mark(50, 50, 3)])], [Mark(50, 50, 3).box], (100, 100))
    assert not placed.box.overlaps(Mark(50, 50, 3).box)
    assert abs(placed.box.x - 50) < 15
    assert not placed.far


def test_labels_of_markers_on_one_spot_do_not_overlap():
    mark = Mark(200, 150, 4)
    placed = place_labels([((12, 8), [mark])] * 40, [mark.box] * 40, (400, 300))
    assert None not in placed
    for one, other in itertools.combinations(placed, 2):
        assert not one.box.overlaps(other.box)


def test_labels_stay_inside_the_chart():
    marks = [Mark(0, 0, 5), Mark(400, 300, 5), Mark(0, 300, 5)]
    placed = place_labels([((12, 8), [m]) for m in marks], [m.box for m in marks], (400, 300))
    for place in placed:
        assert 6 <= place.box.x <= 394
        assert 4 <= place.box.y <= 296


def test_a_full_chart_leaves_labels_out_rather_than_on_top_of_each_other():
    placed = place_labels([((50, 50), [Mark(50, 50, 1)])] * 9, [], (100, 100))
    kept = [place for place in placed if place]
    assert 1 <= len(kept) < 9
    for one, other in itertools.combinations(kept, 2):
        assert not one.box.overlaps(other.box)


def test_positions_apart_already_stay_where_they_are():
    assert spread([10.0, 30.0, 20.0], 5, 0, 100) == [10.0, 30.0, 20.0]


def test_positions_that_collide_share_the_move():
    assert spread([10.0, 10.0], 4, 0, 100) == [8.0, 12.0]


def test_positions_are_pushed_from_the_edge():
    assert spread([0.0, 0.0, 0.0], 4, 0, 100) == [0.0, 4.0, 8.0]
    assert spread([100.0, 100.0], 4, 0, 100) == [96.0, 100.0]


def test_too_many_positions_are_spaced_evenly():
    assert spread([1.0, 2.0, 3.0], 100, 0, 10) == [0.0, 5.0, 10.0]


@settings(max_examples=60, deadline=None)
@given(
    positions=st.lists(st.floats(-50, 150, allow_nan=False), max_size=12),
    gap=st.floats(0.1, 8),
)
def test_spread_keeps_order_gap_and_limits(positions, gap):
    moved = spread(positions, gap, 0, 100)
    order = sorted(range(len(positions)), key=lambda i: (positions[i], i))
    for low, high in itertools.pairwise(order):
        assert moved[high] - moved[low] >= gap - 1e-6
    assert all(-1e-6 <= value <= 100 + 1e-6 for value in moved)


def test_labels_of_equal_lines_stand_behind_each_other():
    # Shared memory and L1 of a Hopper have the same bandwidth: one line, two labels.
    line = Slope(across=0, start=0, end=500, length=80)
    first, second = along_lines([line, line], [], height=10)
    assert not first.meets(second, 5)


def test_a_label_goes_below_its_line_where_markers_are_above():
    marks = [(float(x), 8.0, 3.0) for x in range(0, 500, 5)]
    (strip,) = along_lines([Slope(0, 0, 500, 80)], marks, height=10)
    assert strip.high <= 0


def test_a_label_moves_on_where_markers_are_on_both_sides():
    marks = [(float(x), y, 3.0) for x in range(0, 250, 5) for y in (-6.0, 6.0)]
    (strip,) = along_lines([Slope(0, 0, 500, 80)], marks, height=10)
    assert strip.begin >= 245


@pytest.mark.parametrize("end", [10, 0])
def test_a_line_shorter_than_its_label_still_gets_it(end):
    (strip,) = along_lines([Slope(0, 0, end, 80)], [], height=10)
    assert strip.end - strip.begin == 80
