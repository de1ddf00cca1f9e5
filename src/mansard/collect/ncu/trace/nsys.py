"""The trace by Nsight Systems: its command line, and the SQLite export that it writes."""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mansard.collect.cupti import activity, decode, records
from mansard.collect.ncu.trace.trace import (
    NvtxRange,
    ProgramTrace,
    TracedLaunch,
    in_regions,
    with_ranges,
)
from mansard.errors import CollectError

_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75
_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPY_TABLES = {
    "CUPTI_ACTIVITY_KIND_MEMCPY": (activity.MEMCPY, records.CopyRecord, "copyKind"),
    "CUPTI_ACTIVITY_KIND_MEMSET": (activity.MEMSET, records.SetRecord, None),
}


def find_nsys(environment: Mapping[str, str]) -> Path | None:
    """The nsys on PATH, or None."""
    found = shutil.which("nsys", path=environment.get("PATH"))
    return Path(found) if found else None


def nsys_command(
    nsys: Path, program: Sequence[str], output: Path, *, from_start: bool
) -> list[str]:
    """The command line that traces a program and exports the trace.

    Args:
        nsys: the program.
        program: what to trace.
        output: without suffix; ``.sqlite`` is what is read.
        from_start: False records only between cudaProfilerStart and cudaProfilerStop.
    """
    region = [] if from_start else ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    return [
        *(str(nsys), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
        *("--cuda-graph-trace=node", "--force-overwrite=true", "--export=sqlite"),
        *region,
        f"--output={str(output).replace('%', '%%')}",
        *program,
    ]


def read_sqlite(path: Path, *, from_start: bool = True) -> ProgramTrace:
    """Read an export of Nsight Systems.

    Raises:
        CollectError: it is no such file, or holds no kernel.
    """
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as file:
            file.row_factory = sqlite3.Row
            launches = list(_launches(file, from_start=from_start))
    except sqlite3.Error as error:
        raise CollectError(f"the trace of Nsight Systems cannot be read: {error}") from error
    if not any(launch.kind == "kernel" for launch in launches):
        raise CollectError("Nsight Systems saw no kernel", slug="no-kernels")
    return ProgramTrace(launches=launches, source="Nsight Systems", from_start=from_start)


def _launches(file: sqlite3.Connection, *, from_start: bool) -> Iterator[TracedLaunch]:
    texts = {row["id"]: row["value"] for row in _rows(file, "StringIds")}
    found: dict[int, list[tuple[int, TracedLaunch]]] = {}
    for row in _rows(file, _KERNELS):
        process = _process(row)
        found.setdefault(process, []).append((row["correlationId"], _kernel(row, texts, process)))
    for table in _COPY_TABLES:
        for row in _rows(file, table):
            process = _process(row)
            copy = _copy(row, table, process)
            found.setdefault(process, []).append((row["correlationId"], copy))
    calls: dict[tuple[int, int], int] = {}
    for row in _rows(file, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        key = (_process(row, "globalTid"), row["correlationId"])
        calls[key] = min(calls.get(key, row["start"]), row["start"])
    ranges = _ranges(file, texts)
    for process in sorted(found):
        ordered = sorted(found[process], key=lambda entry: (entry[0], entry[1].start_ns))
        launches = [launch for _, launch in ordered]
        times = [calls.get((process, correlation)) for correlation, _ in ordered]
        placed = with_ranges(launches, times, ranges.get(process, []))
        # With a capture range, all that was recorded lies inside.
        yield from placed if from_start else in_regions(placed, times, [(0, True)])


def _kernel(row: sqlite3.Row, texts: Mapping[int, str], process: int) -> TracedLaunch:
    # Its names are spelled as ncu spells them, so they can stand in for the symbol.
    return TracedLaunch(
        process=process,
        device=row["deviceId"],
        stream=row["streamId"],
        kind="kernel",
        symbol=texts.get(_value(row, "mangledName"), ""),
        name=texts.get(row["demangledName"], ""),
        start_ns=row["start"],
        end_ns=row["end"],
        shape=tuple(row[field] for field in _SHAPE),
        shared_bytes=_value(row, "dynamicSharedMemory"),
        in_graph=bool(_value(row, "graphNodeId")),
        call=row["correlationId"],
    )


def _copy(row: sqlite3.Row, table: str, process: int) -> TracedLaunch:
    """A copy, named as everywhere else in Mansard."""
    kind, layout, field = _COPY_TABLES[table]
    record = layout(kind=kind)
    if field is not None:
        setattr(record, field, row[field])
    named = decode.launches([record])[0]
    return TracedLaunch(
        process=process,
        device=row["deviceId"],
        stream=row["streamId"],
        kind=named.kind,
        symbol="",
        name=named.name,
        start_ns=row["start"],
        end_ns=row["end"],
        call=row["correlationId"],
        bytes_moved=row["bytes"],
    )


def _ranges(file: sqlite3.Connection, texts: Mapping[int, str]) -> dict[int, list[NvtxRange]]:
    rows = list(_rows(file, "NVTX_EVENTS"))
    last = max((row["end"] or row["start"] for row in rows), default=0)
    domains = {
        (_process(row, "globalTid"), row["domainId"]): _text(row, texts)
        for row in rows
        if row["eventType"] == _DOMAIN
    }
    found: dict[int, list[NvtxRange]] = {}
    for row in rows:
        name = _text(row, texts)
        if row["eventType"] not in (_PUSH_POP, _START_END) or not name:
            continue
        process = _process(row, "globalTid")
        domain = domains.get((process, _value(row, "domainId")), "")
        end = last if row["end"] is None else row["end"]
        found.setdefault(process, []).append(NvtxRange(name, domain, row["start"], end))
    return found


def _rows(file: sqlite3.Connection, table: str) -> Iterator[sqlite3.Row]:
    """All rows of a table; a table that the export lacks has none."""
    known = file.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    if known:
        yield from file.execute(f'SELECT * FROM "{table}"')


def _text(row: sqlite3.Row, texts: Mapping[int, str]) -> str:
    direct = _value(row, "text")
    return str(direct) if direct else texts.get(_value(row, "textId"), "")


def _value(row: sqlite3.Row, field: str) -> Any:
    return row[field] if field in row.keys() else None  # noqa: SIM118  (a row is no mapping)


def _process(row: sqlite3.Row, field: str = "globalPid") -> int:
    """Process id, in bits 24 to 47 of nsys' global ids."""
    return (_value(row, field) or 0) >> 24 & 0xFFFFFF
