"""Launches from records, their order, their time, and where two iterations differ."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.collect.cupti import activity, decode
from mansard.collect.demangle import demangle
from mansard.collect.launches import (
    GRAPH,
    Identity,
    Launch,
    Trace,
    busy_ns,
    calls,
    check_complete,
    difference,
)
from mansard.collect.marks import Range
from mansard.errors import CollectError

RECORDED = json.loads((Path(__file__).parents[2] / "data/collect/h200_pass.json").read_text())


def kernel_record(correlation, name, start=0, end=1, **other):
    fields = {
        "kind": activity.KERNEL,
        "correlationId": correlation,
        "name": name.encode(),
        "start": start,
        "end": end,
        "deviceId": 0,
        "streamId": 7,
        "graphId": 0,
        "graphNodeId": 0,
    }
    shape = dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1)
    return SimpleNamespace(**(fields | shape | other))


def call_record(correlation, start, kind=activity.RUNTIME):
    return SimpleNamespace(kind=kind, correlationId=correlation, start=start)


def test_recorded_kernels_come_in_the_order_of_their_calls_with_the_time_of_the_call():
    records = []
    for each in RECORDED["trace"]:
        records += [
            kernel_record(each["correlation"], each["name"], each["start"], each["end"]),
            call_record(each["correlation"], each["call"]),
        ]
    found = decode.launches(records)
    assert [launch.correlation for launch in found] == [11, 13, 24, 32]
    assert [launch.launch_ns for launch in found] == [1180000, 1210000, 1430000, 1530000]
    assert found[2].name == "void at::native::vectorized_elementwise_kernel<4>(int)"
    assert found[0].end_ns - found[0].start_ns == 10111


def test_a_call_seen_in_runtime_and_driver_has_the_earlier_time():
    records = [
        kernel_record(5, "k"),
        call_record(5, 200, activity.DRIVER),
        call_record(5, 100, activity.RUNTIME),
    ]
    assert decode.launches(records)[0].launch_ns == 100


def test_copies_say_their_direction_and_bytes():
    copy = kernel_record(1, "", kind=activity.MEMCPY, copyKind=1, bytes=4096)
    odd = kernel_record(2, "", kind=activity.MEMCPY, copyKind=77, bytes=1)
    fill = kernel_record(3, "", kind=activity.MEMSET, bytes=64)
    found = decode.launches([copy, odd, fill])
    assert [(each.kind, each.name, each.bytes_moved, each.grid) for each in found] == [
        ("memcpy", "memcpy HtoD", 4096, None),
        ("memcpy", "memcpy kind 77", 1, None),
        ("memset", "memset", 64, None),
    ]


def test_a_graph_id_counts_only_for_nodes_of_a_graph():
    node = kernel_record(1, "k", graphId=3, graphNodeId=9)
    plain = kernel_record(2, "k", graphId=3, graphNodeId=0)
    assert [launch.graph for launch in decode.launches([node, plain])] == [3, 0]


def mark(number, flags, timestamp, name=None, domain=None):
    return SimpleNamespace(
        kind=activity.MARKER, id=number, flags=flags, timestamp=timestamp, name=name, domain=domain
    )


def test_nvtx_ranges_are_put_together_by_their_number():
    records = [
        mark(1, 2, 100, b"step"),
        mark(2, 2, 110, b"forward"),
        mark(2, 4, 150),
        mark(3, 1, 155, b"just a mark"),
        mark(3, 2, 160, b"open"),
        mark(1, 4, 200),
        mark(9, 4, 201),
    ]
    assert decode.named_ranges(records, 300) == (
        Range("step", 100, 200),
        Range("forward", 110, 150),
        Range("open", 160, 300),
    )


def test_ranges_that_nccl_opens_for_itself_are_none_of_the_program():
    records = [
        mark(1, 2, 100, b"ncclAllReduce", b"NCCL"),
        mark(2, 2, 110, b"mine", b"my code"),
        mark(2, 4, 120),
        mark(1, 4, 150),
    ]
    assert decode.named_ranges(records, 300) == (Range("mine", 110, 120),)


def test_names_that_are_no_cpp_symbols_stay():
    assert demangle("triton_poi_fused_add_0") == "triton_poi_fused_add_0"
    assert demangle("_Znonsense") == "_Znonsense"
    assert demangle("_Z3addPfS_i") == "add(float*, float*, int)"


def test_busy_time_counts_overlapping_launches_once(make_kernel):
    def at(start, end):
        launch = make_kernel()
        return Launch(kind=launch.kind, name="k", device=0, stream=1, start_ns=start, end_ns=end)

    assert busy_ns([at(0, 10), at(5, 20), at(6, 7), at(30, 40), at(20, 25)]) == 35
    assert busy_ns([]) == 0


def test_equal_iterations_do_not_differ(make_kernels):
    assert difference(calls(make_kernels("a", "b")), calls(make_kernels("a", "b"))) is None


def test_the_first_difference_is_told_with_both_names(make_kernels):
    told = difference(calls(make_kernels("a", "b", "c")), calls(make_kernels("a", "x", "y")))
    assert told is not None
    assert "launch 1: b <4x1x1, 128x1x1> in the traced iteration, x" in told
    assert "2 of 3 launches differ" in told


def test_a_longer_or_shorter_iteration_is_told_with_the_extra_launch(make_kernels):
    longer = difference(calls(make_kernels("a")), calls(make_kernels("a", "b")))
    shorter = difference(calls(make_kernels("a", "b")), calls(make_kernels("a")))
    assert "1 launches in the traced iteration, 2 in this; launch 1, b" in str(longer)
    assert str(longer).endswith("is in the new one alone")
    assert str(shorter).endswith("is in the traced iteration alone")


def test_a_kernel_whose_name_is_not_told_is_compared_by_its_shape():
    known = Identity("add", (1, 1, 1), (32, 1, 1))
    assert difference([known], [Identity("", (1, 1, 1), (32, 1, 1))]) is None
    assert difference([known], [Identity("", (2, 1, 1), (32, 1, 1))]) is not None


def test_all_nodes_of_a_graph_are_one_call(make_kernel):
    nodes = [make_kernel(name, graph=3, number=0) for name in ("a", "b")]
    assert calls([*nodes, make_kernel("c", number=5)]) == (
        GRAPH,
        Identity("c", (4, 1, 1), (128, 1, 1)),
    )


def test_endless_names_are_cut_in_messages(make_kernel):
    told = difference(calls([make_kernel("x" * 5000)]), calls([make_kernel("y" * 5000)]))
    assert told is not None
    assert len(told) < 400


def test_a_step_that_launches_nothing_is_refused_with_a_hint():
    with pytest.raises(CollectError, match="inside the with-block"):
        check_complete(Trace(()))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_busy_time_is_the_measure_of_the_union(spans):
    launches = [
        Launch(kind="kernel", name="k", device=0, stream=1, start_ns=a, end_ns=a + length)
        for a, length in spans
    ]
    covered = {tick for a, length in spans for tick in range(a, a + length)}
    assert busy_ns(launches) == len(covered)
