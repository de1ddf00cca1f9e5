"""Named ranges of a program: who is in which phase at which time.

Ranges have a start and an end and belong to the whole process, so work that another thread
launches meanwhile (autograd's backward) belongs to them too.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """A named stretch of time, in ns on the clock of the trace."""

    name: str
    start_ns: int
    end_ns: int


class MarkRecorder:
    """Collects ranges while an iteration runs.

    Args:
        clock: gives ns on the clock of the trace.
        changed: called when a range opens while no other is open, and when the last one closes.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        *,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self._clock, self._changed = clock, changed
        self._open: dict[int, tuple[str, int]] = {}
        self._closed: list[Range] = []
        self._next = 0

    def begin(self, name: str) -> int:
        """Open a range, and give the token that closes it."""
        if not self._open and self._changed is not None:
            self._changed()
        self._next += 1
        self._open[self._next] = (name, self._clock())
        return self._next

    def end(self, token: int) -> None:
        """Close a range; one that belongs to an earlier iteration is ignored."""
        opened = self._open.pop(token, None)
        if opened is None:
            return
        self._closed.append(Range(opened[0], opened[1], self._clock()))
        if not self._open and self._changed is not None:
            self._changed()

    def take(self) -> tuple[Range, ...]:
        """All ranges so far, those still open ended now; the recorder starts anew."""
        now = self._clock()
        ranges = [*self._closed, *(Range(name, start, now) for name, start in self._open.values())]
        self._open.clear()
        self._closed.clear()
        return tuple(sorted(ranges, key=lambda each: (each.start_ns, -each.end_ns)))


#: Recorders that ``phase`` tells; a session adds itself for as long as it needs them.
_listeners: list[MarkRecorder] = []


@contextlib.contextmanager
def listening(recorder: MarkRecorder) -> Iterator[None]:
    """Let a recorder hear of every ``phase`` in the block."""
    _listeners.append(recorder)
    try:
        yield
    finally:
        _listeners.remove(recorder)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Name a stretch of the program, on all threads.

    Nothing happens unless a profile is being taken.

    Example:
        >>> with phase("backward"):
        ...     pass
    """
    told = [(recorder, recorder.begin(name)) for recorder in _listeners]
    try:
        yield
    finally:
        for recorder, token in reversed(told):
            recorder.end(token)


def names_at(ranges: Sequence[Range], times_ns: Sequence[int | None]) -> list[tuple[str, ...]]:
    """Names of the ranges around each time, outermost first.

    Args:
        ranges: in any order; they may nest, overlap and repeat.
        times_ns: a time each, in any order; None (unknown) is in no range.
    """
    starts = sorted(range(len(ranges)), key=lambda i: (ranges[i].start_ns, -ranges[i].end_ns))
    order = sorted((time, place) for place, time in enumerate(times_ns) if time is not None)
    found: list[tuple[str, ...]] = [()] * len(times_ns)
    open_now: list[Range] = []
    upcoming = 0
    for time, place in order:
        while upcoming < len(starts) and ranges[starts[upcoming]].start_ns <= time:
            open_now.append(ranges[starts[upcoming]])
            upcoming += 1
        open_now = [each for each in open_now if each.end_ns > time]
        found[place] = tuple(each.name for each in open_now)
    return found
