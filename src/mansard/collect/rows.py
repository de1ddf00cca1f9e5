"""A recording as rows of a capture table. Pure."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from mansard.collect.launches import Launch, Trace, busy_ns
from mansard.collect.marks import names_at
from mansard.collect.ranks import Rank
from mansard.collect.recording import StepRecording
from mansard.model.columns import COUNTER_PREFIX
from mansard.units import unit_factor

#: Dividing by it rounds once; multiplying by 1e-9 would round twice.
NS_PER_S = unit_factor("cycle/nsecond")[0]
#: Copies whose bytes cross the link to the host or to another GPU.
_LINK_COPIES = ("memcpy HtoD", "memcpy DtoH", "memcpy PtoP")
_WHOLE_STEP, _OUTSIDE = "(step)", "(outside)"

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowContext:
    """What all rows of a file share.

    Attributes:
        rank: the process.
        work_columns: columns of work that were counted; 0 for copies, which compute nothing.
    """

    rank: Rank
    work_columns: Sequence[str] = ()


def rows(steps: Sequence[StepRecording], context: RowContext) -> Iterator[Row]:
    """One row a launch, or one a phase where only phases were counted."""
    if not steps:
        return
    origin = min(launch.start_ns for step in steps for launch in step.trace.launches)
    number = 0
    for index, step in enumerate(steps):
        made = _segment_rows(step, origin) if step.segments else _launch_rows(step, origin, context)
        for row in made:
            yield {
                "row": number,
                "host": context.rank.host,
                "rank": context.rank.rank,
                "process": context.rank.process,
                "id": str(number),
                "step": index,
                **row,
            }
            number += 1


def _launch_rows(step: StepRecording, origin_ns: int, context: RowContext) -> Iterator[Row]:
    trace = step.trace
    ranges = names_at(trace.ranges, [launch.launch_ns for launch in trace.launches])
    counted = iter(step.kernels.rows) if step.kernels else None
    counters = step.kernels.counters if step.kernels else ()
    operators = iter(step.operators) if step.operators else None
    for place, launch in enumerate(trace.launches):
        row = _launch_row(launch, origin_ns)
        row |= {"phase": (ranges[place] or (None,))[0], "range": "/".join(ranges[place]) or None}
        if launch.kind == "kernel" and operators is not None:
            row["op"], row["module"] = next(operators)
        if launch.kind != "kernel":
            row |= dict.fromkeys(context.work_columns, 0.0)
            if launch.name in _LINK_COPIES:
                row["bytes_link"] = launch.bytes_moved
        elif counted is not None:
            row |= _counters(counters, next(counted))
        yield row


def _launch_row(launch: Launch, origin_ns: int) -> Row:
    grid, block = launch.grid or (None,) * 3, launch.block or (None,) * 3
    return {
        "device": launch.device,
        "stream": launch.stream,
        "kind": launch.kind,
        "name": launch.name,
        **dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True)),
        **dict(zip(("block_x", "block_y", "block_z"), block, strict=True)),
        "start_s": (launch.start_ns - origin_ns) / NS_PER_S,
        "duration_s": (launch.end_ns - launch.start_ns) / NS_PER_S,
    }


def _segment_rows(step: StepRecording, origin_ns: int) -> Iterator[Row]:
    """One row for each stretch between two splits that ran something, on each GPU."""
    trace = step.trace
    edges = [trace.start_ns, *trace.splits, trace.end_ns]
    middles: list[int | None] = [(a + b) // 2 for a, b in pairwise(edges)]
    names = names_at(trace.ranges, middles)
    for device, counted in (step.segments or {}).items():
        inside = by_segment(trace, device)
        for place, values in enumerate(counted.rows):
            launches = inside.get(place, [])
            if not launches:
                continue
            kernels = [launch for launch in launches if launch.kind == "kernel"]
            in_graphs = bool(kernels) and all(launch.graph for launch in kernels)
            fallback = _OUTSIDE if trace.splits else _WHOLE_STEP
            yield {
                "device": device,
                "kind": "graph" if in_graphs else "range",
                "name": (names[place] or (fallback,))[0],
                "phase": (names[place] or (None,))[0],
                "range": "/".join(names[place]) or None,
                "start_s": (min(each.start_ns for each in launches) - origin_ns) / NS_PER_S,
                "duration_s": busy_ns(launches) / NS_PER_S,
                **_counters(counted.counters, values),
            }


def by_segment(trace: Trace, device: int) -> dict[int, list[Launch]]:
    """What ran on a GPU, by the number of splits of the trace before it."""
    found: dict[int, list[Launch]] = {}
    for launch in trace.launches:
        if launch.device == device:
            when = launch.start_ns if launch.launch_ns is None else launch.launch_ns
            place = sum(split <= when for split in trace.splits)
            found.setdefault(place, []).append(launch)
    return found


def _counters(counters: Sequence[str], values: Sequence[float]) -> Row:
    return {
        f"{COUNTER_PREFIX}{counter}": value if math.isfinite(value) else None
        for counter, value in zip(counters, values, strict=True)
    }
