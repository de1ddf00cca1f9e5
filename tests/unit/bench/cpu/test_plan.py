import dataclasses

import pytest

from mansard.bench.cpu.plan import make_plan
from mansard.errors import UsageError


def test_by_default_every_core_and_every_part_is_measured(server):
    plan = make_plan(server)
    assert plan.cpus == (0, 1, 2, 3)
    assert [recipe.path for recipe in plan.recipes] == ["vector fp64", "vector fp32", "vector int8"]
    assert [path for path, _ in plan.missing] == [
        "vector fp16",
        "vector bf16",
        "tensor bf16",
        "tensor int8",
    ]
    assert [stream.label for stream in plan.streams] == [
        *(
            f"{level} {access}"
            for level in ("l1", "l2", "l3")
            for access in ("read", "write", "copy", "triad")
        ),
        "dram read",
        "dram write",
        "dram write nt",
        "dram copy",
        "dram copy nt",
        "dram triad",
        "dram triad nt",
    ]


def test_the_quota_of_the_control_group_limits_threads(server):
    assert make_plan(dataclasses.replace(server, quota_cores=2.0)).cpus == (0, 1)


@pytest.mark.parametrize("threads", [0, -1, 5])
def test_threads_without_a_core_of_their_own_are_refused(server, threads):
    with pytest.raises(UsageError, match="Give 1 to 4"):
        make_plan(server, threads=threads)


@pytest.mark.parametrize(
    ("only", "recipes", "missing", "streams"),
    [
        (("compute",), 3, 4, 0),
        (("vector fp64",), 1, 0, 0),
        (("tensor bf16",), 0, 1, 0),
        (("bandwidth",), 0, 0, 19),
        (("L2", "dram triad nt"), 0, 0, 5),
        (("vector fp32", "l1 read"), 1, 0, 1),
    ],
)
def test_parts_can_be_chosen(server, only, recipes, missing, streams):
    plan = make_plan(server, only=only)
    assert (len(plan.recipes), len(plan.missing), len(plan.streams)) == (recipes, missing, streams)


def test_an_unknown_part_is_refused_with_the_ones_that_exist(server):
    with pytest.raises(
        UsageError, match=r"nothing called l4 to measure .*l1, l2, l3, dram.* l1 read"
    ):
        make_plan(server, only=["l4"])


def test_memory_is_taken_only_for_what_is_measured(server):
    assert make_plan(server, only=["compute"]).each_bytes == 0
    assert make_plan(server, only=["l1"]).each_bytes == 24 * 1024
    assert make_plan(server).each_bytes == 64 * 1024**2
    assert make_plan(server).first_bytes == 256 * 1024**2


def test_a_level_that_cannot_be_measured_is_kept_with_its_reason(server):
    plan = make_plan(dataclasses.replace(server, memory_free_bytes=1024**2))
    assert {stream.level.name for stream in plan.missing_streams} == {"dram"}
    assert all("are needed" in stream.level.reason for stream in plan.missing_streams)
