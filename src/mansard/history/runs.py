"""The runs of a folder in order of time, each reduced to what a trend needs."""

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mansard import engine
from mansard.analysis.launches import launches
from mansard.analysis.whole_files import on_whole_files
from mansard.errors import FormatError, InputError, MansardError
from mansard.model.notice import Notice
from mansard.model.run import Run
from mansard.store.run_file import open_run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Keys in ``Provenance.extra``: the commit, and whether files were changed since.
COMMIT, DIRTY = "commit", "commit_dirty"

_SUFFIX = ".parquet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One run of the history. Times are of one step on one rank, the median over all of them.

    Attributes:
        label: name of its file or folder.
        created: when it was written, ISO 8601.
        commit: what was run, as far as the provenance says.
        dirty: whether it was run with changes that are in no commit; None if unknown.
        gpus: names of its GPUs.
        steps: how many (rank, step) pairs the medians are of.
        total_s: time of all launches.
        phases_s: time by phase.
        kernels_s: time by kernel name.
    """

    label: str
    created: str
    commit: str | None
    dirty: bool | None
    gpus: tuple[str, ...]
    steps: int
    total_s: float
    phases_s: dict[str, float]
    kernels_s: dict[str, float]


def read_nights(folder: Path) -> tuple[tuple[Night, ...], tuple[Notice, ...]]:
    """Read a folder of runs.

    Args:
        folder: with one Parquet file a run, or one folder of rank files a run.

    Returns:
        The runs by time of writing, then name; and what could not be read.

    Raises:
        InputError: it is no folder, or holds no run with times.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder that holds the runs")
    nights: list[Night] = []
    notices: list[Notice] = []
    for path in _sources(folder):
        try:
            run, night = on_whole_files(open_run(path), lambda whole: (whole, _night(whole)))
        except MansardError as error:
            notices.append(Notice("unreadable-file", f"left out: {error}", partial=True))
            continue
        notices += run.notices
        if night is None:
            words = f"left out: {path} has no launch with a duration"
            notices.append(Notice("time-not-collected", words))
        else:
            nights.append(night)
    if not nights:
        reason = f"; the first: {notices[0].message}" if notices else ""
        raise InputError(f"{folder} holds no run with times{reason}")
    # Names sort as the folder was listed, so that equal times keep that order.
    return tuple(sorted(nights, key=lambda night: night.created)), tuple(notices)


def _sources(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            if any(entry.glob(f"*{_SUFFIX}")):
                yield entry
        elif entry.suffix == _SUFFIX:
            yield entry


def _night(run: Run) -> Night | None:
    # A connection for each run: damage may break the one that meets it.
    words = f"the launches of {run.label} are damaged"
    with engine.connect() as connection, engine.translated(FormatError, words):
        return _reduced(connection, run)


def _reduced(connection: "DuckDBPyConnection", run: Run) -> Night | None:
    found = launches(connection, run)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE part AS SELECT rank, step, phase, name, "
        f"sum(duration_s) AS duration_s FROM ({found.sql}) WHERE duration_s IS NOT NULL "
        "GROUP BY ALL"
    )
    totals = connection.execute("SELECT sum(duration_s) FROM part GROUP BY rank, step").fetchall()
    if not totals:
        return None
    return Night(
        label=run.label,
        created=min(origin.created for origin in run.provenance),
        commit=next((o.extra[COMMIT] for o in run.provenance if o.extra.get(COMMIT)), None),
        dirty=_dirty([origin.extra[DIRTY] for origin in run.provenance if DIRTY in origin.extra]),
        gpus=tuple(
            dict.fromkeys(d.name or "" for origin in run.provenance for d in origin.devices)
        ),
        steps=len(totals),
        total_s=statistics.median(total for (total,) in totals),
        phases_s=_medians(connection, "phase"),
        kernels_s=_medians(connection, "name"),
    )


def _dirty(stated: Sequence[str]) -> bool | None:
    return "yes" in stated if stated else None


def _medians(connection: "DuckDBPyConnection", key: str) -> dict[str, float]:
    """Median over the steps that have it of the time by a key; launches without one are none."""
    return dict(
        connection.execute(
            f"SELECT key, median(duration_s) FROM (SELECT {key} AS key, sum(duration_s) AS "
            f"duration_s FROM part WHERE {key} IS NOT NULL GROUP BY {key}, rank, step) "
            "GROUP BY key"
        ).fetchall()
    )
