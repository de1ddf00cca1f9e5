"""Named ranges, PyTorch's phases from its events, and iterations from optimizer steps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.collect.iterations import OptimizerCycle
from mansard.collect.launches import Trace
from mansard.collect.marks import MarkRecorder, Range, listening, names_at, phase
from mansard.collect.torch_phases import Event, TorchEvent, find_phases
from mansard.collect.watch import PhaseRule, Watch

B, BE = Event.BACKWARD_BEGIN, Event.BACKWARD_END
S, SE = Event.OPTIMIZER_BEGIN, Event.OPTIMIZER_END
EVAL, TRAIN = Event.EVAL, Event.TRAIN


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 10
        return self.now


def phases(*events, end=100):
    found = find_phases([TorchEvent(time, event) for time, event in events], 0, end)
    return [(each.name, each.start_ns, each.end_ns) for each in found]


def test_a_normal_loop_has_forward_backward_and_optimizer():
    assert phases((20, B), (50, BE), (60, S), (90, SE)) == [
        ("forward", 0, 20),
        ("backward", 20, 50),
        ("optimizer", 60, 90),
    ]


def test_gradient_accumulation_has_a_forward_before_each_backward():
    assert phases((10, B), (20, BE), (30, B), (40, BE), (50, S), (60, SE)) == [
        ("forward", 0, 10),
        ("backward", 10, 20),
        ("forward", 20, 30),
        ("backward", 30, 40),
        ("optimizer", 50, 60),
    ]


def test_two_optimizers_in_turn_have_a_forward_each():
    assert phases((10, B), (20, BE), (21, S), (30, SE), (50, B), (60, BE), (61, S), (70, SE)) == [
        ("forward", 0, 10),
        ("backward", 10, 20),
        ("optimizer", 21, 30),
        ("forward", 30, 50),
        ("backward", 50, 60),
        ("optimizer", 61, 70),
    ]


def test_an_evaluation_between_two_steps_is_no_forward():
    assert phases((5, EVAL), (30, TRAIN), (50, B), (60, BE), (61, S), (70, SE)) == [
        ("evaluation", 5, 30),
        ("forward", 30, 50),
        ("backward", 50, 60),
        ("optimizer", 61, 70),
    ]


def test_an_evaluation_that_is_still_going_on_reaches_to_the_end():
    assert phases((10, B), (20, BE), (21, S), (30, SE), (40, EVAL))[-1] == ("evaluation", 40, 100)


def test_a_frozen_part_of_a_model_in_training_is_no_evaluation():
    assert phases((2, TRAIN), (3, EVAL), (10, B), (20, BE), (21, S), (30, SE)) == [
        ("forward", 0, 10),
        ("backward", 10, 20),
        ("optimizer", 21, 30),
    ]


def test_a_backward_inside_a_backward_is_one():
    assert phases((10, B), (12, B), (14, BE), (20, BE), (30, S), (40, SE))[1] == (
        "backward",
        10,
        20,
    )


def test_an_iteration_without_training_is_one_forward():
    assert phases((5, EVAL), end=70) == [("forward", 0, 70)]


def test_a_phase_cut_off_by_the_end_of_the_iteration_ends_there():
    assert phases((10, B), (20, BE), (30, S), end=50)[-1] == ("optimizer", 30, 50)


def test_an_end_without_begin_is_ignored():
    assert phases((1, SE), (10, B), (20, BE), (21, S), (30, SE))[0] == ("forward", 0, 10)


def test_launches_belong_to_the_ranges_around_them_outermost_first():
    ranges = [Range("inner", 20, 30), Range("outer", 10, 50), Range("next", 50, 60)]
    found = names_at(ranges, [5, 10, 25, 30, 50, None, 60])
    assert found == [(), ("outer",), ("outer", "inner"), ("outer",), ("next",), (), ()]


def test_overlapping_ranges_of_several_threads_are_all_named():
    ranges = [Range("a", 0, 20), Range("b", 10, 30)]
    assert names_at(ranges, [15, 25]) == [("a", "b"), ("b",)]


spans = st.tuples(st.integers(0, 30), st.integers(0, 10))


@given(st.lists(spans, max_size=8), st.lists(st.integers(0, 45), max_size=8))
@settings(max_examples=80, deadline=None)
def test_the_sweep_finds_what_a_search_of_every_range_finds(spans, times):
    ranges = [Range(str(i), start, start + length) for i, (start, length) in enumerate(spans)]
    found = names_at(ranges, times)
    for time, names in zip(times, found, strict=True):
        around = {each.name for each in ranges if each.start_ns <= time < each.end_ns}
        assert set(names) == around
        starts = [ranges[int(name)].start_ns for name in names]
        assert starts == sorted(starts)


def test_phases_are_heard_only_while_someone_listens():
    recorder = MarkRecorder(Clock())
    with phase("before"):
        pass
    with listening(recorder):
        with phase("outer"), phase("inner"):
            pass
        with phase("still open"):
            taken = recorder.take()
    assert [each.name for each in taken] == ["outer", "inner", "still open"]
    assert recorder.take() == ()


def test_a_phase_ends_when_its_block_fails():
    recorder = MarkRecorder(Clock())
    with pytest.raises(KeyError), listening(recorder), phase("failing"):
        raise KeyError
    (found,) = recorder.take()
    assert found.end_ns > found.start_ns


def test_only_the_outermost_change_of_phase_splits_an_iteration():
    watch = Watch(Clock())
    splits = []
    watch.on_split = lambda: splits.append(1)
    watch.begin()
    with watch.listening(), phase("outer"), phase("inner"):
        pass
    assert len(splits) == 2
    assert len(watch.name_phases(Trace(())).splits) == 2


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("auto", ["own"]), ("own", ["own"]), ("torch", ["forward", "backward"]), ("none", [])],
)
def test_the_rule_says_whose_phases_count(rule, expected):
    watch = Watch(Clock(), PhaseRule(rule))
    watch.begin()
    with watch.listening(), phase("own"):
        pass
    watch.note(B)
    watch.note(BE)
    trace = watch.name_phases(Trace((), (), 0, 1000))
    assert [each.name for each in trace.ranges] == expected


def test_without_own_phases_those_of_pytorch_are_found():
    watch = Watch(Clock())
    watch.note(B)
    watch.note(BE)
    names = [each.name for each in watch.name_phases(Trace((), (), 0, 1000)).ranges]
    assert names == ["forward", "backward"]


def test_nvtx_ranges_in_the_trace_are_own_ones():
    watch = Watch(Clock())
    watch.note(B)
    trace = watch.name_phases(Trace((), (Range("nvtx", 1, 2),), 0, 1000))
    assert [each.name for each in trace.ranges] == ["nvtx"]


def steps(cycle, names):
    return [cycle.step(ord(name)) for name in names]


def test_each_step_of_one_optimizer_ends_an_iteration_once_it_has_repeated():
    assert steps(OptimizerCycle(), "AAAA") == [False, True, True, True]


def test_two_optimizers_in_turn_make_one_iteration():
    assert steps(OptimizerCycle(), "DGDGDG") == [False, False, False, True, False, True]


def test_five_critic_steps_and_one_generator_step_make_one_iteration():
    found = steps(OptimizerCycle(), "DDDDDG" * 4)
    # The first D's look like a loop of their own; from the second cycle on the ends are right.
    assert found[6:] == [False] * 5 + [True] + ([False] * 5 + [True]) * 2


def test_a_long_run_stays_in_step_and_small():
    cycle = OptimizerCycle()
    found = steps(cycle, "ABC" * 500)
    assert found[-6:] == [False, False, True] * 2
    assert len(cycle._steps) < 2 * cycle.longest
    assert cycle.seen == 1500
