"""The course of a collection over a fake GPU: order, retries, levels, and what it never guesses."""

import dataclasses

import pytest

from mansard.collect import plan
from mansard.collect.instruments import Level
from mansard.collect.marks import Range
from mansard.collect.plan import Counted
from mansard.collect.procedure import Collection
from mansard.collect.recording import ProcedureOptions
from mansard.collect.torch_phases import Event
from mansard.collect.watch import PhaseRule, Watch
from mansard.errors import CollectError


def collect(gpu, *, iterations=200, during=None, namer=None, rule=PhaseRule.AUTO, **options):
    """Run a program of so many iterations; the recording, and the iterations it took."""
    watch = Watch(gpu.now_ns, rule)
    collection = Collection(gpu, ProcedureOptions(**options), watch, namer)
    course = collection.run()
    next(course)
    try:
        for number in range(iterations):
            gpu.iteration = number
            next(course)
            if during is not None:
                during(watch, number)
            next(course)
    except StopIteration:
        pass
    course.close()
    return collection.recording


def codes(recording):
    return [notice.code for notice in recording.notices]


def test_warmup_then_rehearsal_trace_and_one_iteration_a_pass(gpu, make_kernels):
    machine = gpu(make_kernels("gemm", "add"), passes_of=lambda counters: 2)
    recording = collect(machine, warmup=2)
    assert machine.log == ["rehearse", "trace", ("kernels", ("a.sum", "b.sum")), "start", "start"]
    assert recording.iterations == 2 + 1 + 2
    assert recording.passes == 2
    (step,) = recording.steps
    assert step.kernels == Counted(("a.sum", "b.sum"), ((4.0, 4.0), (3.0, 3.0)))


def test_a_trace_that_settles_drops_what_it_recorded_first(gpu, make_kernels):
    first, second = (make_kernels("gemm", "allreduce", duration=ns) for ns in (900, 500))
    machine = gpu(lambda number: first if number == 0 else second, passes_of=lambda counters: 1)
    recording = collect(machine, warmup=0, settle=1)
    assert machine.log[:3] == ["rehearse", "trace", "trace"]
    assert recording.iterations == 3
    assert recording.steps[0].trace.launches == second


def test_the_warm_up_is_only_timed(gpu, make_kernels):
    machine = gpu(make_kernels("gemm"))

    def work(_watch, number):
        machine.clock += 1000 * (number + 1)

    recording = collect(machine, warmup=3, during=work)
    assert recording.host_ns == [1001, 2001, 3001]  # reading the fake clock takes 1 ns


def test_every_recorded_step_has_a_trace_and_all_its_passes(gpu, make_kernels):
    machine = gpu(make_kernels("gemm"), passes_of=lambda counters: 1)
    recording = collect(machine, steps=3, warmup=0)
    assert len(recording.steps) == 3
    assert recording.iterations == 6


def test_a_survey_of_the_whole_step_spares_counters_that_are_zero(gpu, make_kernels):
    machine = gpu(
        make_kernels("gemm", "add"),
        counters=("time.sum", "fp64.sum", "bf16.sum"),
        values=lambda counter, launch: 0.0 if counter == "fp64.sum" else 7.0,
    )
    recording = collect(machine, warmup=0)
    assert recording.zeros == ("fp64.sum",)
    assert recording.survey == {0: {"time.sum": 14.0, "fp64.sum": 0.0, "bf16.sum": 14.0}}
    asked = [entry for entry in machine.log if isinstance(entry, tuple)]
    assert asked == [
        ("ranges", ("time.sum", "fp64.sum", "bf16.sum")),
        ("kernels", ("time.sum", "bf16.sum")),
    ]
    kernels = recording.steps[0].kernels
    assert kernels.column("fp64.sum") == [0.0, 0.0]
    assert kernels.column("bf16.sum") == [7.0, 7.0]


def test_a_survey_is_made_once_and_not_for_few_passes(gpu, make_kernels):
    many = gpu(make_kernels("k"), counters=("a.sum", "b.sum", "c.sum"))
    collect(many, warmup=0, steps=2)
    assert sum(entry[0] == "ranges" for entry in many.log if isinstance(entry, tuple)) == 1
    few = gpu(make_kernels("k"))
    assert collect(few, warmup=0).survey == {}


def test_an_iteration_that_differs_is_told_and_taken_again(gpu, make_kernels):
    usual, other = make_kernels("gemm", "add"), make_kernels("gemm", "tune", "add")
    machine = gpu(lambda number: other if number == 1 else usual)
    recording = collect(machine, warmup=0)
    assert codes(recording) == ["iterations-differ"]
    assert "launch 1: add <4x1x1, 128x1x1>" in recording.notices[0].message
    assert recording.level is Level.COUNTERS
    assert all(counting.closed for counting in machine.countings)
    assert recording.steps[0].kernels.rows == ((4.0, 4.0), (3.0, 3.0))


def test_a_trace_of_an_odd_iteration_is_replaced(gpu, make_kernels):
    usual, odd = make_kernels("gemm"), make_kernels("gemm", "checkpoint")
    machine = gpu(lambda number: odd if number == 0 else usual)
    recording = collect(machine, warmup=0)
    assert [kernel.name for kernel in recording.steps[0].trace.kernels] == ["gemm"]


def test_iterations_that_never_repeat_end_with_times_alone(gpu, make_kernels):
    machine = gpu(lambda number: make_kernels(*["k"] * (number + 1)))
    recording = collect(machine, warmup=0)
    assert recording.level is Level.TRACE
    assert codes(recording).count("level-lowered") == 2
    (step,) = recording.steps
    assert step.kernels is None
    assert step.segments is None
    assert all(counting.closed for counting in machine.countings)


def test_counts_are_compared_where_names_cannot_be_seen(gpu, make_kernels):
    machine = gpu(make_kernels("a", "b"))
    machine.blind = True
    recording = collect(machine, warmup=0)
    assert codes(recording) == ["names-unchecked"]
    assert len(recording.steps[0].kernels.rows) == 2

    growing = gpu(lambda number: make_kernels(*["k"] * (number + 1)))
    growing.blind = True
    assert collect(growing, warmup=0).level is not Level.COUNTERS


def test_dropped_ranges_are_no_result(gpu, make_kernels):
    machine = gpu(make_kernels("a"))
    count = machine.count_kernels

    def dropping(counters, kernels):
        counting = count(counters, kernels)
        read = counting.read
        counting.read = lambda: {
            device: dataclasses.replace(found, dropped=3) for device, found in read().items()
        }
        return counting

    machine.count_kernels = dropping
    recording = collect(machine, warmup=0)
    assert recording.level is not Level.COUNTERS
    assert "more kernels ran" in recording.notices[0].message


def test_cuda_graphs_lower_the_level_to_phases_and_say_why(gpu, make_kernels):
    machine = gpu(make_kernels("a", "b", graph=5))
    recording = collect(machine, warmup=0)
    assert recording.level is Level.PHASES
    assert codes(recording) == ["cuda-graph"]
    assert "2 of 2 kernels" in recording.notices[0].message
    assert recording.steps[0].segments[0].counters == ("a.sum", "b.sum")


def train(watch, _number):
    watch.note(Event.BACKWARD_BEGIN)
    watch.note(Event.BACKWARD_END)


def test_the_phases_level_counts_each_stretch_between_two_events(gpu, make_kernels):
    machine = gpu(make_kernels("a", "b"))
    recording = collect(machine, warmup=0, level=Level.PHASES, during=train)
    (step,) = recording.steps
    assert len(step.trace.splits) == 2
    assert step.segments == {
        0: Counted(("a.sum", "b.sum"), ((100.0, 100.0), (200.0, 200.0), (300.0, 300.0)))
    }
    assert [each.name for each in step.trace.ranges] == ["forward", "backward"]


def test_a_pass_that_goes_through_more_phases_is_not_put_together(gpu, make_kernels):
    def drifting(watch, number):
        for _ in range(number + 1):
            train(watch, number)

    machine = gpu(make_kernels("a"))
    recording = collect(machine, warmup=0, level=Level.PHASES, during=drifting)
    assert recording.level is Level.TRACE
    assert "more phases than" in recording.notices[0].message


def test_the_trace_level_asks_for_no_counters(gpu, make_kernels):
    machine = gpu(make_kernels("a"))
    recording = collect(machine, warmup=0, level=Level.TRACE, steps=2)
    assert machine.log == ["trace", "trace"]
    assert len(recording.steps) == 2


def test_counters_that_do_not_fit_together_are_taken_in_groups(gpu, make_kernels):
    counters = ("a.sum", "b.sum", "c.sum", "d.sum")
    machine = gpu(make_kernels("k"), counters=counters, passes_of=lambda group: 1)
    machine.fitting = 2
    recording = collect(machine, warmup=0)
    asked = [entry for entry in machine.log if isinstance(entry, tuple)]
    assert asked == [("kernels", counters[:2]), ("kernels", counters[2:])]
    assert recording.passes == 2
    assert recording.steps[0].kernels.counters == counters


def test_kernels_of_several_gpus_are_put_in_the_order_of_the_trace(gpu, make_kernel):
    launches = tuple(
        make_kernel(name, number=number, device=device)
        for number, (name, device) in enumerate((("a", 0), ("bbb", 1), ("cc", 0)))
    )
    recording = collect(gpu(launches), warmup=0)
    assert recording.steps[0].kernels.column("a.sum") == [1.0, 3.0, 2.0]


def test_a_step_without_kernels_is_an_error_with_a_hint(gpu):
    with pytest.raises(CollectError, match="launched no kernel"):
        collect(gpu(()), warmup=0)


def test_a_program_that_ends_early_leaves_its_trace(gpu, make_kernels):
    machine = gpu(make_kernels("a", "b"))
    recording = collect(machine, iterations=2, warmup=0)
    assert recording.steps == []
    assert recording.pending is not None
    assert len(recording.pending.kernels) == 2
    assert all(counting.closed for counting in machine.countings)


class Namer:
    def __init__(self, log, obstacle=None, names=True):
        self.log, self.obstacle, self.names = log, obstacle, names

    def start(self):
        self.log.append("namer")

    def stop(self):
        self.log.append("named")

    def name(self, launches):
        return tuple((f"op {launch.name}" if self.names else None, None) for launch in launches)


def test_operators_are_named_last_in_an_iteration_of_their_own(gpu, make_kernels):
    machine = gpu(make_kernels("a", "b"), passes_of=lambda counters: 1)
    recording = collect(machine, warmup=0, steps=2, namer=Namer(machine.log))
    assert machine.log[-3:] == ["namer", "trace", "named"]
    assert [step.operators for step in recording.steps] == [(("op a", None), ("op b", None))] * 2


def test_operators_of_another_iteration_are_not_put_on_these_launches(gpu, make_kernels):
    usual, odd = make_kernels("a"), make_kernels("x")
    machine = gpu(lambda number: odd if number == 2 else usual, passes_of=lambda counters: 1)
    recording = collect(machine, warmup=0, namer=Namer(machine.log))
    assert recording.steps[0].operators is None
    (notice,) = [each for each in recording.notices if each.code == "operators-unknown"]
    assert (
        "a <4x1x1, 128x1x1> in the traced iteration, x <4x1x1, 128x1x1> in this" in notice.message
    )


@pytest.mark.parametrize(
    ("namer", "why"),
    [
        ({"obstacle": "the program is compiled"}, "the program is compiled"),
        ({"names": False}, "no kernel was launched while an operator ran"),
    ],
)
def test_operators_that_cannot_be_named_are_unknown_with_the_reason(gpu, make_kernels, namer, why):
    machine = gpu(make_kernels("a"), passes_of=lambda counters: 1)
    recording = collect(machine, warmup=0, namer=Namer(machine.log, **namer))
    assert recording.steps[0].operators is None
    (notice,) = [each for each in recording.notices if each.code == "operators-unknown"]
    assert why in notice.message


def test_own_phases_of_the_program_are_in_the_trace(gpu, make_kernels):
    machine = gpu(make_kernels("a"))
    machine.ranges = (Range("mine", 0, 10_000_000),)
    recording = collect(machine, warmup=0, level=Level.TRACE, during=train)
    assert [each.name for each in recording.steps[0].trace.ranges] == ["mine"]


def test_counters_the_chip_lacks_are_left_out():
    base = frozenset({"dram__bytes", "gpu__time_duration"})
    wanted = ("dram__bytes.sum", "lts__t_bytes.sum", "gpu__time_duration.sum", "dram__bytes.sum")
    assert plan.available(wanted, base) == ("dram__bytes.sum", "gpu__time_duration.sum")


def test_only_an_exact_zero_spares_a_counter():
    totals = {"a": 0.0, "b": 1e-12, "c": None}
    assert plan.never_counted(("a", "b", "c", "d"), totals) == ("a",)


def test_a_value_that_is_not_a_number_is_unknown():
    counted = Counted(("a", "b"), ((1.0, float("nan")), (float("inf"), 2.0)))
    assert counted.column("a") == [1.0, None]
    assert counted.column("b") == [None, 2.0]


def test_groups_are_cut_until_each_fits_but_never_below_one():
    groups = plan.groups_that_fit(tuple("abcde"), lambda group: len(group) <= 2)
    assert [len(group) for group in groups] == [2, 1, 2]
    assert "".join(counter for group in groups for counter in group) == "abcde"
    assert plan.groups_that_fit(("a",), lambda group: False) == (("a",),)
    assert plan.groups_that_fit((), lambda group: True) == ()
