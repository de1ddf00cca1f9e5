"""Makes one table of the reports of several runs of a program, each with other counters."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mansard.collect.ncu.symbols import symbols_in
from mansard.engine import identifier
from mansard.model.capture import Capture
from mansard.model.columns import COUNTER_PREFIX
from mansard.readers.ncu_rep import read_ncu_rep

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_KIND = ("process_number", "key", *_SHAPE, "shared")
_KEY = (*_KIND, "launches", "occurrence")


def read_reports(
    connection: "DuckDBPyConnection", reports: Sequence[Path], table: str, shared_bytes: str
) -> tuple[Capture, list[str]]:
    """Read the first report into a table, and the counters of the others beside its launches.

    The n-th launch of a kernel with some grid, block and shared memory is the same in all runs,
    since all were told to count the same. Where a run holds more or fewer of them than the first,
    nothing tells which they are, and its counters stay unknown for these launches.

    Args:
        connection: where the table is made.
        reports: one or more.
        table: its name.
        shared_bytes: counter with the dynamic shared memory of a block.

    Returns:
        The launches, and the name of each as the compiler made it.

    Raises:
        InputError: a report cannot be read, or holds no launch.
    """
    capture = read_ncu_rep(reports[0], connection, table, name=reports[0].name)
    symbols = symbols_in(reports[0])
    for number, report in enumerate(reports[1:], start=2):
        other_table = f"{table} {number}"
        other = read_ncu_rep(report, connection, other_table, name=report.name)
        new = [counter for counter in other.counters if counter not in capture.counters]
        _key(connection, capture, symbols, shared_bytes, "first keyed")
        _key(connection, other, symbols_in(report), shared_bytes, "other keyed")
        columns = "".join(f", o.{identifier(COUNTER_PREFIX + counter)}" for counter in new)
        merged = f"{table} with {number}"
        connection.execute(
            f"CREATE TABLE {identifier(merged)} AS "
            'WITH same AS (SELECT f.row, k.other_row FROM "first keyed" f '
            f'JOIN "other keyed" k USING ({", ".join(_KEY)})) '
            f"SELECT c.*{columns} FROM {identifier(capture.table)} c "
            "LEFT JOIN same ON same.row = c.row "
            f"LEFT JOIN {identifier(other_table)} o ON o.row = same.other_row ORDER BY c.row"
        )
        for old in (capture.table, other_table, "first keyed", "other keyed"):
            connection.execute(f"DROP TABLE {identifier(old)}")
        capture = dataclasses.replace(capture, table=merged, counters=(*capture.counters, *new))
    return capture, symbols


def _key(
    connection: "DuckDBPyConnection",
    capture: Capture,
    symbols: Sequence[str],
    shared_bytes: str,
    table: str,
) -> None:
    """Number the launches of each kernel and shape of one report."""
    import numpy as np  # noqa: PLC0415  (heavy)

    names = np.array(list(symbols) or [""], dtype=object)
    rows = np.arange(len(names), dtype=np.int64)
    shared = (
        identifier(COUNTER_PREFIX + shared_bytes) if shared_bytes in capture.counters else "NULL"
    )
    row = "row" if table == "first keyed" else "row AS other_row"
    kind = ", ".join(_KIND)
    connection.register("symbol arrays", {"row": rows, "symbol": names})
    try:
        connection.execute(
            f"CREATE TABLE {identifier(table)} AS SELECT {row}, {kind}, "
            f"count(*) OVER (PARTITION BY {kind}) AS launches, "
            f"row_number() OVER (PARTITION BY {kind} ORDER BY row) AS occurrence FROM ("
            f"SELECT row, coalesce(nullif(symbol, ''), name) AS key, {', '.join(_SHAPE)}, "
            f"coalesce({shared}, -1) AS shared, "
            "dense_rank() OVER (ORDER BY process) AS process_number "
            f'FROM {identifier(capture.table)} LEFT JOIN "symbol arrays" USING (row) '
            "WHERE grid_x IS NOT NULL)"
        )
    finally:
        connection.unregister("symbol arrays")
