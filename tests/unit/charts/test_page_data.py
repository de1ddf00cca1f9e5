"""What the page holds: the report's numbers, kernels by phase and rank, and what was left out."""

import dataclasses
import json

import pytest

from mansard.charts.json_report import report_dict
from mansard.charts.page import data
from mansard.charts.page.data import page_data
from mansard.charts.page.detail import Caller, Detail, KernelPart
from mansard.charts.page.others import OTHERS, bounded
from mansard.model.advice import Advice


def made(analysis, detail=None, given=()):
    # Through JSON, as the browser gets it.
    return json.loads(json.dumps(page_data(analysis, detail or Detail(), given), allow_nan=False))


def column(table, name):
    if name in table["same"]:
        return [table["same"][name]] * table["rows"]
    values = table["columns"][name]
    return [table["words"][name][code] for code in values] if name in table["words"] else values


def test_the_kernels_are_those_of_the_json_report(v100):
    page = made(v100)
    for name in ("launches", "duration_s", "flop", "floor_s", "bound", "family"):
        assert column(page["kernels"], name) == [k[name] for k in report_dict(v100)["kernels"]]
    assert page["names"][0::2] == [kernel.key for kernel in v100.kernels]
    assert page["names"][1::2] == [kernel.short_name for kernel in v100.kernels]


def test_a_link_that_only_copies_used_is_no_level_of_the_charts_but_of_the_csv(
    make_analysis, make_kernel
):
    gemm = make_kernel("gemm", flop={"vector fp32": 1e9}, moved={"dram": 1e6, "link": None})
    copy = make_kernel("copy", flop={"vector fp32": 0.0}, moved={"dram": 1e6, "link": 1e6})
    page = made(make_analysis([gemm, copy]))
    assert page["levels"] == ["dram"]
    assert page["byte_levels"] == ["dram", "link"]


def test_the_rest_of_the_report_is_there_whole(v100):
    report = report_dict(v100)
    del report["kernels"]
    report["advice"] = []
    assert made(v100)["report"] == report


def test_a_large_run_is_packed_and_says_so(v100, monkeypatch):
    monkeypatch.setattr(data, "MOST_EXACT", 10)
    page = made(v100)
    assert set(page["kernels"]["packed"]) >= {"duration_s", "bytes.dram", "floors_s.dram"}
    assert "page-digits" in [warning["code"] for warning in page["report"]["warnings"]]
    assert "page-digits" not in [w["code"] for w in made_with_all_digits(v100, monkeypatch)]


def made_with_all_digits(analysis, monkeypatch):
    monkeypatch.setattr(data, "MOST_EXACT", 10_000)
    return made(analysis)["report"]["warnings"]


def test_kernels_beyond_the_room_become_one_row(v100):
    few = bounded(v100, most=5)
    assert len(few.kernels) == 5
    rest = few.kernels[-1]
    assert rest.key == OTHERS
    assert rest.kernels == len(v100.kernels) - 4
    for name in ("launches", "duration_s", "flop", "floor_s", "zero_flop_launches"):
        both = sum(getattr(kernel, name) or 0 for kernel in few.kernels)
        assert both == pytest.approx(sum(getattr(k, name) or 0 for k in v100.kernels))


def test_a_run_that_fits_is_left_alone(v100):
    assert bounded(v100, most=len(v100.kernels)) is v100


def test_the_bound_of_all_others_is_open_where_one_of_them_is(make_kernel, make_analysis):
    kernels = [
        make_kernel(
            f"k{n}", duration_s=1.0 / (n + 1), bound="dram", floors_s={"dram": 0.5, "l2": 0.1}
        )
        for n in range(3)
    ]
    assert bounded(make_analysis(kernels), most=2).kernels[-1].bound == "dram"
    kernels[2] = dataclasses.replace(kernels[2], bound="unknown among dram, l1")
    assert bounded(make_analysis(kernels), most=2).kernels[-1].bound == "unknown among dram"


def test_others_without_a_machine_have_no_bound(make_kernel, make_analysis):
    kernels = [make_kernel(f"k{n}", duration_s=1.0 / (n + 1)) for n in range(3)]
    assert bounded(make_analysis(kernels), most=2).kernels[-1].bound is None


def part(kernel, by, phase=None, rank=None, **changes):
    return KernelPart(phase, rank, by, dataclasses.replace(kernel, **changes))


def test_a_kernel_of_one_phase_is_not_written_twice(make_kernel, make_analysis):
    whole = make_kernel("whole", launches=4, duration_s=4.0)
    split = make_kernel("split", launches=4, duration_s=2.0)
    analysis = make_analysis([whole, split])
    parts = (
        part(whole, "phase", "forward"),
        part(split, "phase", "forward", launches=1, duration_s=0.5),
        part(split, "phase", "backward", launches=3, duration_s=1.5),
    )
    page = made(analysis, Detail(parts=parts))
    assert column(page["kernels"], "only") == ["phase", ""]
    assert column(page["kernels"], "phase") == ["forward", None]
    assert column(page["parts"], "kernel") == [1, 1]
    assert column(page["parts"], "phase") == ["forward", "backward"]
    assert column(page["parts"], "duration_s") == [0.5, 1.5]


def test_a_kernel_of_one_phase_on_two_ranks_is_written_by_rank_alone(make_kernel, make_analysis):
    kernel = make_kernel("k", launches=4, duration_s=4.0)
    parts = [part(kernel, "phase", "forward")]
    for rank in (0, 1):
        parts += [
            part(kernel, "rank", rank=rank, launches=2),
            part(kernel, "phaserank", "forward", rank, launches=2),
        ]
    page = made(make_analysis([kernel]), Detail(parts=tuple(parts)))
    assert column(page["parts"], "by") == ["rank", "rank"]
    assert column(page["parts"], "rank") == [0, 1]


def test_parts_beyond_the_room_are_left_out_the_finest_first(
    make_kernel, make_analysis, monkeypatch
):
    monkeypatch.setattr("mansard.charts.page.kernel_table.MOST_PARTS", 4)
    kernel = make_kernel("k", launches=8, duration_s=4.0)
    parts = [part(kernel, "phase", phase, launches=4) for phase in "ab"]
    parts += [part(kernel, "rank", rank=rank, launches=4) for rank in (0, 1)]
    parts += [
        part(kernel, "phaserank", phase, rank, launches=2) for phase in "ab" for rank in (0, 1)
    ]
    page = made(make_analysis([kernel]), Detail(parts=tuple(parts)))
    assert column(page["parts"], "by") == ["phase", "phase", "rank", "rank"]


def test_advice_names_its_kernels_by_place(make_kernel, make_analysis):
    analysis = make_analysis([make_kernel(f"k{n}", duration_s=1.0 - n / 10) for n in range(5)])
    given = [Advice(rule="r", sentence="s", recoverable_s=1.0, kernels=("k1", "k2", "k4"))]
    # Steps from place to place: 1, then 2, then 4.
    assert made(analysis, given=given)["report"]["advice"][0]["kernels"] == [1, 1, 2]


def test_operators_and_histograms_go_with_their_kernels(make_kernel, make_analysis):
    analysis = make_analysis([make_kernel("a", duration_s=2.0), make_kernel("b", duration_s=1.0)])
    detail = Detail(
        spreads={"b": ((1e-6, 3),), "gone": ((1e-6, 1),)},
        callers={"a": (Caller("aten::mm", None, 2, 0.5),)},
    )
    page = made(analysis, detail)
    assert page["spreads"] == {"1": [[1e-6, 3]]}
    assert page["callers"] == {"0": [["aten::mm", None, 2, 0.5]]}
