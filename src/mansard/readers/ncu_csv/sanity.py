"""Values that no launch can have: made unknown, and said."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mansard.engine import identifier
from mansard.model.columns import COUNTER_PREFIX
from mansard.model.notice import Notice
from mansard.readers.ncu_csv.vocabulary import vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LONGEST_NAME = 80


def drop_text_columns(
    connection: "DuckDBPyConnection", table: str, samples: dict[str, str | None]
) -> tuple[str, ...]:
    """Drop the counters that hold text or nothing at all; keep those that hold "no value".

    Args:
        connection: of the engine.
        table: a capture.
        samples: one text of each counter, in the order of the columns.

    Returns:
        The vendor names that stay.
    """
    if not samples:
        return ()
    counts = ", ".join(f"count({_column(name)})" for name in samples)
    row = connection.execute(f"SELECT {counts} FROM {identifier(table)}").fetchone() or ()
    kept = []
    for (name, sample), count in zip(samples.items(), row, strict=True):
        if count or sample in vocabulary().no_value:
            kept.append(name)
        else:
            connection.execute(f"ALTER TABLE {identifier(table)} DROP COLUMN {_column(name)}")
    return tuple(kept)


def clear_absurd(
    connection: "DuckDBPyConnection", table: str, counters: Sequence[str]
) -> tuple[Notice, ...]:
    """Make negative, endless and impossibly large values unknown, and values that are no number.

    Returns:
        One notice that names the first of them, if any; "not a number" goes without saying.
    """
    if not counters:
        return ()
    limit = repr(vocabulary().largest_value)
    extremes = ", ".join(f"min({_column(name)}), max({_column(name)})" for name in counters)
    row = connection.execute(f"SELECT {extremes} FROM {identifier(table)}").fetchone() or ()
    total, where = 0, ""
    for place, name in enumerate(counters):
        least, most = row[2 * place], row[2 * place + 1]
        # In the engine "not a number" is above all numbers.
        if least is None or (least >= 0 and most <= vocabulary().largest_value):
            continue
        column = _column(name)
        absurd = f"({column} < 0 OR {column} > {limit}) AND NOT isnan({column})"
        found = connection.execute(
            f"SELECT count(*) OVER (), id, name, {column} FROM {identifier(table)} "
            f"WHERE {absurd} ORDER BY row LIMIT 1"
        ).fetchone()
        if found is not None:
            count, launch, kernel, value = found
            total += count
            where = where or (
                f"{name} is {value:g} in launch {launch} ({str(kernel)[:_LONGEST_NAME]})"
            )
        connection.execute(
            f"UPDATE {identifier(table)} SET {column} = NULL "
            f"WHERE {column} < 0 OR {column} > {limit} OR isnan({column})"
        )
    if not total:
        return ()
    more = f"; {total - 1} more values are like it" if total > 1 else ""
    return (
        Notice(
            "counts-absurd",
            f"{where}: negative or impossibly large values are read as unknown{more}",
        ),
    )


def _column(name: str) -> str:
    return identifier(COUNTER_PREFIX + name)
