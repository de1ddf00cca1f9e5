"""The launches of a report as a table of the engine: columns as arrays, never row by row."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mansard.engine import identifier
from mansard.model.capture import CAPTURE_COLUMNS
from mansard.model.columns import COUNTER_PREFIX
from mansard.readers.ncu_rep.result import MetricValues
from mansard.readers.ncu_rep.vocabulary import si_factor
from mansard.readers.wanted import MOST_COUNTERS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy import ndarray

#: A table of at most this many cells is built whatever the size of the file.
_SMALL_TABLE = 8 << 20
_LONGEST_NAME = 512
#: Marks an unknown integer on the way into the engine; all integers of a report are unsigned.
_UNKNOWN = -1
_LARGEST = 2**63 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Counters:
    """The metric values of all results, one array per counter.

    Attributes:
        columns: per vendor name, the value of every launch in SI base units; NaN is unknown.
        nameless: number of values without a usable name.
        left_out: counters left out since the table would outgrow the file many times.
    """

    columns: "Mapping[str, ndarray]"
    nameless: int
    left_out: int


def counter_columns(
    metrics: MetricValues,
    names: Sequence[str],
    *,
    file_bytes: int,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Counters:
    """Turn the flat values of all results into columns.

    A metric that a result gives twice keeps its first value. Counters of very few launches are
    left out when the table would have more cells than the file has bytes: no real report comes
    near, and a hostile one cannot fill the memory.

    Args:
        metrics: the values, as read.
        names: the table of names of the whole file.
        file_bytes: size of the report.
        is_wanted: whether to read a counter of that name.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    launches = len(metrics.counts)
    ids = np.frombuffer(metrics.ids, dtype=np.uint32)
    values = np.frombuffer(metrics.values, dtype=np.float64)
    rows = np.repeat(np.arange(launches), np.frombuffer(metrics.counts, dtype=np.int64))
    named = ids < len(names)
    nameless = len(ids) - int(np.count_nonzero(named))
    if nameless:
        ids, values, rows = ids[named], values[named], rows[named]
    counts = np.bincount(ids, minlength=len(names))
    # Place 0 is for what is left out; its column is dropped at the end.
    place = np.zeros(len(names), dtype=np.int64)
    spelled: list[str] = []
    places: dict[str, int] = {}
    budget = min(MOST_COUNTERS, max(file_bytes, _SMALL_TABLE) // max(launches, 1))
    left_out = 0
    for number in np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist():
        name = names[number]
        # The engine does not tell column names apart by case.
        known = places.get(name.lower())
        if known is not None and spelled[known - 1] == name:
            place[number] = known
        elif known is not None or not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
            nameless += int(counts[number])
        elif not is_wanted(name):
            continue
        elif len(spelled) >= budget:
            left_out += 1
        else:
            spelled.append(name)
            place[number] = places[name.lower()] = len(spelled)
    matrix = np.full((len(spelled) + 1, launches), np.nan)
    # Assigned backwards, so that the first of several values of a result stays.
    matrix[place[ids[::-1]], rows[::-1]] = values[::-1]
    columns = {}
    for name in sorted(spelled):
        column = matrix[places[name.lower()]]
        factor = si_factor(name)
        columns[name] = column if factor == 1.0 else column * factor
    return Counters(columns, nameless, left_out)


def create_table(
    connection: "DuckDBPyConnection",
    table: str,
    *,
    launches: Mapping[str, Sequence[int | str | None]],
    counters: "Mapping[str, ndarray]",
) -> None:
    """Create the table of a capture.

    Args:
        connection: of the engine.
        table: name of the table to create.
        launches: the capture columns that are known, by name, one entry per launch.
        counters: values by vendor name, in SI base units; NaN becomes null.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    arrays: dict[str, ndarray] = {}
    selected: list[str] = []
    for name, sql_type in CAPTURE_COLUMNS:
        entries = launches.get(name)
        source = f"column_{len(arrays)}"
        if entries is None:
            value = "NULL"
        elif sql_type == "VARCHAR":
            # Never None in the array: the engine guesses the type of objects from a sample.
            arrays[source] = np.array([entry or "" for entry in entries], dtype=object)
            value = f"nullif({source}, '')"
        else:
            known = (
                entry if isinstance(entry, int) and entry <= _LARGEST else _UNKNOWN
                for entry in entries
            )
            arrays[source] = np.fromiter(known, dtype=np.int64, count=len(entries))
            value = f"nullif({source}, {_UNKNOWN})"
        selected.append(f"{value}::{sql_type} AS {identifier(name)}")
    for name, column in counters.items():
        source = f"column_{len(arrays)}"
        arrays[source] = column
        # A check per row costs more than the copy: only where it is needed.
        value = f"CASE WHEN isnan({source}) THEN NULL ELSE {source} END"
        value = value if bool(np.isnan(column).any()) else source
        selected.append(f"{value} AS {identifier(COUNTER_PREFIX + name)}")
    view = f"{table} arrays"
    connection.register(view, arrays)
    try:
        connection.execute(
            f"CREATE TABLE {identifier(table)} AS "
            f"SELECT {', '.join(selected)} FROM {identifier(view)}"
        )
    finally:
        connection.unregister(view)
