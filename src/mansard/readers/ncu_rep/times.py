"""Times and clocks that are not those of the work: made unknown where that is sure, and said.

Ranges and whole graphs are timed from their first call to their last, with the gaps of the host and
ncu's own work in between; so are kernels outside of graphs where graphs are profiled as a whole.
"""

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mansard.engine import identifier
from mansard.model.columns import COUNTER_PREFIX
from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice
from mansard.readers.ncu_rep.vocabulary import vocabulary
from mansard.units import format_si

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Codes of the notices on times of ranges, for who has better times.
RANGE_TIME_CODES = ("range-time-unknown", "range-time")
#: A mean clock may seem so much above the highest one, since time is counted in steps.
_CLOCK_SLACK = 1.02
_IS_KERNEL = "kind = 'kernel'"


@dataclasses.dataclass(frozen=True, slots=True)
class Timed:
    """A capture, and what is known of how it was timed.

    Attributes:
        table: its name.
        counters: its vendor names.
        devices: its GPUs.
        name: of the file, for messages.
        of_graphs: whether graphs are known to have been profiled as a whole. Else the processes
            that have a row of one tell it.
    """

    table: str
    counters: tuple[str, ...]
    devices: Sequence[DeviceFacts]
    name: str
    of_graphs: bool = False


def clear_times(connection: "DuckDBPyConnection", timed: Timed) -> tuple[Notice, ...]:
    """Make times unknown that are mostly not those of the work; look for clocks that cannot be.

    Returns:
        What must be said of it.
    """
    return (*_ranges(connection, timed), *_clocks(connection, timed))


def _ranges(connection: "DuckDBPyConnection", timed: Timed) -> list[Notice]:
    words = vocabulary().times
    times = _named(timed, words.times)
    if not times:
        return []
    rows = "true" if timed.of_graphs else _whole(timed.table)
    longest = f"greatest({', '.join(times)})"
    is_short = f"{longest} < {words.least_s!r}"
    short, long, kernels = _counts(
        connection,
        timed,
        rows,
        is_short,
        f"{longest} >= {words.least_s!r}",
        f"{_IS_KERNEL} AND {longest} IS NOT NULL",
    )
    least, added = (format_si(value, "s") for value in (words.least_s, words.added_s))
    beside = ", and kernels beside graphs" if kernels else ""
    how = (
        f"ranges and graphs as a whole{beside}, which ncu times from the first call to the last, "
        f"with gaps of the host and work of its own in between (up to {added} where it was "
        "measured)"
    )
    said: list[Notice] = []
    if short:
        _forget(connection, timed, [*times, *_named(timed, words.cycles)], f"{rows} AND {is_short}")
        said.append(
            Notice(
                "range-time-unknown",
                f"{timed.name}: {_rows(short)} below {least} for {how}. Their times and SM clocks "
                "are read as unknown; mansard profile --with ncu takes times from a traced run",
            )
        )
    if long:
        said.append(
            Notice(
                "range-time",
                f"{timed.name}: {_rows(long)} for {how}. Rates and efficiency look lower than they "
                "are",
            )
        )
    return said


def _whole(table: str) -> str:
    """Condition that a row is a range, a graph, or a kernel beside graphs."""
    of_graphs = f"SELECT process FROM {identifier(table)} WHERE kind = 'graph'"
    return f"(kind IN ('range', 'graph') OR {_IS_KERNEL} AND process IN ({of_graphs}))"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _clocks(connection: "DuckDBPyConnection", timed: Timed) -> list[Notice]:
    words = vocabulary().times
    rates = _named(timed, words.rates)
    highest = {
        index: device.sm_clock_max_hz
        for index, device in enumerate(timed.devices)
        if device.sm_clock_max_hz
    }
    if not rates or not highest:
        return []
    whens = " ".join(f"WHEN {index} THEN {hertz!r}" for index, hertz in highest.items())
    # Where the launch does not say its GPU, that of the fastest clock can be.
    limit = f"(CASE device {whens} ELSE {max(highest.values())!r} END)::DOUBLE"
    clock = f"greatest({', '.join(rates)})"
    ((count, most, named),) = connection.execute(
        f"SELECT count(*), max(clock), arg_max(highest, clock) FROM (SELECT {clock} AS clock, "
        f"{limit} AS highest FROM {identifier(timed.table)}) WHERE clock > {_CLOCK_SLACK} * highest"
    ).fetchall()
    if not count:
        return []
    return [
        Notice(
            "clock-above-highest",
            f"{timed.name}: {_rows(count)} with an SM clock above the highest that the GPU names "
            f"({format_si(most, 'Hz')}, {format_si(named, 'Hz')}). Some GPUs of desktops run so. "
            "Else cycles and time are of passes that took different times, as they do for kernels "
            "of a few microseconds, and for kernels beside graphs that ncu profiled as a whole "
            "(--graph-profiling graph), whose times are too long",
        )
    ]


def _named(timed: Timed, patterns: Sequence[str]) -> list[str]:
    return [
        identifier(COUNTER_PREFIX + counter)
        for counter in timed.counters
        if any(fnmatch.fnmatchcase(counter, pattern) for pattern in patterns)
    ]


def _counts(
    connection: "DuckDBPyConnection", timed: Timed, rows: str, *conditions: str
) -> list[int]:
    counts = ", ".join(f"count(*) FILTER ({condition})" for condition in conditions)
    ((*found,),) = connection.execute(
        f"SELECT {counts} FROM {identifier(timed.table)} WHERE {rows}"
    ).fetchall()
    return [int(count) for count in found]


def _forget(
    connection: "DuckDBPyConnection", timed: Timed, columns: Sequence[str], rows: str
) -> None:
    """Make columns unknown in some rows; the conditions are looked at before any changes."""
    if columns:
        unknown = ", ".join(f"{column} = NULL" for column in columns)
        connection.execute(f"UPDATE {identifier(timed.table)} SET {unknown} WHERE {rows}")
