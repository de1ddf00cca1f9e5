"""DuckDB, the one table engine: connections with bounded memory, and the quoting of SQL text.

Readers, the store and the analysis all speak SQL to it; nothing else imports DuckDB.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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


def identifier(name: str) -> str:
    """Quote a column or table name for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text value for SQL, whatever characters it has."""
    return "'" + text.replace("'", "''") + "'"
