"""What is asked of a collection, and what it has recorded."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from mansard.collect.instruments import Level
from mansard.collect.launches import Launch, Trace
from mansard.collect.plan import Counted
from mansard.model.notice import Notice

#: Operator and module; None where unknown.
Operator = tuple[str | None, str | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureOptions:
    """Settings of a collection.

    Attributes:
        level: how much is collected.
        steps: how many iterations are recorded, each with all its passes.
        warmup: iterations before the first one, so that tuning and caches settle.
        settle: traced iterations that are dropped before the one that is kept. To begin a trace
            takes each rank of a job another time, which the first collective then waits for.
    """

    level: Level = Level.COUNTERS
    steps: int = 1
    warmup: int = 3
    settle: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepRecording:
    """One recorded iteration.

    Attributes:
        trace: what ran, with true times.
        kernels: counters of ``trace.kernels``, in their order; None when not collected.
        operators: operator and module of each of ``trace.kernels``; None when not collected.
        segments: counters between the splits of the trace, by GPU; None when not collected.
    """

    trace: Trace
    kernels: Counted | None = None
    operators: tuple[Operator, ...] | None = None
    segments: Mapping[int, Counted] | None = None


class Namer(Protocol):
    """Tells which operator and module of a framework launched a kernel.

    Attributes:
        obstacle: why it can tell nothing here; None when it can.
    """

    obstacle: str | None

    def start(self) -> None:
        """Begin to note operators."""

    def stop(self) -> None:
        """End it; may be called again."""

    def name(self, launches: Sequence[Launch]) -> tuple[Operator, ...]:
        """Operator and module of launches that were made between start and stop."""


@dataclasses.dataclass(slots=True)
class Recording:
    """All that was collected; it grows while the collection runs, so that nothing is lost.

    Attributes:
        level: level that was reached.
        steps: recorded iterations.
        pending: trace of a step whose counters are not complete.
        survey: totals of every counter over one whole step, by GPU; empty without a survey.
        zeros: counters that were not taken kernel by kernel since their total is 0.
        passes: passes of the last configuration kernel by kernel.
        iterations: iterations of the program that were used, warm-up included.
        host_ns: how long the program took for each iteration of the warm-up, in which nothing is
            recorded; where the GPU sets the pace it may take less than the GPU.
        notices: what the user must know.
        seconds: where the time went.
    """

    level: Level
    steps: list[StepRecording] = dataclasses.field(default_factory=list)
    pending: Trace | None = None
    survey: dict[int, dict[str, float | None]] = dataclasses.field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    passes: int = 0
    iterations: int = 0
    host_ns: list[int] = dataclasses.field(default_factory=list)
    notices: list[Notice] = dataclasses.field(default_factory=list)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
