"""Watches a program for phases: named ranges of its own, or what PyTorch does."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from enum import StrEnum

from mansard.collect import marks
from mansard.collect.launches import Trace
from mansard.collect.marks import MarkRecorder, Range
from mansard.collect.torch_phases import Event, TorchEvent, find_phases


class PhaseRule(StrEnum):
    """Where phases come from.

    ``auto``: the program's own ranges where it has some, else PyTorch's. ``own``: ``phase()`` and
    NVTX alone. ``torch``: forward, backward and optimizer alone. ``none``: no phases.
    """

    AUTO = "auto"
    OWN = "own"
    TORCH = "torch"
    NONE = "none"


class Watch:
    """Notes ranges and events of the iteration under way.

    Args:
        clock: gives ns on the clock of the trace.
        rule: where phases come from.

    Attributes:
        on_split: called whenever the program goes from one phase into another.
    """

    def __init__(self, clock: Callable[[], int], rule: PhaseRule = PhaseRule.AUTO) -> None:
        self._clock, self._rule = clock, rule
        self.on_split: Callable[[], None] | None = None
        self._events: list[TorchEvent] = []
        self._splits: list[int] = []
        self._recorder = MarkRecorder(clock, changed=self._split)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear of every ``mansard.phase`` in the block."""
        with marks.listening(self._recorder):
            yield

    def begin(self) -> None:
        """Forget what was noted before."""
        self._events.clear()
        self._splits.clear()
        self._recorder.take()

    def note(self, event: Event) -> None:
        """Note what PyTorch does."""
        if self._rule in (PhaseRule.OWN, PhaseRule.NONE):
            return
        self._events.append(TorchEvent(self._clock(), event))
        self._split()

    def name_phases(self, trace: Trace) -> Trace:
        """Put the phases of the iteration into its trace.

        The trace may hold ranges already: those that the program announced through NVTX.
        """
        own = tuple(
            sorted(
                (*trace.ranges, *self._recorder.take()),
                key=lambda each: (each.start_ns, -each.end_ns),
            )
        )
        return dataclasses.replace(
            trace, ranges=self._choose(own, trace), splits=tuple(self._splits)
        )

    def _choose(self, own: tuple[Range, ...], trace: Trace) -> tuple[Range, ...]:
        if self._rule is PhaseRule.NONE:
            return ()
        if self._rule is PhaseRule.OWN or (self._rule is PhaseRule.AUTO and own):
            return own
        if not self._events:
            return ()
        return find_phases(self._events, trace.start_ns, trace.end_ns)

    def _split(self) -> None:
        self._splits.append(self._clock())
        if self.on_split is not None:
            self.on_split()
