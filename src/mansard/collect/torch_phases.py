"""Forward, backward, optimizer and evaluation, found from what PyTorch does in an iteration."""

import dataclasses
from collections.abc import Sequence
from enum import StrEnum

from mansard.collect.marks import Range

FORWARD, BACKWARD, OPTIMIZER, EVALUATION = "forward", "backward", "optimizer", "evaluation"


class Event(StrEnum):
    """What was seen happening."""

    BACKWARD_BEGIN = "backward begin"
    BACKWARD_END = "backward end"
    OPTIMIZER_BEGIN = "optimizer begin"
    OPTIMIZER_END = "optimizer end"
    EVAL = "model.eval()"
    TRAIN = "model.train()"


@dataclasses.dataclass(frozen=True, slots=True)
class TorchEvent:
    """One event and its time, in ns on the clock of the trace."""

    time_ns: int
    event: Event


def find_phases(events: Sequence[TorchEvent], start_ns: int, end_ns: int) -> tuple[Range, ...]:
    """The phases of one iteration.

    Backward and optimizer are as called. Forward is the time before each backward, since the
    end of the phase before it, the loss included. An evaluation reaches from ``model.eval()`` to
    ``model.train()`` if no gradient is computed in between (a frozen part of a model in training
    is no evaluation). Time between backward and optimizer (clipping, scaling) is in no phase.

    Args:
        events: in order of time.
        start_ns: begin of the iteration.
        end_ns: its end.
    """
    found: list[Range] = [
        Range(EVALUATION, begin, end) for begin, end in _evaluations(events, end_ns)
    ]
    backwards = _between(events, Event.BACKWARD_BEGIN, Event.BACKWARD_END, end_ns)
    optimizers = _between(events, Event.OPTIMIZER_BEGIN, Event.OPTIMIZER_END, end_ns)
    found += [Range(BACKWARD, *span) for span in backwards]
    found += [Range(OPTIMIZER, *span) for span in optimizers]
    if not backwards and not optimizers:
        # No training at all: the whole iteration is one forward.
        return (Range(FORWARD, start_ns, end_ns),)
    ends = sorted([start_ns, *(each.end_ns for each in found)])
    for begin, _ in backwards:
        since = max((end for end in ends if end <= begin), default=start_ns)
        if since < begin:
            found.append(Range(FORWARD, since, begin))
    return tuple(sorted(found, key=lambda each: (each.start_ns, -each.end_ns)))


def _between(
    events: Sequence[TorchEvent], begin: Event, end: Event, last_ns: int
) -> list[tuple[int, int]]:
    """Outermost spans from a begin to its end; a begin inside another only deepens it."""
    spans: list[tuple[int, int]] = []
    depth = since = 0
    for each in events:
        if each.event is begin:
            since = since if depth else each.time_ns
            depth += 1
        elif each.event is end and depth:
            depth -= 1
            if not depth:
                spans.append((since, each.time_ns))
    if depth:
        spans.append((since, last_ns))
    return spans


def _evaluations(events: Sequence[TorchEvent], last_ns: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    since: int | None = None
    for each in events:
        if each.event is Event.EVAL:
            since = each.time_ns if since is None else since
        elif each.event is Event.TRAIN:
            if since is not None:
                spans.append((since, each.time_ns))
            since = None
        else:
            since = None
    if since is not None:
        spans.append((since, last_ns))
    return spans
