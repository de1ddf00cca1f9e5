"""Sentences on a run and the kernels behind each of them."""

import dataclasses

import pytest

from mansard.charts.page.detail import Detail, KernelPart
from mansard.charts.page.first import advice_sentences, ranks_text
from mansard.charts.page.summary import summary
from mansard.model.advice import Advice
from mansard.model.analysis import Timeline


def texts(analysis, detail=None):
    return ["".join(p.text for p in sentence) for sentence in summary(analysis, detail or Detail())]


def links(analysis, start, detail=None):
    for sentence in summary(analysis, detail or Detail()):
        if "".join(phrase.text for phrase in sentence).startswith(start):
            return [(phrase.text, phrase.filter) for phrase in sentence if phrase.filter]
    raise AssertionError(start)


def kernels(make_kernel):
    gemm = make_kernel(
        "gemm", duration_s=6e-3, launches=2, flop={"tensor bf16": 9e9, "vector fp32": 1e9},
        floors_s={"tensor": 3e-3}, floor_s=3e-3, bound="tensor", family="gemm",
    )  # fmt: skip
    cast = make_kernel(
        "cast", duration_s=3e-3, launches=6, flop={"tensor bf16": 0.0, "vector fp32": 0.0},
        floors_s={"dram": 2e-3}, floor_s=2e-3, bound="dram", family="copy",
    )  # fmt: skip
    odd = make_kernel(
        "odd", duration_s=1e-3, flop={"tensor bf16": None, "vector fp32": None},
        floors_s={"dram": 0.5e-3}, floor_s=0.5e-3, bound="unknown among dram, l1",
    )  # fmt: skip
    return gemm, cast, odd


def test_time_floors_and_what_can_be_won(make_kernel, make_analysis, h200_machine):
    said = texts(make_analysis(kernels(make_kernel), machine=h200_machine))
    assert said[0] == "10.0 ms on the GPU, in 9 launches of 3 kernels."
    # 3 + 2 + 0.5 ms of floors in 10 ms.
    assert said[1] == (
        "The floors of the launches add up to 5.50 ms, 55.0 % of the measured time:"
        " 4.50 ms are recoverable."
    )
    assert said[2] == (
        "Recoverable by what bounds the kernel: tensor (3.00 ms, 1 kernel),"
        " DRAM (1.00 ms, 1 kernel), undecided (500 us, 1 kernel)."
    )
    assert said[3] == "By family: gemm (3.00 ms), copy (1.00 ms), other (500 us)."


def test_each_part_of_a_sentence_leads_to_its_kernels(make_kernel, make_analysis, h200_machine):
    analysis = make_analysis(kernels(make_kernel), machine=h200_machine)
    assert links(analysis, "Recoverable by") == [
        ("tensor (3.00 ms, 1 kernel)", ("bound", "tensor")),
        ("DRAM (1.00 ms, 1 kernel)", ("bound", "dram")),
        ("undecided (500 us, 1 kernel)", ("bound", "?")),
    ]
    assert links(analysis, "FLOP by precision") == [
        ("tensor bf16 90.0 %", ("path", "tensor bf16")),
        ("vector fp32 10.0 %", ("path", "vector fp32")),
    ]
    assert links(analysis, "6 launches") == [("1 kernel", ("is", "zero"))]
    assert links(analysis, "FLOP or time of") == [("1 kernel", ("is", "unknown"))]


def test_zero_flop_launches_are_counted_with_their_time(make_kernel, make_analysis):
    said = texts(make_analysis(kernels(make_kernel)))
    # 6 of 9 launches, 3 of 10 ms.
    assert "6 launches (66.7 %) of 1 kernel do no floating-point work: 30.0 % of the time." in said


def test_without_a_machine_nothing_is_said_of_floors(make_kernel, make_analysis):
    said = texts(make_analysis([make_kernel("k", duration_s=1.0)]))
    assert "No machine is known, so there are no floors, bounds or efficiencies." in said
    assert not [sentence for sentence in said if "recoverable" in sentence.lower()]


def test_kernels_that_take_longer_to_launch_than_to_do_are_named(
    make_kernel, make_analysis, h200_machine
):
    tiny = make_kernel("tiny", duration_s=1e-3, launches=1000, bound="launch",
                       floors_s={"launch": 0.5e-3}, floor_s=0.5e-3)  # fmt: skip
    analysis = make_analysis([tiny], machine=h200_machine)
    said = next(text for text in texts(analysis) if "less time to do" in text)
    assert said == (
        "1 kernel takes less time to do than to launch: 1000 launches, 100.0 % of the time."
        " 1000 launches (100.0 %) of 1 kernel are short."
        # 1000 launches at 3.482 us into a stream.
        " To start all launches one by one costs 3.48 ms, 348.2 % of the time on the GPU."
    )


def test_kernels_above_their_roof_are_a_fault(make_kernel, make_analysis, h200_machine):
    fast = make_kernel("fast", duration_s=1e-3, floor_s=2e-3, bound="dram", floors_s={"dram": 2e-3})
    said = texts(make_analysis([fast], machine=h200_machine))
    assert [text for text in said if "faster than the roof allows" in text]


def test_a_step_says_how_busy_the_gpu_is(make_kernel, make_analysis):
    passed = Timeline(steps=1, elapsed_s=20e-3, busy_s=5e-3, gaps=3, longest_gap_s=4e-3,
                      longest_gap_before="k", collective_only_s=0.0)  # fmt: skip
    analysis = dataclasses.replace(make_analysis(kernels(make_kernel)), timeline=passed)
    assert texts(analysis)[0].endswith(
        " A step takes 20.0 ms, of which the GPU is busy 5.00 ms (25.0 %)."
    )
    alone = dataclasses.replace(passed, host_s=8e-3)
    found = texts(dataclasses.replace(analysis, timeline=alone))[0]
    assert " Traced, a step takes 20.0 ms" in found
    assert found.endswith(" Left alone, 8.00 ms, in which the GPU idles 3.00 ms.")


@pytest.mark.parametrize("host_s", [4.98e-3, 5e-3, 5.02e-3])
def test_a_step_that_takes_no_longer_than_its_kernels_has_no_gaps_of_its_own(
    host_s, make_kernel, make_analysis
):
    # 5.02 ms is 5.00 ms of kernels to within half a percent.
    passed = Timeline(steps=1, elapsed_s=20e-3, busy_s=5e-3, gaps=3, longest_gap_s=4e-3,
                      longest_gap_before="k", collective_only_s=0.0, host_s=host_s)  # fmt: skip
    analysis = dataclasses.replace(make_analysis(kernels(make_kernel)), timeline=passed)
    said = " ms: the GPU is never idle, the gaps are the trace's."
    assert texts(analysis)[0].endswith(said)


def test_several_steps_are_added_up(make_kernel, make_analysis):
    passed = Timeline(steps=4, elapsed_s=20e-3, busy_s=5e-3, gaps=3, longest_gap_s=4e-3,
                      longest_gap_before="k", collective_only_s=0.0, host_s=10e-3)  # fmt: skip
    analysis = dataclasses.replace(make_analysis(kernels(make_kernel)), timeline=passed)
    said = texts(analysis)[0]
    assert " Traced, 4 steps take 20.0 ms (all ranks and GPUs added up), of which" in said
    assert said.endswith(" Left alone, 10.0 ms, in which the GPU idles 5.00 ms.")


def test_phases_lead_to_a_filter_only_where_the_page_can_filter(
    make_kernel, make_analysis, h200_machine
):
    gemm, cast, odd = kernels(make_kernel)
    phases = {"forward": [gemm], None: [cast, odd]}
    analysis = make_analysis([gemm, cast, odd], machine=h200_machine, phases=phases)
    assert links(analysis, "By phase") == []
    detail = Detail(parts=(KernelPart("forward", None, "phase", gemm),))
    assert links(analysis, "By phase", detail) == [
        ("forward (3.00 ms)", ("phase", "forward")),
        ("(none) (1.50 ms)", ("phase", "(none)")),
    ]


def test_ranks_name_the_longest_and_the_kernel_in_which_they_differ(make_kernel, make_analysis):
    gemm, cast, _ = kernels(make_kernel)
    analysis = make_analysis([gemm, cast])
    first, second = (
        dataclasses.replace(analysis.totals, key=key, duration_s=time)
        for key, time in (("0", 4e-3), ("1", 5e-3))
    )
    analysis = dataclasses.replace(analysis, ranks=(first, second))
    parts = tuple(
        KernelPart(None, rank, "rank", dataclasses.replace(kernel, duration_s=time))
        for kernel, rank, time in (
            (gemm, 0, 2.9e-3), (gemm, 1, 3.1e-3), (cast, 0, 1.1e-3), (cast, 1, 1.9e-3),
        )
    )  # fmt: skip
    said = next(text for text in texts(analysis, Detail(parts=parts)) if "ranks" in text)
    # 5 ms is 11.1 % more than the mean of 4.5 ms.
    assert said == (
        "2 ranks; the longest on the GPU is rank 1 with 5.00 ms, 11.1 % more than their mean."
        " The ranks differ most in kernel 2 (cast): 1.10 ms to 1.90 ms."
    )
    assert ranks_text(analysis) == ""


def test_advice_says_what_it_can_win_and_leads_to_its_kernels(make_kernel, make_analysis):
    analysis = make_analysis(kernels(make_kernel))
    advice = Advice(rule="fuse", sentence="Fuse the casts.", recoverable_s=1e-3, kernels=("cast",))
    other = Advice(rule="clock", sentence="The clock is low.", recoverable_s=None)
    first, second = advice_sentences(analysis, [advice, other])
    assert "".join(phrase.text for phrase in first) == (
        "Up to 1.00 ms (10.0 %). Fuse the casts. (1 kernel)"
    )
    assert [phrase.filter for phrase in first if phrase.filter] == [("advice", "1")]
    assert "".join(phrase.text for phrase in second) == "The clock is low."


def test_a_phase_with_braces_in_its_name_is_named_as_it_is(make_kernel, make_analysis):
    """As of an f-string without its f."""
    kernel = make_kernel("k", duration_s=1e-2, floors_s={"dram": 4e-3}, floor_s=4e-3, bound="dram")
    phases = [dataclasses.replace(kernel, key=key) for key in ("step {i}", "{} {0} {")]
    said = texts(dataclasses.replace(make_analysis([kernel]), phases=tuple(phases)))
    assert "By phase: step {i} (6.00 ms), {} {0} { (6.00 ms)." in said
