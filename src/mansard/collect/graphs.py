"""What the counters cannot see inside CUDA graphs. Pure.

Instructions by kind are counted by changed machine code. A graph keeps the code that it was made
with, so they read 0 there: on an H200 a step with 30 GFLOP on the CUDA cores had none as a graph,
while tensor operations and bytes, which the hardware counts, were the same.
"""

import dataclasses
import math
from collections.abc import Collection, Sequence

from mansard.collect.plan import Counted
from mansard.collect.recording import StepRecording
from mansard.collect.rows import by_segment
from mansard.counters.plan import counters_for
from mansard.counters.table import CounterTable
from mansard.model.notice import Notice
from mansard.model.paths import PATHS

_COLUMNS = tuple(path.column for path in PATHS if path.column.startswith("flop_vector"))


def without_unseen(
    steps: Sequence[StepRecording], table: CounterTable
) -> tuple[list[StepRecording], list[Notice]]:
    """Make the counters that graphs hide unknown in each stretch that ran a graph.

    Args:
        steps: the recorded steps.
        table: says which counters make the work of the CUDA cores.
    """
    blind = frozenset(counters_for(table, _COLUMNS))
    found = [_without(step, blind) for step in steps]
    if found == list(steps):
        return found, []
    return found, [
        Notice(
            "graph-vector-unknown",
            "work of the CUDA cores is unknown where CUDA graphs ran: its counters do not see the "
            "kernels of a graph. Tensor work and bytes are counted. For all of it, run without "
            "graphs",
        )
    ]


def _without(step: StepRecording, blind: Collection[str]) -> StepRecording:
    if not step.segments:
        return step
    segments = {}
    for device, counted in step.segments.items():
        inside = by_segment(step.trace, device)
        segments[device] = Counted(
            counted.counters,
            tuple(
                tuple(
                    math.nan if counter in blind else value
                    for counter, value in zip(counted.counters, row, strict=True)
                )
                if any(launch.graph for launch in inside.get(place, ()))
                else row
                for place, row in enumerate(counted.rows)
            ),
        )
    return dataclasses.replace(step, segments=segments)
