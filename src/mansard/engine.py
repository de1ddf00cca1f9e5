"""DuckDB, the one table engine: connections with bounded memory, and the quoting of SQL text.

Readers, the store and the analysis all speak SQL to it; nothing else imports DuckDB.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mansard.errors import MansardError
from mansard.location import File, RemoteFile, filesystem, scheme_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

#: Working memory of a connection. Beyond it DuckDB spills to its temporary folder.
MEMORY_LIMIT = "768MB"
#: What DuckDB holds for each column and thread while it fills a table (measured: 260 to 310 KiB),
#: and for each value of a wide table. Neither can spill.
_COLUMN_BYTES = 320 << 10
_VALUE_BYTES = 16
#: What DuckDB makes of Ctrl-C while it works.
_INTERRUPTED = "Query interrupted"
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


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

    with tempfile.TemporaryDirectory(prefix="mansard-") as spill, _enough_memory():
        connection = duckdb.connect(":memory:")
        try:
            connection.execute(f"SET memory_limit = {literal(memory_limit)}")
            connection.execute(f"SET temp_directory = {literal(spill)}")
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET preserve_insertion_order = true")
            if threads is not None:
                connection.execute(f"SET threads = {int(threads)}")
            yield connection
        except RuntimeError as error:
            if str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from error
            raise
        finally:
            connection.close()


@contextlib.contextmanager
def _enough_memory() -> Iterator[None]:
    """Say it plainly where memory ends: the file is not to blame."""
    import duckdb  # noqa: PLC0415

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as cause:
        reason = (str(cause).splitlines() or [""])[0]
        raise MansardError(f"there is not enough memory. {reason}".strip()) from cause


@contextlib.contextmanager
def room_for(connection: "DuckDBPyConnection", *, columns: int, rows: int) -> Iterator[None]:
    """Let a connection make a table of very many columns, for which its usual settings fail.

    As few threads work on it as fit into the memory limit; where not even one does, the limit
    is raised. Both are as before on exit.

    Args:
        connection: which one.
        columns: of the table.
        rows: about how many.
    """
    found = connection.execute(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    ).fetchall()
    threads, limit = int(found[0][0]), str(found[0][1])
    number, _, unit = limit.partition(" ")
    bytes_allowed = float(number) * _UNITS[unit]
    for_one = columns * _COLUMN_BYTES
    needed = for_one + (columns * rows * _VALUE_BYTES if for_one > bytes_allowed / 2 else 0)
    if columns * threads * _COLUMN_BYTES <= bytes_allowed >= needed:
        yield
        return
    connection.execute(f"SET threads = {max(1, min(threads, int(bytes_allowed // for_one)))}")
    if needed > bytes_allowed:
        connection.execute(f"SET memory_limit = '{needed // 1000}KB'")
    try:
        yield
    finally:
        if needed > bytes_allowed:
            # DuckDB cuts what it shows to one decimal: without a little more it would shrink.
            connection.execute(f"SET memory_limit = '{float(number) + 0.05:.2f}{unit}'")
        connection.execute(f"SET threads = {threads}")


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
        with _enough_memory():
            yield
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
        raise
    except (duckdb.Error, UnicodeDecodeError) as cause:  # names in a file, or quoted from one
        raise error(f"{message}: {_reason(cause)}") from cause


def _reason(cause: Exception) -> str:
    """The line that says it: the first, or that below the traceback of a file system."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if lines and lines[0].startswith("Traceback"):
        lines = [line for line in lines if re.match(r"[\w.]+: ", line)] or lines
    return lines[0] if lines else type(cause).__name__


def identifier(name: str) -> str:
    """Quote a column or table name for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text value for SQL, whatever characters it has."""
    return "'" + text.replace("'", "''") + "'"


def reach(connection: "DuckDBPyConnection", files: Sequence[File]) -> None:
    """Let a connection read the files that lie at a URL; for local ones it can already.

    Raises:
        UsageError: a package for such files is missing.
    """
    schemes = {scheme_of(file.url) or "" for file in files if isinstance(file, RemoteFile)}
    for scheme in sorted(schemes):
        store = filesystem(scheme)
        first = store.protocol if isinstance(store.protocol, str) else store.protocol[0]
        if not connection.filesystem_is_registered(first):
            connection.register_filesystem(store)


def file_list(files: Sequence[File]) -> str:
    """A list of file names for SQL, whatever characters they have."""
    # DuckDB reads *, ? and [ in a name as a pattern; in brackets they stand for themselves.
    names = (re.sub(r"([*?\[])", r"[\1]", str(file.absolute())) for file in files)
    return "[" + ", ".join(literal(name) for name in names) + "]"


def parquet(files: Sequence[File], *, uniform: bool = False) -> str:
    """Table function over Parquet files: their columns by name; ``filename`` where several.

    A column that one file lacks is null there.

    Args:
        files: in this order.
        uniform: whether all files are known to have the same columns. DuckDB then does not hold
            the footers of all files in memory (0.1 MB each).
    """
    # A file that has such a column itself could not be read with another one.
    several = "true" if len(files) > 1 else "false"
    union = "false" if uniform else "true"
    return (
        f"read_parquet({file_list(files)}, "
        f"union_by_name = {union}, filename = {several}, hive_partitioning = false)"
    )
