"""What the floors chart shows, without drawing it."""

import math

import pytest

from mansard.charts.floors_scene import LAUNCHES_DIFFER, ROWS, floors_scene, round_ticks


def test_kernels_without_flop_appear(v100):
    rows = floors_scene(v100).rows
    assert "no FLOP" in {row.remark for row in rows}
    assert len(rows) == ROWS


def test_integer_work_is_not_called_no_work(h200):
    # The INT8 product does 17.2 G integer operations and no FLOP.
    remarks = {row.remark for row in floors_scene(h200).rows}
    assert remarks == {"", "no FLOP", "integer"}


def test_floors_are_shares_of_the_measured_time(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel(
        "k",
        duration_s=4e-3,
        floors_s={"tensor": 1e-3, "dram": 3e-3, "l2": None},
        floor_s=3e-3,
        bound="dram",
    )
    scene = floors_scene(make_analysis([kernel], machine=h200_machine))
    (row,) = scene.rows
    assert row.shares == {"tensor": 0.25, "dram": 0.75, "l2": None}
    assert row.efficiency == "75.0 %"
    assert scene.resources == ("tensor", "dram")
    assert any("Unknown for some kernels, so without a bar: l2" in note for note in scene.notes)


@pytest.mark.parametrize(("floor_s", "said"), [(3e-3, False), (3.001e-3, False), (3.4e-3, True)])
def test_an_efficiency_above_every_floor_is_explained(
    floor_s, said, make_analysis, make_kernel, h200_machine
):
    # One launch bound by bytes and one by FLOP: each counts its own. 75.0 % and 75.03 % read alike.
    kernel = make_kernel(
        "k", duration_s=4e-3, floors_s={"tensor": 2e-3, "dram": 3e-3}, floor_s=floor_s, bound="dram"
    )
    notes = floors_scene(make_analysis([kernel], machine=h200_machine)).notes
    assert (LAUNCHES_DIFFER in notes) == said


def test_without_a_machine_only_time_is_shown(make_analysis, make_kernel):
    scene = floors_scene(make_analysis([make_kernel("k")]))
    assert scene.resources == ()
    assert any("no floors" in note for note in scene.notes)


def test_kernels_beyond_the_chart_are_counted(v100):
    assert any("37 more have 8.4 % of the time" in note for note in floors_scene(v100).notes)


@pytest.mark.parametrize("hostile", [math.nan, math.inf, -1.0, None])
def test_hostile_times_become_unknown(hostile, make_analysis, make_kernel, h200_machine):
    kernel = make_kernel("k", duration_s=hostile, floors_s={"dram": 1e-3}, floor_s=hostile)
    (row,) = floors_scene(make_analysis([kernel], machine=h200_machine)).rows
    assert row.duration_s is None
    assert row.shares == {"dram": None}


@pytest.mark.parametrize(
    ("longest", "step"), [(345e-6, 50e-6), (66.1e-3, 10e-3), (1.0, 0.2), (1.5, 0.5), (9.9, 2.0)]
)
def test_ticks_are_round(longest, step):
    ticks = round_ticks(longest)
    assert 3 <= len(ticks) <= 8
    assert ticks == pytest.approx([step * n for n in range(len(ticks))])
    assert ticks[-1] <= longest
