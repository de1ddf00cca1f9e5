"""DuckDB, the one table engine: connections with bounded memory, and the quoting of SQL text.

Readers, the store and the analysis all speak SQL to it; nothing else imports DuckDB.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mansard.errors import MansardError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

#: Working memory of a connection. Beyond it DuckDB spills to its temporary folder.
MEMORY_LIMIT = "768MB"


@contextlib.contextmanager
def connect(
    *, memory_limit: str = MEMORY_LIMIT, threads: int | None = None
) -> Iterator["DuckDBPyConnection"]:
    """Open an in-memory database that spills to a temporary folder, both gone on exit.

    Args:
        memory_limit: DuckDB's own spelling, for example ``"768MB"``.
        threads: worker threads; all cores by default.
    """
    import duckdb  # noqa: PLC0415  (heavy: only who asks for a table pays for it)

    with tempfile.TemporaryDirectory(prefix="mansard-") as spill:
        connection = duckdb.connect(":memory:")
        try:
            connection.execute(f"SET memory_limit = {literal(memory_limit)}")
            connection.execute(f"SET temp_directory = {literal(spill)}")
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET preserve_insertion_order = true")
            if threads is not None:
                connection.execute(f"SET threads = {int(threads)}")
            yield connection
        finally:
            connection.close()


def relation(columns: Mapping[str, Sequence[str | int | float | None]]) -> "DuckDBPyRelation":
    """Hand columns of equal length out as a relation of a database of its own, in memory.

    The database lives as long as the relation, and what is made from it.
    """
    import duckdb  # noqa: PLC0415

    listed = ", ".join(
        f"unnest(${number}::{_type_of(values)}[]) AS {identifier(name)}"
        for number, (name, values) in enumerate(columns.items(), start=1)
    )
    connection = duckdb.connect(":memory:")
    connection.execute(
        f"CREATE TEMP TABLE rows AS SELECT {listed}", [list(v) for v in columns.values()]
    )
    return connection.table("rows")


def _type_of(values: Sequence[str | int | float | None]) -> str:
    known = {type(value) for value in values if value is not None}
    if str in known:
        return "VARCHAR"
    return "BIGINT" if known == {int} else "DOUBLE"


@contextlib.contextmanager
def translated(error: type[MansardError], message: str) -> Iterator[None]:
    """Turn what DuckDB raises about files and values into ``error``: message, then its own words.

    Faulty SQL is our fault, not the user's, and stays as it is.
    """
    import duckdb  # noqa: PLC0415

    try:
        yield
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
        raise
    except duckdb.Error as cause:
        reason = (str(cause).splitlines() or [type(cause).__name__])[0]
        raise error(f"{message}: {reason}") from cause


def identifier(name: str) -> str:
    """Quote a column or table name for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text value for SQL, whatever characters it has."""
    return "'" + text.replace("'", "''") + "'"


def file_list(files: Sequence[Path]) -> str:
    """A list of file names for SQL, whatever characters they have."""
    # DuckDB reads *, ? and [ in a name as a pattern; in brackets they stand for themselves.
    names = (re.sub(r"([*?\[])", r"[\1]", str(file.absolute())) for file in files)
    return "[" + ", ".join(literal(name) for name in names) + "]"


def parquet(files: Sequence[Path]) -> str:
    """Table function over Parquet files: their columns by name, and ``filename``.

    A column that one file lacks is null there.
    """
    return (
        f"read_parquet({file_list(files)}, "
        "union_by_name = true, filename = true, hive_partitioning = false)"
    )
