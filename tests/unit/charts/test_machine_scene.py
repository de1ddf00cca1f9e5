"""What the chart of a machine shows, without drawing it."""

import pytest

from mansard.charts.frame import Frame
from mansard.charts.machine_scene import machine_scene, machine_sweeps
from mansard.model.machine import Ceiling, Machine


def test_refused_ceilings_are_listed_with_their_reason_but_not_drawn(h200_machine):
    scene = machine_scene(h200_machine)
    (row,) = [row for row in scene.rows if row.refused]
    assert (row.name, row.value) == ("tensor fp8", "refused")
    assert any("emulated" in note for note in scene.notes)
    assert [roof.value for roof in scene.roofs if roof.name == "tensor fp8"] == [1668.62e12]


def test_every_ceiling_is_a_row_with_value_share_and_clock(h200_machine):
    rows = machine_scene(h200_machine).rows
    assert len(rows) == len(h200_machine.ceilings)
    (library,) = [row for row in rows if row.how == "library, random"]
    assert library.value == "696 TFLOP/s"
    assert library.share_of_limit == "97.5 %"
    assert library.clock == "1.32 GHz"


def test_sweeps_come_by_column_name_not_by_position():
    curves = {
        "dram": {"columns": ["bytes", "flop_per_s", "flop_per_byte"], "rows": [[1, 1e12, 0.5]]},
        "latency": {"columns": ["bytes", "s"], "rows": [[1, 2]]},
    }
    (sweep,) = machine_sweeps(curves)
    assert sweep.dots == ((0.5, 1e12),)


@pytest.mark.parametrize(
    "curve",
    [
        None,
        [],
        {},
        {"columns": "flop_per_byte", "rows": []},
        {"columns": ["flop_per_byte", "flop_per_s"]},
        {"columns": ["flop_per_byte", "flop_per_s"], "rows": [[1], "ab", None, [0, 1], [-1, 1]]},
        {"columns": ["flop_per_byte", "flop_per_s"], "rows": [[True, True], ["1", "2"]]},
        {"columns": ["flop_per_byte", "flop_per_s"], "rows": [[float("nan"), float("inf")]]},
    ],
)
def test_hostile_curves_are_left_out(curve):
    assert machine_sweeps({"x": curve}) == []


def test_a_long_sweep_is_thinned():
    rows = [[1.0 + n, 1e12] for n in range(100_000)]
    curve = {"columns": ["flop_per_byte", "flop_per_s"], "rows": rows}
    (sweep,) = machine_sweeps({"x": curve})
    assert len(sweep.dots) <= 400


def test_a_common_frame_can_be_given(v100_machine):
    frame = Frame(0.01, 1e4, 1e9, 1e16)
    assert machine_scene(v100_machine, frame).frame == frame


def test_a_machine_without_ceilings_has_a_scene():
    scene = machine_scene(Machine(name="empty", basis="measured", partial=True))
    assert scene.roofs == ()
    assert scene.rows == ()
    assert any("cut short" in note for note in scene.notes)


def test_hostile_texts_are_bounded():
    ceiling = Ceiling(
        kind="compute",
        value=None,
        unit="flop/s",
        status="refused",
        path="x" * 5000,
        instruction="\x1b[31m" * 900,
        reason="r" * 100_000,
    )
    scene = machine_scene(Machine(name="n" * 9000, basis="measured", ceilings=(ceiling,) * 50))
    assert len(scene.title) == 90
    assert all(len(note) < 300 for note in scene.notes)
    assert len(scene.rows) == 40
    assert all(row.how.isprintable() for row in scene.rows)
