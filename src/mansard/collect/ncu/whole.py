"""Times of whole ranges and graphs, from a trace of what ran in them.

ncu times a range from its first call to its last, with its own work and the gaps of the host in
between: hundreds of microseconds. Kernels beside whole graphs it times in the same way.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from mansard.collect.launches import Launch, busy_ns
from mansard.collect.ncu.choose import chosen_launches
from mansard.collect.ncu.options import NcuOptions
from mansard.collect.ncu.trace.trace import ProgramTrace, TracedLaunch
from mansard.engine import identifier
from mansard.model.capture import Capture
from mansard.units import unit_factor

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NS_PER_S = unit_factor("cycle/nsecond")[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """What one row of a report stands for, as a trace has it.

    Attributes:
        process: process id in the traced run.
        kind: ``range``, ``graph``, or ``kernel`` for one outside of graphs.
        symbol: name of a kernel as the compiler made it; empty for the others.
        launches: what ran in it, copies too.
    """

    process: int
    kind: str
    symbol: str
    launches: tuple[TracedLaunch, ...]

    @property
    def start_ns(self) -> int:
        """When the first of it began."""
        return min(each.start_ns for each in self.launches)

    @property
    def busy_ns(self) -> int:
        """Time in which at least one of it ran: gaps are not in it."""
        return busy_ns(map(_plain, self.launches))


def stretches_of(trace: ProgramTrace, options: NcuOptions) -> list[Stretch]:
    """The ranges, or the graphs and the kernels outside of them, that ncu will count."""
    chosen = chosen_launches(trace.launches, options.selection)
    found: list[Stretch] = []
    for process, mine in groupby(chosen, key=lambda each: each.process):
        launches = list(mine)
        if not options.conditions.replay.of_ranges:
            parts = _graphs(process, launches)
        elif options.selection.nvtx_include:
            parts = _ranges(process, launches, _unbroken(trace.launches))
        else:
            in_regions = [each for each in launches if each.in_region]
            parts = _ranges(process, in_regions, lambda each: each.region)
        first = options.selection.launch_skip or 0
        count = options.selection.launch_count
        found += parts[first:] if count is None else parts[first : first + count]
    return found


def with_times(
    connection: "DuckDBPyConnection",
    capture: Capture,
    symbols: Sequence[str],
    stretches: Sequence[Stretch],
) -> int:
    """Give the rows of a report the times of the same stretches of a traced run.

    A process gets them where its rows are of the same kinds, in the same order, as its stretches,
    and its kernels have the same names.

    Args:
        connection: where the capture is.
        capture: the counted rows; gets columns for start and duration.
        symbols: name of each row as the compiler made it, in the order of rows.
        stretches: of the traced run.

    Returns:
        How many rows have no counterpart.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    table = identifier(capture.table)
    found = connection.execute(f"SELECT process, row, kind FROM {table} ORDER BY process, row")
    rows = found.fetchall()
    named = dict(enumerate(symbols))
    matched: list[tuple[int, Stretch]] = []
    counted = [list(mine) for _, mine in groupby(rows, key=lambda each: each[0])]
    traced = [list(mine) for _, mine in groupby(stretches, key=lambda each: each.process)]
    if len(counted) == len(traced):
        for one, other in zip(counted, traced, strict=True):
            kinds = [(kind, named.get(row, "") if kind == "kernel" else "") for _, row, kind in one]
            if kinds == [(each.kind, each.symbol) for each in other]:
                matched += zip((row for _, row, _ in one), other, strict=True)
    origin_ns = min((each.start_ns for each in stretches), default=0)
    arrays = {
        "row": np.array([row for row, _ in matched], np.int64),
        "start_s": np.array([(each.start_ns - origin_ns) / _NS_PER_S for _, each in matched]),
        "duration_s": np.array([each.busy_ns / _NS_PER_S for _, each in matched]),
    }
    for name in ("start_s", "duration_s"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} DOUBLE")
    connection.register("stretch arrays", arrays)
    try:
        connection.execute(
            f"UPDATE {table} SET start_s = s.start_s, duration_s = s.duration_s "
            f'FROM "stretch arrays" s WHERE s.row = {table}.row'
        )
    finally:
        connection.unregister("stretch arrays")
    return len(rows) - len(matched)


def _ranges(
    process: int, launches: Iterable[TracedLaunch], number_of: Callable[[TracedLaunch], int]
) -> list[Stretch]:
    parts = (tuple(mine) for _, mine in groupby(launches, key=number_of))
    return [Stretch(process, "range", "", part) for part in parts]


def _graphs(process: int, launches: Sequence[TracedLaunch]) -> list[Stretch]:
    """One for each call: of a graph with all its nodes, or of a kernel."""
    found: list[Stretch] = []
    for _, mine in groupby(launches, key=lambda each: each.call):
        nodes = tuple(mine)
        if any(each.in_graph for each in nodes):
            found.append(Stretch(process, "graph", "", nodes))
        else:
            kernels = (each for each in nodes if each.kind == "kernel")
            found += [Stretch(process, "kernel", each.symbol, (each,)) for each in kernels]
    return found


def _unbroken(launches: Sequence[TracedLaunch]) -> Callable[[TracedLaunch], int]:
    """Numbers launches that follow each other alike, whatever was chosen of them."""
    place = {id(each): at for at, each in enumerate(launches)}
    last, number = -1, 0

    def number_of(launch: TracedLaunch) -> int:
        nonlocal last, number
        at = place[id(launch)]
        number += at != last + 1
        last = at
        return number

    return number_of


def _plain(launch: TracedLaunch) -> Launch:
    return Launch(
        kind=launch.kind,
        name=launch.name,
        device=launch.device,
        stream=launch.stream,
        start_ns=launch.start_ns,
        end_ns=launch.end_ns,
    )
