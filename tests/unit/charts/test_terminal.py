"""The report on a terminal."""

import dataclasses
import io

import pytest
from rich.console import Console

from mansard.charts.columns import intensity_text
from mansard.charts.terminal import report_view
from mansard.errors import UsageError
from mansard.model.analysis import Timeline
from mansard.model.notice import Notice


def shown(analysis, width=80, **options):
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False)
    console.print(report_view(analysis, **options))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 119, 160])
@pytest.mark.parametrize("name", ["v100", "v100_two_phases", "h200"])
def test_no_line_is_wider_than_the_terminal(width, name, request):
    text = shown(request.getfixturevalue(name), width)
    assert max(len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_number_is_cut(width, v100_two_phases):
    text = shown(v100_two_phases, width).split("\nKernels")[1]
    row = text[text.index("spatialDepthwise") :].split("elementwise_kernel")[0]
    for cell in ("55", "6.80 ms", "6.3 %", "1.59 T", "0.931", "7.18", "7.75", "DRAM", "24.8 %"):
        assert cell in row
    assert "5.11 ms" in row


def test_plain_text_has_no_escape_and_no_trailing_space(h200):
    text = shown(h200)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_head_says_gpu_collector_conditions_and_roofs(h200):
    text = shown(h200)
    for fact in (
        "NVIDIA H200, driver 580.159.04",
        "Nsight Compute 2025.3.1",
        "clock control none",
        "h200-sxm, measured at 1.54 GHz to 1.98 GHz",
    ):
        assert fact in text


def test_the_census_of_kernels_without_flop(v100):
    # 304 of 556 launches, as the authors of arXiv 2009.05257 counted.
    assert "no FLOP    304 launches (54.7 %), 20.4 % of the time" in shown(v100)


def test_the_precision_mix(v100):
    assert "precision  tensor fp16 99.5 %, vector fp32 0.4 %, vector fp16 0.1 %" in shown(v100)


def test_a_wide_terminal_gets_one_line_per_kernel(v100):
    (line,) = [line for line in shown(v100, 160).splitlines() if "PadInput" in line]
    for cell in ("PadInputCustomKernelNHWC", "9.55 ms", "4.8 %", "DRAM", "30.1 %", "6.68 ms"):
        assert cell in line


def test_the_rest_is_counted(v100):
    assert "and 49 more, 50.1 % of the time" in shown(v100, top=3)


def test_phases_stand_above_the_kernels_when_there_are_several(v100_two_phases):
    text = shown(v100_two_phases)
    assert text.index("Phases") < text.index("optimizer") < text.index("Kernels")


@pytest.mark.parametrize(
    ("by", "title"), [("family", "Families"), ("phase", "Phases"), ("rank", "Ranks")]
)
def test_rows_can_be_something_else(by, title, v100):
    text = shown(v100, by=by)
    assert title in text
    assert "Kernels" not in text


def test_rows_by_nonsense_are_refused_with_the_choices(v100):
    with pytest.raises(UsageError, match="choose one of kernel, family, phase, rank"):
        report_view(v100, by="colour")


def test_markup_in_a_name_stays_text(make_analysis, make_kernel):
    name = "[bold red]x[/bold red] [link=http://x]y[/link] [/]"
    assert "[bold red]x[/bold red]" in shown(make_analysis([make_kernel(name)]), 160)


def test_terminal_escapes_in_names_and_notices_are_harmless(make_analysis, make_kernel):
    analysis = make_analysis(
        [make_kernel("\x1b]0;owned\x07\x1b[2Jk")],
        label="a\x1b[31m\nb",
        notices=[Notice(code="c\x1b", message="m\x1b[31m")],
    )
    text = shown(analysis)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_warnings_come_last_and_wrap(v100_two_phases):
    text = shown(v100_two_phases)
    assert text.index("Kernels") < text.index("Warnings")
    assert "- joined-by-name: twelve files were joined" in text


def test_hundreds_of_warnings_are_cut_and_counted(make_analysis, make_kernel):
    notices = [Notice(code=f"c{n}", message="m") for n in range(300)]
    text = shown(make_analysis([make_kernel("k")], notices=notices))
    assert "and 280 more" in text


def test_without_a_machine_floors_are_unknown_not_zero(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 1e9}, moved={"dram": 1e6})
    text = shown(make_analysis([kernel]), 160)
    assert "none (no machine given" in text
    assert "\nefficiency" not in text
    (line,) = [line for line in text.splitlines() if line.startswith("1  k")]
    assert line.split()[-3:] == ["-", "-", "-"]


def test_work_that_is_a_lower_bound_says_what_is_missing(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"vector fp32": 1e9, "tensor bf16": None})
    text = shown(make_analysis([kernel]))
    assert "at least 1.00 GFLOP" in text
    assert "not collected: tensor bf16" in text


def test_above_the_roof_gives_causes_and_no_verdict(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel("k", duration_s=1e-3, floor_s=3.69e-3, bound="tensor")
    text = shown(make_analysis([kernel], machine=h200_machine), 160)
    assert "369" not in text
    assert "> roof" in text
    assert "Look at: rate given as a total over ranks" in text


def test_launches_above_the_roof_are_counted(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel("k", launches=9, launches_above_roof=2)
    text = shown(make_analysis([kernel], machine=h200_machine))
    assert "2 launches faster than the roof: something is wrong." in text


def test_an_undecided_bound_is_explained(make_analysis, make_kernel):
    text = shown(make_analysis([make_kernel("k", bound="unknown among l2")]))
    assert "bound ?: a resource of the machine was not collected." in text


def test_limits_of_the_census_are_told_when_the_analysis_gives_them(make_analysis, make_kernel):
    kernel = make_kernel("k", launches=3, short_launches=2, near_zero_flop_launches=1)
    analysis = make_analysis([kernel])
    analysis.options["short_launch_s"] = 5e-6
    analysis.options["near_zero_intensity"] = 0.5
    text = shown(analysis)
    assert "2 launches (66.7 %), below 5.00 us" in text
    assert "near zero  1 launch (33.3 %), 0.0 % of the time, below 0.5 FLOP/byte" in text


def test_causes_are_not_told_twice(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel("k", launches=9, launches_above_roof=2)
    said = Notice(code="above-roof", message="2 of 9 launches are faster than their roof")
    text = shown(make_analysis([kernel], machine=h200_machine, notices=[said]))
    assert "Look at" not in text


def test_an_empty_run_has_a_report(make_analysis):
    assert "0 launches" in shown(make_analysis([]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.00783, "0.0078"),
        (0.0208, "0.0208"),
        (62.755, "62.8"),
        (999.7, "1000"),
        (18088.2, "18088"),
        (1.29e5, "1e+05"),
        (2.67e-4, "3e-04"),
        (float("inf"), "-"),
    ],
)
def test_intensities_fit_six_letters(value, text):
    assert intensity_text(value) == text
    assert len(text) <= 6


def test_what_to_do_first_stands_before_the_tables(v100_two_phases):
    text = shown(v100_two_phases)
    block = text[text.index("What to do first") : text.index("\nPhases")]
    assert block.splitlines()[1].startswith("1. up to ")
    assert "No tensor work in implicit_convolve_sgemm" in " ".join(block.split())
    assert "(see --json)" in block


def test_without_advice_there_is_no_heading(make_analysis, make_kernel):
    assert "What to do first" not in shown(make_analysis([make_kernel("k")]))


def test_a_hostile_name_in_a_sentence_cannot_escape(make_analysis, make_kernel):
    kernel = make_kernel("\x1b[31mcopy", family="copy", flop={"vector fp32": 0.0})
    text = shown(make_analysis([kernel]))
    assert "Casts and copies take" in text
    assert "\x1b" not in text


def integer_and_other(make_kernel):
    # 2 G operations in 1 ms over 4 MB.
    integer = make_kernel(
        "igemm", flop={"tensor int8": 2e9, "vector fp32": 0.0}, moved={"dram": 4e6}, duration_s=1e-3
    )
    floating = make_kernel("gemm", flop={"vector fp32": 3e9}, moved={"dram": 4e6}, duration_s=1e-3)
    return [integer, floating]


@pytest.mark.parametrize("width", [80, 160])
def test_a_kernel_of_integer_work_alone_shows_its_operations_and_says_so(
    width, make_analysis, make_kernel
):
    text = shown(make_analysis(integer_and_other(make_kernel)), width)
    assert "2.00 T*" in text
    # 2 G operations over 4 MB.
    assert "500" in text[text.index("igemm") : text.index("2  gemm" if width > 80 else "2 gemm")]
    assert "3.00 T " in text
    assert "*: only integer operations, so OP/s and OP/byte" in " ".join(text.split())


def test_without_integer_work_nothing_is_marked(make_analysis, make_kernel):
    text = shown(make_analysis(integer_and_other(make_kernel)[1:]))
    assert "*" not in text


def test_a_step_stands_with_its_time_traced_and_alone(make_analysis, make_kernel):
    passed = Timeline(steps=1, elapsed_s=47.3e-3, busy_s=31.9e-3, gaps=3, longest_gap_s=4e-3,
                      longest_gap_before="k", collective_only_s=0.0, host_s=31.8e-3)  # fmt: skip
    analysis = dataclasses.replace(make_analysis([make_kernel("k")]), timeline=passed)
    text = shown(analysis)
    assert max(map(len, text.splitlines())) <= 80
    assert (
        "step traced, a step takes 47.3 ms, of which the GPU is busy 31.9 ms (67.4 %); left alone,"
        " 31.8 ms: the GPU is never idle, the gaps are the trace's"
    ) in " ".join(text.split())
    assert "\nstep" not in shown(make_analysis([make_kernel("k")]))
