"""What the Roofline chart shows, without drawing it."""

import math

import msgspec
import pytest

from mansard.charts.scene import KEY_ROWS, marker_area, roofline_scene
from mansard.model.machine import Ceiling, Machine


def test_a_kernel_is_one_point_per_level_at_one_height(make_analysis, make_kernel):
    # 1e12 FLOP in 0.1 s are 1e13 FLOP/s; 1e11, 1e10, 1e9 bytes give 10, 100, 1000 FLOP/byte.
    kernel = make_kernel(
        "gemm",
        duration_s=0.1,
        flop={"tensor fp16": 1e12},
        moved={"l1": 1e11, "l2": 1e10, "dram": 1e9},
    )
    points = roofline_scene(make_analysis([kernel])).points
    assert [(p.level, p.intensity) for p in points] == [("l1", 10), ("l2", 100), ("dram", 1000)]
    assert {p.flop_per_s for p in points} == {1e13}


def test_the_authors_points_of_their_largest_kernel(v100):
    # Table of the TensorFlow forward pass: 83.9 TFLOP/s, 62.8 / 85.5 / 924 FLOP/byte.
    first = [point for point in roofline_scene(v100).points if point.number == 1]
    assert [point.level for point in first] == ["l1", "l2", "dram"]
    assert [round(point.intensity, 1) for point in first] == [62.8, 85.5, 924.4]
    assert first[0].flop_per_s == pytest.approx(83.9e12, rel=1e-3)


def test_a_kernel_of_both_pipes_shows_what_each_did(make_analysis, make_kernel, h200_machine):
    # Attention: 9e11 FLOP on the tensor pipe, 1e11 FP32 for softmax, 1e9 bytes, 0.01 s.
    kernel = make_kernel(
        "attention",
        duration_s=0.01,
        flop={"tensor bf16": 9e11, "vector fp32": 1e11},
        moved={"l2": 1e10, "dram": 1e9},
    )
    scene = roofline_scene(make_analysis([kernel], machine=h200_machine))
    assert {point.flop_per_s for point in scene.points} == {1e14}
    assert [(p.pipe, p.x, p.y) for p in scene.parts] == [
        ("tensor", pytest.approx(900), pytest.approx(9e13)),
        ("vector", pytest.approx(100), pytest.approx(1e13)),
    ]


def test_an_epilogue_of_a_few_operations_is_no_part(make_analysis, make_kernel):
    kernel = make_kernel(
        "gemm", flop={"tensor bf16": 1e12, "vector fp32": 1e9}, moved={"dram": 1e9}
    )
    assert roofline_scene(make_analysis([kernel])).parts == ()


def test_the_axes_depend_on_the_machine_alone(make_analysis, make_kernel, h200_machine):
    def frame(flop, seconds):
        kernel = make_kernel(
            "k", flop={"tensor bf16": flop}, moved={"dram": 1e6}, duration_s=seconds
        )
        return roofline_scene(make_analysis([kernel], machine=h200_machine)).frame

    assert frame(1e9, 1e-3) == frame(1e10, 1e-4) == frame(1.0, 10.0)


def test_a_point_outside_is_kept_at_the_edge_and_named(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel(
        "k", flop={"tensor bf16": 1e9}, moved={"l1": 10.0, "dram": 1e6}, duration_s=1e-3
    )
    scene = roofline_scene(make_analysis([kernel], machine=h200_machine))
    l1, dram = scene.points
    assert l1.outside
    assert (l1.x, l1.y) == (scene.frame.x_max, 1e12)
    assert l1.intensity == 1e8
    assert not dram.outside
    (note,) = [note for note in scene.notes if note.startswith("Outside")]
    assert "1 (L1 1e+08 FLOP/byte, 1.00 TFLOP/s)" in note


@pytest.mark.parametrize(
    ("many", "said"), [(4, "."), (5, "; and 1 more kernel."), (6, "; and 2 more kernels.")]
)
def test_points_outside_beyond_the_fourth_are_counted(
    many, said, make_analysis, make_kernel, h200_machine
):
    kernels = [
        make_kernel(f"k{number}", flop={"tensor bf16": 1e9}, moved={"l1": 10.0})
        for number in range(many)
    ]
    scene = roofline_scene(make_analysis(kernels, machine=h200_machine))
    (note,) = [note for note in scene.notes if note.startswith("Outside")]
    assert note.endswith(f"1.00 TFLOP/s){said}")


def test_a_link_roof_is_drawn_where_a_kernel_worked_beside_it(
    make_analysis, make_kernel, h200_machine
):
    link = Ceiling(kind="bandwidth", value=4e11, unit="byte/s", level="link", access="read")
    machine = msgspec.structs.replace(h200_machine, ceilings=(*h200_machine.ceilings, link))

    def slopes(flop):
        kernel = make_kernel("k", flop={"vector fp32": flop}, moved={"link": 1e6, "dram": 1e6})
        scene = roofline_scene(make_analysis([kernel], machine=machine))
        return [roof.name for roof in scene.roofs if roof.kind == "bandwidth"]

    assert "link" in slopes(1e6)
    assert "link" not in slopes(0.0)


def test_kernels_without_flop_are_counted_with_their_time(v100):
    # The authors' census: 304 of 556 launches, 20.4 % of the time.
    (note,) = [note for note in roofline_scene(v100).notes if note.startswith("No FLOP")]
    assert "15 of 52 kernels (304 launches = 54.7 % of all, 20.4 % of the time)" in note


def test_a_kernel_is_without_flop_where_the_analysis_says_so(make_analysis, make_kernel):
    # One path of the chip was not collected, yet the kernel counts as zero-FLOP.
    kernel = make_kernel("z", flop={"vector fp32": 0.0, "vector fp64": None}, moved={"dram": 1.0})
    scene = roofline_scene(make_analysis([kernel]))
    assert any(note.startswith("No FLOP") for note in scene.notes)


def test_unknown_flop_is_not_told_as_zero(make_analysis, make_kernel):
    unknown = make_kernel("u", flop={"tensor bf16": None}, moved={"dram": 1.0})
    lower_bound = make_kernel(
        "l",
        flop={"vector fp32": 0.0, "tensor bf16": None},
        moved={"dram": 1.0},
        zero_flop_launches=None,
    )
    scene = roofline_scene(make_analysis([unknown, lower_bound]))
    assert not any(note.startswith("No FLOP") for note in scene.notes)
    assert any(note.startswith("FLOP, bytes or time unknown: 2 of 2") for note in scene.notes)


def test_a_level_without_bytes_has_no_point(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 1e9}, moved={"l1": 0.0, "l2": None, "dram": 1e6})
    assert [p.level for p in roofline_scene(make_analysis([kernel])).points] == ["dram"]


def test_without_a_machine_there_are_points_but_no_roofs(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 1e9}, moved={"dram": 1e6})
    scene = roofline_scene(make_analysis([kernel]))
    assert scene.roofs == ()
    assert scene.points
    assert any("no roofs" in note for note in scene.notes)


def test_a_machine_without_ceilings_says_so(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 1e9}, moved={"dram": 1e6})
    scene = roofline_scene(make_analysis([kernel], machine=Machine(name="m", basis="measured")))
    assert scene.roofs == ()
    assert any("no ceiling that can be drawn" in note for note in scene.notes)


def test_area_is_proportional_to_time():
    assert marker_area(0.4) == 4 * marker_area(0.1)
    assert marker_area(0.0) == marker_area(None) > 0


def test_numbers_are_the_place_in_the_report(v100):
    scene = roofline_scene(v100)
    for row in scene.rows:
        kernel = v100.kernels[row.number - 1]
        assert row.name.split("...")[0] in kernel.short_name


def test_kernels_beyond_the_key_are_counted(make_analysis, make_kernel):
    kernels = [
        make_kernel(f"k{n}", flop={"tensor bf16": 1e9}, moved={"dram": 1e6}, duration_s=1.0)
        for n in range(50)
    ]
    scene = roofline_scene(make_analysis(kernels))
    assert len(scene.rows) == KEY_ROWS
    assert scene.rest[0] == 50 - KEY_ROWS
    assert scene.rest[1] == pytest.approx(0.2)
    assert len(scene.points) == 50


def test_a_kernel_above_its_roof_is_a_fault_with_causes(make_analysis, make_kernel):
    kernel = make_kernel(
        "k", flop={"tensor bf16": 1e9}, moved={"dram": 1e6}, duration_s=1e-3, floor_s=3.7e-3
    )
    scene = roofline_scene(make_analysis([kernel]))
    assert scene.rows[0].efficiency == "> roof"
    (note,) = [note for note in scene.notes if "Above the roof" in note]
    assert "sparsity" in note
    assert "unit" in note


def test_an_undecided_bound_is_explained(make_analysis, make_kernel):
    kernel = make_kernel(
        "k", flop={"tensor bf16": 1e9}, moved={"dram": 1e6}, bound="unknown among l2"
    )
    scene = roofline_scene(make_analysis([kernel]))
    assert scene.rows[0].bound == "?"
    assert any(note.startswith("Bound ?") for note in scene.notes)


def test_caveats_of_the_machine_are_shown(v100):
    assert any("boost clock" in note for note in roofline_scene(v100).notes)


@pytest.mark.parametrize("hostile", [math.nan, math.inf, -1.0, None])
def test_hostile_numbers_place_no_point(hostile, make_analysis, make_kernel):
    for kernel in (
        make_kernel("k", flop={"tensor bf16": hostile}, moved={"dram": 1.0}),
        make_kernel("k", flop={"tensor bf16": 1.0}, moved={"dram": hostile}),
        make_kernel("k", flop={"tensor bf16": 1.0}, moved={"dram": 1.0}, duration_s=hostile),
    ):
        assert roofline_scene(make_analysis([kernel])).points == ()


def test_an_empty_run_has_a_scene(make_analysis):
    scene = roofline_scene(make_analysis([]))
    assert scene.points == ()
    assert scene.rows == ()


def test_a_kernel_without_a_short_name_keeps_its_name(make_analysis, make_kernel):
    kernel = make_kernel("full", short_name="", flop={"tensor bf16": 1.0}, moved={"dram": 1.0})
    assert roofline_scene(make_analysis([kernel])).rows[0].name == "full"


def test_a_lower_bound_of_the_work_says_so(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"vector fp32": 2e9, "tensor bf16": None}, moved={"dram": 1.0})
    assert "at least 2.00 GFLOP" in roofline_scene(make_analysis([kernel])).subtitle
