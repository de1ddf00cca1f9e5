"""The course of a collection: iteration i of the program is pass i of the counters.

``collect`` is a generator. It is resumed when an iteration begins and again when it ends; between
the two the program does its own work. So warm-up, trace, survey and passes read one after the
other, and a mismatch is a loop. It knows no GPU: ``Instruments`` does.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeVar

from mansard.collect import plan
from mansard.collect.instruments import CountedRanges, Counting, Instruments, Level
from mansard.collect.launches import Identity, Trace, calls, check_complete, difference
from mansard.collect.plan import Counted
from mansard.collect.recording import (
    Namer,
    ProcedureOptions,
    Recording,
    StepRecording,
)
from mansard.collect.watch import Watch
from mansard.model.notice import Notice

#: Suspended at the begin and at the end of iterations.
Course = Generator[None, None, "Recording"]
_ValueT = TypeVar("_ValueT")
_Steps = Generator[None, None, _ValueT]

#: How often a step is tried again, trace included, when its iterations differ.
RETRIES = 2


class _IterationsDiffer(Exception):  # noqa: N818  (it is caught here, and no error)
    """The iteration of a pass is not the traced one."""


@dataclasses.dataclass(slots=True)
class Collection:
    """One collection under way.

    Attributes:
        instruments: the GPUs.
        options: what is asked for.
        watch: knows the phases of the iteration that has just ended.
        namer: knows operators and modules; None where there is no framework to ask.
        recording: the result so far.
    """

    instruments: Instruments
    options: ProcedureOptions
    watch: Watch
    namer: Namer | None = None
    recording: Recording = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.recording = Recording(level=self.options.level)

    def run(self) -> Course:
        """Warm up, then record step by step."""
        for _ in range(self.options.warmup):
            yield from self._warm_up()
        if self.options.level is not Level.TRACE:
            # The first start of counters is slow, and may be refused: better now than in a pass.
            self.instruments.rehearse()
        failures = 0
        while len(self.recording.steps) < self.options.steps:
            trace = yield from self._timed("trace", self._trace())
            check_complete(trace)
            self.recording.pending = trace
            self._lower_level_for_graphs(trace)
            try:
                step = yield from self._record(trace)
            except _IterationsDiffer as found:
                failures += 1
                self._tell_difference(str(found), give_up=failures > RETRIES)
                failures %= RETRIES + 1
                continue
            self.recording.steps.append(step)
            self.recording.pending = None
        yield from self._name_operators()
        return self.recording

    def _warm_up(self) -> _Steps[None]:
        """One iteration that is only timed: to wait for the GPU could break a graph's capture."""
        begin_ns = 0

        def start() -> None:
            nonlocal begin_ns
            begin_ns = self.instruments.now_ns()

        def stop() -> None:
            self.recording.host_ns.append(self.instruments.now_ns() - begin_ns)

        yield from self._iteration(start, stop)

    def _record(self, trace: Trace) -> _Steps[StepRecording]:
        level = self.recording.level
        if level is Level.TRACE:
            return StepRecording(trace=trace)
        counters = self.instruments.usable(trace.devices)
        if level is Level.PHASES:
            segments = yield from self._timed("phases", self._count_segments(counters, trace))
            return StepRecording(trace=trace, segments=segments)
        self.recording.passes = self.instruments.passes(counters)
        if not self.recording.survey and self.recording.passes >= plan.SURVEY_FROM_PASSES:
            yield from self._timed("survey", self._survey(counters, trace))
        rest = [counter for counter in counters if counter not in self.recording.zeros]
        kernels = yield from self._timed("counters", self._count_kernels(rest, trace))
        return StepRecording(trace=trace, kernels=plan.with_zeros(kernels, self.recording.zeros))

    def _name_operators(self) -> _Steps[None]:
        """Operators of the recorded steps, from a last iteration of its own: noting takes time."""
        namer = self.namer
        if namer is None or self.recording.level is Level.PHASES:
            return

        def start() -> None:
            namer.start()
            self.instruments.start_trace()

        try:
            named = yield from self._timed(
                "operators", self._iteration(start, self.instruments.stop_trace)
            )
        finally:
            namer.stop()
        operators = namer.name(named.kernels)
        why = namer.obstacle
        if why is None and not any(name for name, _ in operators):
            why = "no kernel was launched while an operator ran"
        if why is None:
            for place, step in enumerate(self.recording.steps):
                differs = difference(calls(step.trace.kernels), calls(named.kernels))
                if differs is None:
                    self.recording.steps[place] = dataclasses.replace(step, operators=operators)
                why = differs or why
        if why is not None:
            self.recording.notices.append(
                Notice("operators-unknown", f"PyTorch's operators are not named: {why}")
            )

    def _trace(self) -> _Steps[Trace]:
        def start() -> None:
            self.watch.begin()
            self.instruments.start_trace()

        for _ in range(self.options.settle):
            yield from self._iteration(self.instruments.start_trace, _nothing)
        trace = yield from self._iteration(start, self.instruments.stop_trace)
        return self.watch.name_phases(trace)

    def _survey(self, counters: Sequence[str], trace: Trace) -> _Steps[None]:
        """Count the whole step as one range: cheap, and it tells what is worth the dear way."""
        whole = dict.fromkeys(trace.devices, 1)
        counting = self.instruments.count_ranges(counters, whole)
        ranges = yield from self._passes(counting, trace, named=True)
        self.recording.survey = {
            device: {
                counter: found.counted.column(counter)[0] if found.counted.rows else None
                for counter in counters
            }
            for device, found in ranges.items()
        }
        zeros = [
            set(plan.never_counted(counters, totals)) for totals in self.recording.survey.values()
        ]
        common = set.intersection(*zeros) if zeros else set()
        self.recording.zeros = tuple(counter for counter in counters if counter in common)

    def _count_kernels(self, counters: Sequence[str], trace: Trace) -> _Steps[Counted]:
        expected = {device: len(trace.kernels_on(device)) for device in trace.devices}
        most = max(expected.values())
        groups = plan.groups_that_fit(counters, lambda group: self.instruments.fits(group, most))
        self.recording.passes = sum(self.instruments.passes(group) for group in groups)
        parts = []
        for group in groups:
            counting = self.instruments.count_kernels(group, expected)
            ranges = yield from self._passes(counting, trace)
            parts.append(_in_trace_order(ranges, trace))
        return plan.merged(parts)

    def _count_segments(
        self, counters: Sequence[str], trace: Trace
    ) -> _Steps[Mapping[int, Counted]]:
        expected = len(trace.splits) + 1
        most = dict.fromkeys(trace.devices, expected)
        counting = self.instruments.count_ranges(counters, most)
        self.recording.passes = self.instruments.passes(counters)
        self.watch.on_split = counting.enter
        try:
            ranges = yield from self._passes(counting, trace, named=True)
        finally:
            self.watch.on_split = None
        return {device: _by_segment(found, expected) for device, found in ranges.items()}

    def _passes(
        self, counting: Counting, trace: Trace, *, named: bool = False
    ) -> _Steps[Mapping[int, CountedRanges]]:
        """Run one configuration to its last pass; each pass is one iteration, and is checked."""

        def start() -> None:
            self.watch.begin()
            counting.start()
            if named:
                counting.enter()

        def stop() -> bool:
            if named:
                counting.leave()
            return counting.stop()

        try:
            last = False
            while not last:
                last = yield from self._iteration(start, stop)
                self._check_same(trace, counting.calls())
            ranges = counting.read()
        finally:
            counting.close()
        if any(found.dropped for found in ranges.values()):
            raise _IterationsDiffer("more kernels ran than in the traced iteration")
        return ranges

    def _check_same(self, trace: Trace, found: Mapping[int, tuple[Identity, ...]]) -> None:
        if not found:
            self._tell(
                Notice(
                    "names-unchecked",
                    "another tool in this process (often PyTorch's profiler) holds CUPTI's "
                    "callbacks: passes were put together by the number of kernels alone",
                )
            )
        for device, made in found.items():
            told = difference(calls(trace.kernels_on(device)), made)
            if told is not None:
                raise _IterationsDiffer(told)

    def _iteration(
        self, start: Callable[[], object], stop: Callable[[], _ValueT]
    ) -> _Steps[_ValueT]:
        yield  # the program reaches the begin of an iteration
        start()
        yield  # the iteration runs
        self.recording.iterations += 1
        return stop()

    def _timed(self, name: str, steps: _Steps[_ValueT]) -> _Steps[_ValueT]:
        begin = time.perf_counter()
        try:
            return (yield from steps)
        finally:
            spent = time.perf_counter() - begin
            self.recording.seconds[name] = self.recording.seconds.get(name, 0.0) + spent

    def _lower_level_for_graphs(self, trace: Trace) -> None:
        if self.recording.level is not Level.COUNTERS or not trace.has_graphs:
            return
        self.recording.level = Level.PHASES
        in_graphs = sum(1 for launch in trace.kernels if launch.graph)
        self._tell(
            Notice(
                "cuda-graph",
                f"{in_graphs} of {len(trace.kernels)} kernels run inside CUDA graphs, whose "
                "kernels the counters cannot tell apart: each phase is counted as a whole. To see "
                "kernels, switch graphs off (torch.compile without mode='reduce-overhead', "
                "XLA_FLAGS=--xla_gpu_enable_command_buffer=)",
            )
        )

    def _tell_difference(self, found: str, *, give_up: bool) -> None:
        if not give_up:
            self._tell(
                Notice(
                    "iterations-differ",
                    f"an iteration did not repeat the traced one and was taken again: {found}",
                )
            )
            return
        lower = {Level.COUNTERS: Level.PHASES, Level.PHASES: Level.TRACE}
        self.recording.level = lower[self.recording.level]
        self._tell(
            Notice(
                "level-lowered",
                "the iterations never repeated each other, so the level is "
                f"'{self.recording.level}' now: {found}. Causes are autotuning that goes on (try "
                "more --warmup), shapes that change, or an iteration that is longer than one "
                "optimizer step (--iterations-by)",
            )
        )

    def _tell(self, notice: Notice) -> None:
        if notice not in self.recording.notices:
            self.recording.notices.append(notice)


def _nothing() -> None:
    """At the end of an iteration that is not kept."""


def _by_segment(found: CountedRanges, expected: int) -> Counted:
    """Counters of the segments in order; one in which nothing ran may be missing: all unknown."""
    rows = dict(zip(found.names, found.counted.rows, strict=True))
    if any(int(name) >= expected for name in rows):
        raise _IterationsDiffer(
            f"it went through more phases than the {expected} of the traced one"
        )
    unknown = (math.nan,) * len(found.counted.counters)
    ordered = tuple(rows.get(str(place), unknown) for place in range(expected))
    return Counted(found.counted.counters, ordered)


def _in_trace_order(ranges: Mapping[int, CountedRanges], trace: Trace) -> Counted:
    """Counters of all GPUs as one table, in the order of the trace's kernels."""
    remaining = {device: iter(found.counted.rows) for device, found in ranges.items()}
    for device, found in ranges.items():
        expected = len(trace.kernels_on(device))
        if len(found.counted.rows) != expected:
            raise _IterationsDiffer(
                f"{len(found.counted.rows)} kernels were counted on GPU {device}, "
                f"{expected} in the traced iteration"
            )
    counters = next(iter(ranges.values())).counted.counters
    return Counted(counters, tuple(next(remaining[kernel.device]) for kernel in trace.kernels))
