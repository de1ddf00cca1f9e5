"""Reads what ``ncu --csv`` printed, in all its shapes."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mansard.engine import identifier, room_for, translated
from mansard.errors import FormatError
from mansard.model.capture import CAPTURE_COLUMNS, Capture
from mansard.model.provenance import Provenance
from mansard.readers.ncu_csv.findings import (
    check,
    label_notices,
    left_out_notices,
    notices_on,
    number_notices,
)
from mansard.readers.ncu_csv.long import LongPage
from mansard.readers.ncu_csv.messages import conditions_of, notices_of
from mansard.readers.ncu_csv.numbers import Convention, Evidence
from mansard.readers.ncu_csv.page import Page
from mansard.readers.ncu_csv.records import Found, find_rows
from mansard.readers.ncu_csv.sanity import clear_absurd, drop_text_columns
from mansard.readers.ncu_csv.vocabulary import vocabulary
from mansard.readers.ncu_csv.wide import SLICE, WidePage
from mansard.readers.ncu_rep.times import Timed, clear_times
from mansard.readers.streams import unreadable
from mansard.readers.wanted import EVERYTHING, counter_filter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COLLECTOR = "Nsight Compute"


def read_ncu_csv(
    source: Path | IO[bytes],
    connection: "DuckDBPyConnection",
    table: str,
    *,
    name: str,
    keep: Sequence[str] = EVERYTHING,
) -> Capture:
    """Read the output of ``ncu --csv`` as launches with raw counters.

    Takes the details page, the live output and the raw page of any version since 2020, with any
    columns in any order, in automatic or base units, in any locale, with program output around
    and between the rows, and several profiles one after another.

    Args:
        source: a file, or a stream of bytes (copied first); plain, gzip or xz.
        connection: where to create the table.
        table: its name.
        name: what to call the source in messages and in the provenance.
        keep: patterns of the counters to read, beside those that a counter table has a use for.

    Returns:
        One row per launch, in the order of the file; values in SI base units (s, Hz, byte),
        percent as percent, null where the file has no value.

    Raises:
        FormatError: the source is not the output of ncu, or not usable.
        InputError: ncu reported an error and no launches.
    """
    with (
        tempfile.TemporaryDirectory(prefix="mansard-csv-") as folder,
        translated(FormatError, f"{name} cannot be read"),
    ):
        scratch = Path(folder)
        try:
            path = source if isinstance(source, Path) else _copied(source, scratch / "stream")
            is_empty = path.stat().st_size == 0
            found = find_rows(path, scratch)
        except OSError as error:
            raise unreadable(name, error) from error
        check(found, name, is_empty=is_empty)
        try:
            return _capture(found, connection, table, name=name, keep=keep)
        finally:
            _drop_scratch(connection, table)


def _capture(
    found: Found,
    connection: "DuckDBPyConnection",
    table: str,
    *,
    name: str,
    keep: Sequence[str],
) -> Capture:
    is_wanted = counter_filter((*keep, *vocabulary().launch.values()))
    pages = [
        (LongPage if part.header.is_long else WidePage)(
            connection, part, f"{table} part {number}", is_wanted=is_wanted
        )
        for number, part in enumerate(found.parts)
    ]
    columns = len({counter.lower() for page in pages for counter in page.chosen})
    widest = max((min(len(page.names()), SLICE) for page in pages), default=0)
    rows = sum(page.part.rows for page in pages)
    with room_for(connection, columns=max(columns, widest), rows=rows):
        return _table(found, pages, connection, table, name=name)


def _table(
    found: Found,
    pages: Sequence[Page],
    connection: "DuckDBPyConnection",
    table: str,
    *,
    name: str,
) -> Capture:
    convention = _convention(pages)
    selects = [page.select(convention) for page in pages]
    is_numbered = all(isinstance(page, WidePage) for page in pages)
    _create(connection, table, selects, is_numbered=is_numbered)
    counters = drop_text_columns(connection, table, _samples(pages))
    row = connection.execute(f"SELECT count(*) FROM {identifier(table)}").fetchone()
    said = notices_of(found.messages)
    devices = tuple(dict.fromkeys(device for page in pages for device in page.devices()))
    notices = (
        *said,
        *notices_on(found, name, launches=0 if row is None else int(row[0])),
        *number_notices(pages, convention, name),
        *label_notices([counter for page in pages for counter in page.names()], name),
        *left_out_notices(pages, name),
        *clear_absurd(connection, table, counters),
        *clear_times(connection, Timed(table, counters, devices, name)),
    )
    conditions = conditions_of(found.messages)
    lost = found.broken or found.cut is not None or any(notice.partial for notice in said)
    provenance = Provenance(
        sources=(name,),
        collector=COLLECTOR,
        devices=devices,
        clock_control=conditions.get("clock_control"),
        cache_control=conditions.get("cache_control"),
        notices=notices,
        lost_launches=None if lost else 0,
        extra={"skipped_lines": str(found.skipped)} if found.skipped else {},
    )
    return Capture(table, counters, provenance)


def _convention(pages: Sequence[Page]) -> Convention:
    """The way the file writes numbers: one, for all its pages."""
    if all(page.is_usual() for page in pages):
        return Convention()
    return sum((page.evidence() for page in pages), Evidence()).convention()


def _samples(pages: Sequence[Page]) -> dict[str, str | None]:
    """A text of each counter of any page."""
    samples: dict[str, str | None] = {}
    spelling: dict[str, str] = {}
    for page in pages:
        for counter, sample in page.counters().items():
            # The engine does not tell column names apart by case.
            spelled = spelling.setdefault(counter.lower(), counter)
            samples[spelled] = samples.get(spelled) or sample
    return samples


def _create(
    connection: "DuckDBPyConnection", table: str, selects: Sequence[str], *, is_numbered: bool
) -> None:
    if not selects:
        columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in CAPTURE_COLUMNS)
        connection.execute(f"CREATE TABLE {identifier(table)} ({columns})")
        return
    union = " UNION ALL BY NAME ".join(f"({select})" for select in selects)
    # In a wide page the number of a row will do; numbering them again takes a sort of its own.
    number = "seq" if is_numbered else "row_number() OVER (ORDER BY seq) - 1"
    rows = f"SELECT {number} AS row, * EXCLUDE (seq) FROM ({union}) ORDER BY row"
    connection.execute(f"CREATE TABLE {identifier(table)} AS {rows}")


def _drop_scratch(connection: "DuckDBPyConnection", table: str) -> None:
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE temporary AND starts_with(table_name, $1)",
        [f"{table} part "],
    ).fetchall()
    for (scratch,) in rows:
        connection.execute(f"DROP TABLE {identifier(scratch)}")


def _copied(stream: IO[bytes], path: Path) -> Path:
    with path.open("wb") as target:
        shutil.copyfileobj(stream, target)
    return path
