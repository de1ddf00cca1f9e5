"""The command line of ncu as text."""

import re
from pathlib import Path

import pytest

from mansard.collect.ncu.command import Job, command_line, kernel_filter, sampling
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.options import (
    Caches,
    Clocks,
    Conditions,
    Graphs,
    NcuOptions,
    NvtxScope,
    Replay,
    Selection,
)
from mansard.errors import UsageError

NEW = NcuTool(
    Path("/opt/nsight compute/ncu"),
    "2025.3.1.0",
    frozenset(
        [
            "config-file",
            "import-sass",
            "disable-extra-suffixes",
            "nvtx-push-pop-scope",
            "graph-profiling",
            "filter-mode",
            "kernel-id",
            "app-replay-buffer",
        ]
    ),
)
OLD = NcuTool(Path("ncu"), "2021.3.0.0", frozenset({"kernel-id", "kernel-name", "nvtx"}))


def line(tool=NEW, *, program=("./a b", 'it"s', "$HOME"), **changes):
    job = {
        "program": program,
        "report": Path("/data/run 1/100%/run.ncu-rep"),
        "log": Path("/data/run 1/ncu.log"),
        "counters": ("dram__bytes.sum", "gpu__time_duration.sum"),
        "selection": Selection(collectives=True),
    }
    return command_line(tool, Job(**(job | changes)))


def test_the_whole_line_for_all_launches_of_a_program():
    assert line() == [
        "/opt/nsight compute/ncu",
        *("--config-file", "off"),
        *("--export", "/data/run 1/100%%/run.ncu-rep", "--force-overwrite"),
        *("--log-file", "/data/run 1/ncu.log"),
        *("--target-processes", "all"),
        *("--metrics", "dram__bytes.sum,gpu__time_duration.sum"),
        *("--import-sass", "no"),
        "--disable-extra-suffixes",
        *("--clock-control", "none"),
        *("--cache-control", "none"),
        *("--replay-mode", "kernel"),
        "--nvtx",
        *("--nvtx-push-pop-scope", "process"),
        *("--graph-profiling", "node"),
        "./a b",
        'it"s',
        "$HOME",
    ]


def test_an_old_version_gets_only_the_options_that_it_knows():
    text = " ".join(line(OLD))
    assert "--metrics" in text
    assert not re.search("config-file|import-sass|extra-suffixes|graph-profiling|scope", text)


def test_whole_graphs_need_a_version_that_has_them():
    conditions = Conditions(graphs=Graphs.GRAPH)
    assert line(conditions=conditions)[-4] == "graph"
    with pytest.raises(UsageError, match=r"2021.3.0.0 .* has no --graph-profiling"):
        line(OLD, conditions=conditions)


def test_conditions_are_passed_on():
    conditions = Conditions(
        replay=Replay.APPLICATION,
        clocks=Clocks.BASE,
        caches=Caches.ALL,
        nvtx_scope=NvtxScope.THREAD,
    )
    text = " ".join(line(conditions=conditions))
    assert "--clock-control base --cache-control all --replay-mode application" in text
    assert "--nvtx-push-pop-scope thread" in text


def test_filters_are_passed_on():
    selection = Selection(
        kernel_name="gemm",
        nvtx_include=("step/", "net@forward/"),
        nvtx_exclude=("warmup/",),
        launch_skip=10,
        launch_count=3,
        from_start=False,
    )
    tail = line(selection=selection)[line().index("node") + 1 : -3]
    assert tail == [
        *("--kernel-name", "gemm", "--launch-skip", "10", "--launch-count", "3"),
        *("--profile-from-start", "off"),
        *("--nvtx-include", "step/", "--nvtx-include", "net@forward/"),
        *("--nvtx-exclude", "warmup/"),
    ]


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", False),
        ("nvshmemi_barrier", False),
        ("cross_device_reduce_1stage", False),
        ("one_shot_all_reduce_kernel", False),
        ("oneShotAllReduceKernel", False),
        ("multimem_all_gather_kernel", False),
        ("sm90_xmma_gemm_bf16", True),
        ("reduce_kernel", True),
        ("vectorized_elementwise_kernel", True),
    ],
)
def test_collectives_are_left_out_unless_they_are_asked_for(name, passes):
    expression = kernel_filter(Selection()).removeprefix("regex:")
    assert bool(re.search(expression, name)) is passes
    assert kernel_filter(Selection(collectives=True)) is None


def test_collectives_stay_out_of_an_expression_of_the_user():
    expression = kernel_filter(Selection(kernel_name="regex:^nccl|gemm$")).removeprefix("regex:")
    assert re.search(expression, "my_gemm")
    assert not re.search(expression, "ncclGemm")
    assert not re.search(expression, "my_gemm_2")


def test_a_kernel_named_exactly_is_wanted_whatever_it_does():
    assert kernel_filter(Selection(kernel_name="ncclKernel")) == "ncclKernel"


def test_a_sample_numbers_the_invocations_of_each_kernel_and_shape():
    shapes = ["--filter-mode", "per-launch-config"]
    assert sampling(NEW, [1], None, "function") == [*shapes, "--kernel-id", ":::1"]
    assert sampling(NEW, (1, 4), "regex:^(?!nccl)", "function")[-1] == "::regex:^(?!nccl):1|4"


def test_the_numbers_of_a_sample_come_with_the_job():
    text = " ".join(line(selection=Selection(sample=1, collectives=True), numbers=(1, 4, 11)))
    assert "--kernel-id :::1|4|11" in text


def test_templates_are_told_apart_where_no_function_was_named():
    tool = NcuTool(NEW.path, NEW.version, NEW.options | {"kernel-name-base"})
    text = " ".join(line(tool, selection=Selection(sample=1)))
    assert "--filter-mode per-launch-config --kernel-name-base mangled --kernel-id" in text
    named = " ".join(line(tool, selection=Selection(sample=1, kernel_name="gemm")))
    assert "--kernel-name-base" not in named


def test_shown_launches_need_no_filter_of_ncu():
    text = " ".join(line(selection=Selection(sample=1), gate=Path("/t/gate.so")))
    assert "--preload-library /t/gate.so --profile-from-start off" in text
    assert "--kernel-id" not in text


def test_whole_ranges_and_graphs_have_no_names_of_kernels():
    for conditions in (Conditions(replay=Replay.RANGE), Conditions(graphs=Graphs.GRAPH)):
        assert "--kernel-name" not in line(selection=Selection(), conditions=conditions)


def test_ranges_can_neither_be_sampled_nor_chosen_by_kernel():
    conditions = Conditions(replay=Replay.APP_RANGE)
    for selection in (Selection(sample=1), Selection(kernel_name="gemm")):
        with pytest.raises(UsageError, match="--replay app-range counts whole ranges"):
            NcuOptions(selection=selection, conditions=conditions)


def test_a_name_with_colons_gets_an_option_of_its_own():
    assert sampling(NEW, (1, 2), "regex:(?:a|b)", "function")[2:] == [
        *("--kernel-name", "regex:(?:a|b)", "--kernel-id", ":::1|2"),
    ]


def test_the_filter_of_collectives_has_no_colon_that_would_cut_the_kernel_id():
    assert ":" not in kernel_filter(Selection()).removeprefix("regex:")


def test_sampling_needs_a_version_that_can():
    with pytest.raises(UsageError, match="no --filter-mode, which the sampling of launches needs"):
        line(OLD, selection=Selection(sample=1))


def test_whole_graphs_cannot_be_put_together_with_a_trace_of_kernels():
    with pytest.raises(UsageError, match="--graphs graph counts whole graphs"):
        NcuOptions(selection=Selection(sample=1), conditions=Conditions(graphs=Graphs.GRAPH))


def test_a_sample_cannot_be_combined_with_numbers_of_launches():
    with pytest.raises(UsageError, match="--launch-skip and --launch-count cannot"):
        Selection(sample=1, launch_count=5)
    with pytest.raises(UsageError, match="at least 1"):
        Selection(sample=0)
