"""Runs on disk: Parquet files with one row per launch and their provenance in the metadata.

Any tool of the Parquet ecosystem can read them. What the columns mean stands in
``model.columns``; a folder of such files, one a rank, is a run too.
"""

import datetime as dt
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mansard import engine
from mansard.errors import FormatError, InputError, MansardError, OutputError
from mansard.location import File, RemoteFile, listed, local_path
from mansard.model.columns import COUNTER_PREFIX, RUN_COLUMNS
from mansard.model.notice import Notice
from mansard.model.provenance import RUN_FORMAT, Provenance
from mansard.model.run import Run
from mansard.store.atomic import replacing
from mansard.version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Key of the provenance in a file's key-value metadata.
METADATA_KEY = "mansard"

_MAGIC = b"PAR1"
_SUFFIX = ".parquet"
_FORMAT_NAME, _FORMAT_VERSION = RUN_FORMAT.split("/")
_RANK_FILE = re.compile(r"rank(\d{1,9})\.parquet")
_MOST_RANKS = 1_000_000
#: Python refuses to read numbers of thousands of digits.
_VERSION_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_DIGITS = re.compile(r"(\d+)")


class _FormatOnly(msgspec.Struct):
    """The one field that every version of the metadata has."""

    format: str = ""


def write_run(
    connection: "DuckDBPyConnection", select_sql: str, provenance: Provenance, path: Path
) -> None:
    """Write the launches that a query gives as one run file, whole or not at all.

    Columns of ``RUN_COLUMNS`` that the query lacks are written as null (unknown); columns
    ``counter.*`` are kept as they are. The time of writing and the version of Mansard are noted
    in the provenance unless they are there already.

    Args:
        connection: where the tables of the query live.
        select_sql: a SELECT with columns named as in ``model.columns``.
        provenance: origin of the launches.
        path: the file; what stood there is replaced at the very end.

    Raises:
        OutputError: the file cannot be written.
        FormatError: the query has a column that a run does not have.
    """
    found = [row[0] for row in connection.execute(f"DESCRIBE ({select_sql})").fetchall()]
    if not provenance.created:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        provenance = msgspec.structs.replace(provenance, created=now)
    if not provenance.mansard_version:
        provenance = msgspec.structs.replace(provenance, mansard_version=__version__)
    # Fields at their default are left out; the version must stand there all the same.
    fields = {"format": provenance.format, **msgspec.to_builtins(provenance, order="deterministic")}
    metadata = msgspec.json.encode(fields).decode()
    columns = ", ".join(_written_columns(found))
    with replacing(path) as part, engine.translated(OutputError, f"cannot write {path}"):
        connection.execute(
            f"COPY (SELECT {columns} FROM ({select_sql})) TO {engine.literal(str(part))} "
            "(FORMAT parquet, COMPRESSION zstd, "
            f"KV_METADATA {{{METADATA_KEY}: {engine.literal(metadata)}}})"
        )


def _written_columns(found: Iterable[str]) -> list[str]:
    names = list(found)
    counters = [name for name in names if name.startswith(COUNTER_PREFIX)]
    strange = set(names) - {column.name for column in RUN_COLUMNS} - set(counters)
    if strange:
        raise FormatError(
            f"not columns of a run: {', '.join(sorted(strange))}; further counters are named "
            f"{COUNTER_PREFIX}<vendor name>"
        )
    listed = []
    for column in RUN_COLUMNS:
        value = engine.identifier(column.name) if column.name in names else "NULL"
        listed.append(f"CAST({value} AS {column.sql_type}) AS {engine.identifier(column.name)}")
    for name in counters:
        quoted = engine.identifier(name)
        listed.append(f"CAST({quoted} AS DOUBLE) AS {quoted}")
    return listed


def read_provenance(path: File) -> Provenance:
    """The origin of a run file.

    Raises:
        InputError: there is no such file.
        FormatError: it is not a Parquet file, is cut short, was not written by Mansard, or was
            written by a newer version.
    """
    with engine.connect(threads=1) as connection:
        engine.reach(connection, [path])
        return _read(connection, path)


def open_run(path: Path | str) -> Run:
    """Open a run: one Parquet file, or a folder of them with one file a rank.

    In a folder the files come in the order of their names, numbers as numbers. A file that
    cannot be read is left out and named in a notice.

    Args:
        path: of the file or the folder, or its URL (``s3://bucket/run/``).

    Raises:
        InputError: there is nothing at ``path``.
        FormatError: no file at ``path`` is a run.
        UsageError: a package that reads such a URL is missing.
    """
    local = local_path(str(path))
    files: list[File]
    if local is None:
        found, is_folder = listed(str(path), _SUFFIX)
        files, label = list(found), str(path)
    else:
        is_folder, label = local.is_dir(), local.resolve().name if local.is_dir() else local.name
        files = list(local.glob(f"*{_SUFFIX}")) if is_folder else [local]
    if not is_folder:
        return Run(files=(files[0],), provenance=(read_provenance(files[0]),), label=label)
    if not files:
        raise FormatError(f"{path} holds no Parquet file; give a run file or a folder of them")
    return _opened(sorted(files, key=lambda file: _natural(file.name)), str(path), label)


def _opened(files: list[File], folder: str, label: str) -> Run:
    """The run of the files of a folder, as far as they are runs."""
    readable: list[tuple[File, Provenance]] = []
    notices: list[Notice] = []
    with engine.connect(threads=1) as connection:
        engine.reach(connection, files)
        for file in files:
            try:
                readable.append((file, _read(connection, file)))
            except MansardError as error:
                notices.append(Notice("unreadable-file", f"left out: {error}", partial=True))
    if not readable:
        raise FormatError(f"no file in {folder} is a run; the first: {notices[0].message}")
    notices += _missing_ranks(folder, files, [origin for _, origin in readable])
    return Run(
        files=tuple(file for file, _ in readable),
        provenance=tuple(provenance for _, provenance in readable),
        notices=tuple(notices),
        label=label,
    )


def _missing_ranks(
    folder: str, files: Sequence[File], origins: Iterable[Provenance]
) -> list[Notice]:
    """Tell of gaps in rank0.parquet, rank1.parquet, ..., as the collector names the files."""
    found = [_RANK_FILE.fullmatch(file.name) for file in files]
    ranks = {int(name[1]) for name in found if name}
    if None in found or len(ranks) < 2 or max(ranks) >= _MOST_RANKS:
        return []
    stated = [origin.extra.get("world_size", "") for origin in origins]
    sizes = [int(size) for size in stated if size.isdecimal() and len(size) < 8]
    size = max([max(ranks) + 1, *(size for size in sizes if size <= _MOST_RANKS)])
    missing = sorted(set(range(size)) - ranks)
    if not missing:
        return []
    named = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
    return [
        Notice(
            "rank-missing",
            f"{folder} has no file of {len(missing)} of {size} ranks: {named}",
            partial=True,
        )
    ]


def _read(connection: "DuckDBPyConnection", path: File) -> Provenance:
    if not isinstance(path, RemoteFile):
        _check_magic(path)
    with engine.translated(FormatError, f"{path} is a damaged Parquet file"):
        found = connection.execute(
            f"SELECT value FROM parquet_kv_metadata({engine.file_list([path])}) "
            f"WHERE key = {engine.literal(METADATA_KEY)}::BLOB"
        ).fetchall()
    if not found:
        raise FormatError(
            f"{path} is a Parquet file that was not written by Mansard (its metadata has no "
            f"{METADATA_KEY!r}); use 'mansard import' on the profiler's own file"
        )
    return _decode(found[0][0], path)


def _decode(metadata: bytes, path: File) -> Provenance:
    try:
        stated = msgspec.json.decode(metadata, type=_FormatOnly).format
        name, _, version = stated.partition("/")
        if name != _FORMAT_NAME or not _VERSION_NUMBER.fullmatch(version):
            raise FormatError(f"{path} says that its format is {stated[:60]!r}, not {RUN_FORMAT!r}")
        if int(version) > int(_FORMAT_VERSION):
            raise FormatError(
                f"{path} was written by a newer Mansard ({stated}; this one reads up to "
                f"{RUN_FORMAT}): update Mansard"
            )
        return msgspec.json.decode(metadata, type=Provenance)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"the metadata of {path} are damaged: {error}") from error


def _check_magic(path: Path) -> None:
    """Tell the plain cases apart before the engine sees the file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise InputError(f"{path} is not a regular file")
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            size = file.seek(0, 2)
            file.seek(max(0, size - len(_MAGIC)))
            tail = file.read(len(_MAGIC))
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if head != _MAGIC:
        raise FormatError(f"{path} is not a Parquet file; use 'mansard import' on profiler files")
    if tail != _MAGIC or size < 3 * len(_MAGIC):
        raise FormatError(f"{path} is cut short: its end is missing; copy or record it again")


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts rank2 before rank10."""
    parts = _DIGITS.split(name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
