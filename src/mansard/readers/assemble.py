"""From captures to a run: applies the counter table of the chip and writes the Parquet file."""

import dataclasses
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mansard.counters.apply import Applied, apply
from mansard.counters.table import CounterTable, HalfWeights, table_for
from mansard.engine import identifier, literal
from mansard.errors import InputError
from mansard.model.capture import Capture
from mansard.model.columns import COUNTER_PREFIX, IDENTITY_COLUMNS, QUANTITY_COLUMNS
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.store.run_file import read_provenance, write_run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: The table for a folder of one-metric files that do not say their chip: the paper's way.
_PAPER_TABLE = "paper-volta"
_GENERIC_TABLE = "generic"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Settings of an import.

    Attributes:
        counters: name of the counter table; chosen by the chip when None.
        chip: chip name (``GH100``) or compute capability (``9.0``) for files that do not say.
        keep: patterns of vendor counters to keep in the run, e.g. ``("launch__*",)``.
        half_weights: ``vendor`` counts packed half instructions as pairs (add 2, mul 2, fma 4),
            ``unpacked`` as one (1, 1, 2) like LIKWID, HTA and the paper; the table's own
            convention when None.
    """

    counters: str | None = None
    chip: str | None = None
    keep: tuple[str, ...] = ()
    half_weights: HalfWeights | None = None


def assemble(
    captures: Sequence[Capture],
    connection: "DuckDBPyConnection",
    path: Path,
    *,
    options: ImportOptions | None = None,
    notices: Sequence[Notice] = (),
) -> Provenance:
    """Write captures as one run file.

    Launches are numbered within (host, rank, process). Several captures without a rank, each of
    processes of its own, become ranks in the order given.

    Args:
        captures: tables of ``connection``, at least one.
        connection: where the tables are.
        path: the Parquet file to write, atomically.
        options: counter table and columns to keep.
        notices: what opening the files already found.

    Returns:
        The provenance as written.
    """
    options = options or ImportOptions()
    if not captures:
        raise InputError("no launches to write: none of the inputs could be read")
    parts: list[str] = []
    origins: list[Provenance] = []
    ranked = _distinct_processes(captures, connection)
    for index, capture in enumerate(captures):
        table, chosen = _choose_table(capture, options)
        applied = apply(table, capture.counters, half_weights=options.half_weights)
        rank = index if ranked else None
        parts.append(_select(capture, applied, options, file=index, rank=rank, sql=connection))
        origins.append(
            msgspec.structs.replace(
                capture.provenance,
                counter_table=table.name,
                definitions=applied.definitions,
                missing=applied.missing,
                notices=(*capture.provenance.notices, *chosen, *applied.notices),
            )
        )
    union = " UNION ALL BY NAME ".join(parts)
    numbered = (
        "SELECT * EXCLUDE (file_index, row), row_number() OVER ("
        "PARTITION BY host, rank, process ORDER BY file_index, row) - 1 AS launch "
        f"FROM ({union}) ORDER BY file_index, row"
    )
    extra = list(notices)
    if ranked:
        extra.append(
            Notice(
                "ranks-by-file",
                "the files do not say their rank: ranks are numbered in the order of the files",
            )
        )
    provenance = _merge(origins, extra)
    write_run(connection, numbered, provenance, path)
    return read_provenance(path)


def _choose_table(
    capture: Capture, options: ImportOptions
) -> tuple[CounterTable, tuple[Notice, ...]]:
    if options.counters is not None:
        return table_for(name=options.counters), ()
    device = capture.provenance.devices[0] if capture.provenance.devices else None
    chip = device.chip if device else None
    capability = device.compute_capability if device else None
    if options.chip is not None:
        is_capability = options.chip.replace(".", "").isdigit()
        chip = None if is_capability else options.chip
        capability = options.chip if is_capability else None
    table = table_for(chip=chip, compute_capability=capability)
    if chip is None and capability is None and capture.provenance.join is not None:
        paper = table_for(name=_PAPER_TABLE)
        notice = Notice(
            "chip-assumed",
            "the files do not say which GPU they are from; one metric per file is the way of the "
            f"V100 study, so the counter table '{paper.name}' is assumed. "
            "Use --chip or --counters if it was another GPU",
        )
        return paper, (notice,)
    if table.name == _GENERIC_TABLE:
        named = chip or (f"compute capability {capability}" if capability else None)
        what = f"no counter table knows {named}" if named else "the file does not say which GPU"
        notice = Notice(
            "unknown-chip",
            f"{what}: only counters that mean the same on every chip are used, tensor work stays "
            "unknown. Use --chip (for example --chip 9.0) or --counters",
        )
        return table, (notice,)
    return table, ()


def _select(
    capture: Capture,
    applied: Applied,
    options: ImportOptions,
    *,
    file: int,
    rank: int | None,
    sql: "DuckDBPyConnection",
) -> str:
    present = {
        str(row[0]) for row in sql.execute(f"DESCRIBE {identifier(capture.table)}").fetchall()
    }
    quantities = {column.name for column in QUANTITY_COLUMNS}
    made = dict(applied.columns)
    columns = [f"{file} AS file_index", "row"]
    for column in IDENTITY_COLUMNS:
        name = identifier(column.name)
        if column.name == "launch" or column.name in quantities:
            continue
        value = name if column.name in present else f"NULL::{column.sql_type}"
        if column.name == "rank" and rank is not None:
            value = f"coalesce({value}, {rank})"
        columns.append(f"{value} AS {name}")
    for column in QUANTITY_COLUMNS:
        name = identifier(column.name)
        value = f"({made[column.name]})::{column.sql_type}"
        # What the collector timed itself (an undisturbed trace) wins over the counters.
        if column.name in present:
            value = f"coalesce({name}, {value})"
        columns.append(f"{value} AS {name}")
    columns.extend(
        identifier(COUNTER_PREFIX + counter)
        for counter in capture.counters
        if any(fnmatch.fnmatchcase(counter, pattern) for pattern in options.keep)
    )
    return f"SELECT {', '.join(columns)} FROM {identifier(capture.table)}"


def _distinct_processes(captures: Sequence[Capture], connection: "DuckDBPyConnection") -> bool:
    """Whether several captures without ranks each hold processes of their own."""
    if len(captures) < 2:
        return False
    union = " UNION ALL ".join(
        f"SELECT DISTINCT {literal(str(index))} AS part, host, process, rank "
        f"FROM {identifier(capture.table)}"
        for index, capture in enumerate(captures)
    )
    row = connection.execute(
        "SELECT count(rank), count(DISTINCT (host, process)), count(DISTINCT part), "
        f"count(process) FROM ({union})"
    ).fetchone()
    if row is None:
        return False
    ranks, processes, parts, known = row
    return bool(ranks == 0 and known and processes >= parts)


def _merge(origins: Sequence[Provenance], extra: Sequence[Notice]) -> Provenance:
    """One provenance for a file made of several captures; the first says what all share."""
    first = origins[0]
    notices = [*extra, *(notice for origin in origins for notice in origin.notices)]
    tables = {origin.counter_table for origin in origins}
    if len(tables) > 1:
        notices.append(
            Notice(
                "several-chips",
                "the files come from different chips; definitions are those of the first "
                f"({first.counter_table})",
            )
        )
    lost = [origin.lost_launches for origin in origins]
    return msgspec.structs.replace(
        first,
        sources=tuple(name for origin in origins for name in origin.sources),
        devices=tuple(dict.fromkeys(d for origin in origins for d in origin.devices)),
        notices=tuple(dict.fromkeys(notices)),
        lost_launches=None if None in lost else sum(count or 0 for count in lost),
    )
