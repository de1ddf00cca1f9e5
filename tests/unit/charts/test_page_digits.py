"""Fewer digits never change a figure."""

import random

import pytest

from mansard.charts.columns import intensity_text
from mansard.charts.page.digits import following, rates, shortened
from mansard.units import format_share, format_si


@pytest.fixture
def rate(h200_machine):
    return rates(h200_machine)


def figures(kernel):
    return [
        format_si(kernel.duration_s),
        format_si(kernel.flop),
        format_si(kernel.flop_per_s),
        format_si(kernel.floor_s),
        format_si(kernel.recoverable_s),
        format_share(kernel.efficiency),
        *(format_si(value) for value in kernel.bytes_by_level.values()),
        *(format_si(value) for value in kernel.floors_s.values()),
        *(intensity_text(value) for value in kernel.intensity.values()),
    ]


def kernels(make_kernel, machine, count=300):
    rng = random.Random(3)
    for number in range(count):
        moved = rng.lognormvariate(16, 3)
        yield make_kernel(
            f"kernel_{number}",
            launches=rng.choice((1, 2, 5)),
            duration_s=rng.lognormvariate(-9, 2),
            flop={"vector fp32": moved * rng.random(), "tensor bf16": moved * rng.choice((0, 90))},
            moved={
                "l1": moved * 3.3,
                "l2": None if number % 7 == 0 else moved * 1.7,
                "dram": moved,
            },
            machine=machine,
            duration_min_s=rng.lognormvariate(-9, 2),
            duration_max_s=rng.lognormvariate(-9, 2),
        )


def test_no_figure_changes(make_kernel, make_analysis, h200_machine, rate):
    analysis = make_analysis(kernels(make_kernel, h200_machine), machine=h200_machine)
    for kernel in analysis.kernels:
        cut = shortened(kernel, analysis, rate)
        assert figures(cut) == figures(kernel)
        assert (cut.key, cut.launches, cut.bound) == (kernel.key, kernel.launches, kernel.bound)
        assert cut.duration_s == pytest.approx(kernel.duration_s, rel=1e-4)


def test_most_kernels_need_no_more_than_five_digits(make_kernel, make_analysis, h200_machine, rate):
    analysis = make_analysis(kernels(make_kernel, h200_machine), machine=h200_machine)
    short = [
        kernel
        for kernel in analysis.kernels
        if (cut := shortened(kernel, analysis, rate)).duration_s == float(f"{cut.duration_s:.4e}")
    ]
    assert len(short) > 0.7 * len(analysis.kernels)


def test_a_number_whose_figure_hangs_on_later_digits_keeps_them(make_kernel, make_analysis, rate):
    # Five digits would be 1.2350, which is written 1.24 (to the even digit), not 1.23.
    kernel = make_kernel("k", duration_s=1.2349999)
    assert format_si(1.2349999) == "1.23"
    assert format_si(1.2350) == "1.24" or format_si(1.235) == "1.23"
    cut = shortened(kernel, make_analysis([kernel]), rate)
    assert format_si(cut.duration_s) == "1.23"


def test_floors_follow_from_bytes_and_flop(make_kernel, h200_machine, rate):
    kernel = make_kernel(
        "k",
        launches=4,
        duration_s=1e-3,
        flop={"vector fp32": 66.222e6, "vector fp16": 132.230e6, "tensor int8": 1895.374e6},
        moved={"dram": 4.690e6, "l2": None},
        machine=h200_machine,
        zero_flop_launches=0,
    )
    worked_out = following(kernel, rate)
    # 66.222 MFLOP at 66.222 TFLOP/s and 132.23 at 132.23: twice 1 us on the vector pipe.
    assert worked_out["floors_s.vector"] == pytest.approx(2e-6)
    assert worked_out["floors_s.tensor"] == pytest.approx(1e-6)
    assert worked_out["floors_s.dram"] == pytest.approx(1e-6)
    assert worked_out["floors_s.l2"] is None
    assert worked_out["floors_s.launch"] == pytest.approx(4 * 0.501e-6)
    assert worked_out["floor_s"] == max(f for f in kernel.floors_s.values() if f is not None)
    assert worked_out["flop"] == 66.222e6 + 132.230e6
    assert worked_out["zero_flop_duration_s"] == 0


def test_work_on_a_path_without_a_roof_has_no_floor(make_kernel, h200_machine, rate):
    kernel = make_kernel("k", flop={"tensor fp4": 1e9}, machine=h200_machine,
                         floors_s={"tensor": None})  # fmt: skip
    assert following(kernel, rate)["floors_s.tensor"] is None


def test_without_a_machine_there_is_nothing_to_follow_from():
    assert rates(None) == {}
