"""A run whose files are partly damaged inside: which ones, found only when an engine failed.

Opening a run reads the footers alone, so damage of the launches shows when they are scanned. A
sound run costs nothing here. After a failure every footer is read once more, and then ever smaller
halves of the files are read whole, by the engine that failed.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mansard import engine
from mansard.analysis.file_statistics import statistics, within
from mansard.analysis.launches import misplaced_columns
from mansard.analysis.sql_engine import Scan, embedded
from mansard.errors import FormatError, MansardError, UsageError
from mansard.location import File
from mansard.model.notice import Notice
from mansard.model.run import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Files may be damaged while we look, or vanish; so often we look again.
_TRIES = 3

_Result = TypeVar("_Result")


def on_whole_files(run: Run, do: Callable[[Run], _Result], *, scan: Scan = embedded) -> _Result:
    """Do something with the launches of a run; where a file stops it, without that file.

    Args:
        run: one or more files.
        do: reads the launches; it may be called again with fewer files.
        scan: the engine that it uses.

    Returns:
        What ``do`` returned. The run that it got last names what was left out, in its notices.

    Raises:
        MansardError: what ``do`` raised, where leaving files out does not help.
    """
    for _ in range(_TRIES):
        try:
            return do(run)
        except UsageError:
            raise
        except MansardError:
            rest = without_damaged(run, scan=scan)
            if not rest.files or len(rest.files) == len(run.files):
                raise
            run = rest
    return do(run)


def without_damaged(run: Run, *, scan: Scan = embedded) -> Run:
    """Read every launch of a run, and leave out the files of which some cannot be read.

    Args:
        run: what to read; of a single file there is nothing to leave out.
        scan: the engine that reads.

    Returns:
        The rest, with a notice (``unreadable-file``, partial) for each file left out.
    """
    places = range(len(run.files))
    if len(places) < 2:
        return run
    faults = _bad_footers(run)
    faults |= _unreadable(run, [place for place in places if place not in faults], scan)
    rest = _only(run, [place for place in places if place not in faults])
    told = [
        Notice("unreadable-file", f"left out: {run.files[place]} {faults[place]}", partial=True)
        for place in sorted(faults)
    ]
    return dataclasses.replace(rest, notices=(*run.notices, *told))


def _only(run: Run, places: Sequence[int]) -> Run:
    return dataclasses.replace(
        run,
        files=tuple(run.files[place] for place in places),
        provenance=tuple(run.provenance[place] for place in places),
    )


def _bad_footers(run: Run) -> dict[int, str]:
    """By place: files that are gone, or whose columns are no columns of a run."""
    found = {}
    with engine.connect(threads=1) as connection:
        engine.reach(connection, run.files)
        for place, file in enumerate(run.files):
            fault = _bad_footer(connection, file)
            if fault:
                found[place] = fault
    return found


def _bad_footer(connection: "DuckDBPyConnection", file: File) -> str | None:
    try:
        with engine.translated(FormatError, "cannot be read"):
            wrong = misplaced_columns(connection, file)
    except FormatError as error:
        return str(error)
    return f"is no run: {wrong}" if wrong else None


def _unreadable(run: Run, places: Sequence[int], scan: Scan) -> dict[int, str]:
    """By place: files of which the engine cannot read every value."""
    if not places:
        return {}
    fault = _fault(_only(run, places), scan)
    if fault is None:
        return {}
    if len(places) == 1:
        return {places[0]: fault}
    half = len(places) // 2
    return _unreadable(run, places[:half], scan) | _unreadable(run, places[half:], scan)


def _fault(run: Run, scan: Scan) -> str | None:
    """Why the engine cannot read the files, or None."""
    source = engine.parquet(run.files)
    # A connection of its own: some damage breaks the one that met it.
    try:
        with engine.connect() as connection, engine.translated(FormatError, "is damaged"):
            engine.reach(connection, run.files)
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            columns = ", ".join(engine.identifier(name) for name, *_ in described)
            limits = statistics(connection, run.files).limits
            asked = [f"max(hash({columns}))"]
            asked += [
                f"{end}({engine.identifier(name)})" for name in limits for end in ("min", "max")
            ]
            listed = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(asked))
            scan.on(run)(connection, "looked", f"SELECT {listed} FROM {source}")
            _, *found = connection.execute("SELECT * FROM looked").fetchall()[0]
    except MansardError as error:
        return str(error)
    for name, least, most in zip(limits, found[::2], found[1::2], strict=True):
        if least is not None and not within(limits[name], least, most):
            low, high = limits[name]
            return (
                f"is damaged: {name} is from {least:g} to {most:g}, and was from {low:g} to "
                f"{high:g} when it was written"
            )
    return None
