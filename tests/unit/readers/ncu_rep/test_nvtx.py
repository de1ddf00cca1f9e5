"""Phase and range of a launch, from the NVTX state."""

import report_writer as w
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.readers.ncu_rep.nvtx import EVERY_THREAD, Ranges, ranges_around


def test_ranges_are_joined_outermost_first_and_the_outermost_is_the_phase():
    state = w.nvtx_state(pushed=[(5, 0, [("step", 1), ("forward", 2), ("layer 3", 9)])])
    assert ranges_around(state, 5) == Ranges("step/forward/layer 3", "step")


def test_a_state_without_open_ranges_has_no_phase():
    assert ranges_around(w.nvtx_state(pushed=[(5, 0, [])]), 5) == Ranges(None, None)


def test_a_range_of_a_library_is_never_the_phase_where_the_program_has_one():
    state = w.nvtx_state(
        pushed=[(5, 1, [("cub::DeviceRadixSort", 5758)]), (5, 0, [("sort", 5734)])]
    )
    assert ranges_around(state, 5) == Ranges("sort/cub::DeviceRadixSort", "sort")


def test_a_library_range_around_the_programs_is_not_the_phase_either():
    state = w.nvtx_state(
        pushed=[(5, 1, [("ncclGroup", 1)]), (5, 0, [("exchange", 2)])],
        domains=[(0, "<default domain>"), (1, "NCCL")],
    )
    assert ranges_around(state, 5) == Ranges("ncclGroup/exchange", "exchange")


def test_a_library_range_alone_is_the_phase():
    state = w.nvtx_state(pushed=[(5, 1, [("cub::DeviceRadixSort", 1)])])
    assert ranges_around(state, 5).phase == "cub::DeviceRadixSort"


def test_a_domain_of_the_users_own_counts_like_the_default_one():
    state = w.nvtx_state(
        pushed=[(5, 2, [("epoch", 1)]), (5, 0, [("aten::mm", 2)])],
        domains=[(0, "<default domain>"), (2, "my app")],
    )
    assert ranges_around(state, 5) == Ranges("epoch/aten::mm", "epoch")


def test_start_end_ranges_hold_for_all_threads_and_come_first():
    # Backward runs on another thread than the one that opened the phase.
    state = w.nvtx_state(
        pushed=[(5, 0, [("main thread", 1)]), (6, 0, [("autograd", 2)])],
        started=[(0, [(11, "inner"), (10, "backward")])],
    )
    assert ranges_around(state, 6) == Ranges("backward/inner/autograd", "backward")


def test_ranges_of_all_threads_count_where_they_hold_for_the_process():
    state = w.nvtx_state(pushed=[(6, 0, [("autograd", 7)]), (5, 0, [("step", 1), ("back", 5)])])
    assert ranges_around(state, EVERY_THREAD) == Ranges("step/back/autograd", "step")


def test_ranges_of_other_threads_are_left_out():
    state = w.nvtx_state(pushed=[(5, 0, [("here", 1)]), (6, 0, [("there", 1)])])
    assert ranges_around(state, 5).path == "here"
    assert ranges_around(state, 7).path is None


def test_the_only_thread_counts_when_its_id_is_of_another_kind():
    state = w.nvtx_state(pushed=[(5, 0, [("step", 1)])])
    assert ranges_around(state, 140_000_000_000).path == "step"
    assert ranges_around(state, None).path == "step"


def test_ranges_without_a_name_are_left_out():
    state = w.nvtx_state(pushed=[(5, 0, [("", 1), ("named", 2)])])
    assert ranges_around(state, 5) == Ranges("named", "named")


def test_names_of_any_length_and_script_are_kept():
    name = "训练/" + "x" * 10_000
    assert ranges_around(w.nvtx_state(pushed=[(5, 0, [(name, 1)])]), 5).phase == name


def test_a_damaged_state_gives_no_ranges():
    assert ranges_around(b"\xff\xff\xff", 5) == Ranges()


@settings(max_examples=100)
@given(st.binary(max_size=100))
def test_random_bytes_give_ranges_or_none(data):
    assert isinstance(ranges_around(data, 1), Ranges)
