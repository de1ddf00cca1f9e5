"""What a collection needs of a GPU, as a contract: CUPTI fulfils it, and so do tests."""

import dataclasses
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from mansard.collect.launches import Identity, Trace
from mansard.collect.plan import Counted


class Level(StrEnum):
    """How much is collected.

    ``counters``: counters of every launch. ``phases``: counters of each phase, in a fraction of
    the time, and the only way for CUDA graphs. ``trace``: times and names, no counters.
    """

    COUNTERS = "counters"
    PHASES = "phases"
    TRACE = "trace"


@dataclasses.dataclass(frozen=True, slots=True)
class CountedRanges:
    """What one configuration counted on one GPU.

    Attributes:
        names: of the ranges, in order: numbers.
        counted: their counters.
        dropped: ranges that found no room.
    """

    names: tuple[str, ...]
    counted: Counted
    dropped: int = 0


class Counting(Protocol):
    """Counters under way: start, run the work, stop, until stop says that it was the last pass."""

    def start(self) -> None:
        """Begin a pass."""

    def stop(self) -> bool:
        """End the pass, when the GPUs are done; True after the last one."""

    def calls(self) -> Mapping[int, tuple[Identity, ...]]:
        """Launches that the last pass made, by GPU; empty where they could not be seen."""

    def enter(self) -> None:
        """Wait for the GPUs, close the range that is open, if any, and open the next."""

    def leave(self) -> None:
        """Wait for the GPUs and close the range."""

    def read(self) -> Mapping[int, CountedRanges]:
        """The counters by GPU."""

    def close(self) -> None:
        """Give the counters back; may be called again."""


class Instruments(Protocol):
    """Traces and counters of this process."""

    def now_ns(self) -> int:
        """The clock of the trace."""

    def start_trace(self) -> None:
        """Record what runs; what was recorded before is forgotten."""

    def stop_trace(self) -> Trace:
        """Wait for the GPUs, end the record and give it."""

    def rehearse(self) -> None:
        """Start and stop the counters once, so that a refusal comes early."""

    def usable(self, devices: Sequence[int]) -> tuple[str, ...]:
        """Counters that were asked for and that these GPUs have."""

    def passes(self, counters: Sequence[str]) -> int:
        """How often the work must run to count them."""

    def fits(self, counters: Sequence[str], most_ranges: int) -> bool:
        """Whether there is memory for their images."""

    def count_kernels(self, counters: Sequence[str], kernels: Mapping[int, int]) -> Counting:
        """Count each kernel apart; ``kernels`` says how many each GPU will run."""

    def count_ranges(self, counters: Sequence[str], ranges: Mapping[int, int]) -> Counting:
        """Count what runs between ``enter`` and ``leave``; ``ranges`` is how many, by GPU."""

    def close(self) -> None:
        """Leave everything as it was; may be called again."""

    def detach(self) -> None:
        """Take the measuring library out of the process: nothing can be measured here again."""
