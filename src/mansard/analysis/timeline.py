"""How steps passed on the GPU: when it was busy, when it idled, when it only communicated.

From start times and durations of launches, which only a trace has. Launches may overlap (several
streams), so busy time is that of their union.
"""

import math
from typing import TYPE_CHECKING

from mansard.analysis.file_statistics import LARGEST
from mansard.analysis.launches import Launches
from mansard.analysis.parts import Part
from mansard.analysis.sql_engine import Scan, embedded
from mansard.model.analysis import Timeline
from mansard.units import PREFIXES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Steps are looked at until they hold so many launches: sorting more takes long and says little.
MOST_LAUNCHES = 200_000

#: Traces count nanoseconds; less between two launches is rounding.
_RESOLUTION_S = dict(PREFIXES)["n"]


def timeline(
    connection: "DuckDBPyConnection",
    launches: Launches,
    scan: Scan = embedded,
    *,
    most: int = MOST_LAUNCHES,
) -> Timeline | None:
    """Look at the first steps of a run.

    Args:
        connection: with the table ``names`` of the cube.
        launches: the query.
        scan: what runs it.
        most: launches after which no further step is looked at (but one step always is).

    Returns:
        The times, or None where a launch in these steps has no start or no duration.
    """
    if not launches.has_start:
        return None
    scan(
        connection,
        "step_size",
        "SELECT step, CAST(count(*) AS BIGINT) AS n, "
        "CAST(count(start_s + duration_s) AS BIGINT) AS timed "
        f"FROM ({launches.sql}) AS launched GROUP BY step",
    )
    chosen = connection.execute(
        "SELECT step, n, timed FROM (SELECT *, sum(n) OVER (ORDER BY step) AS so_far "
        f"FROM step_size) WHERE so_far <= greatest({int(most)}, n) ORDER BY step"
    ).fetchall()
    if not chosen or any(n != timed for _, n, timed in chosen):
        return None
    last = chosen[-1][0]
    where = "true" if last is None else f"step <= {int(last)}"
    scan(connection, "passed", _passed(launches, where), uses=("names",))
    steps, elapsed_s, busy_s, gaps, longest_s, place = connection.execute(
        "SELECT CAST(count(*) AS BIGINT), sum(elapsed_s), sum(busy_s), "
        "CAST(sum(gaps) AS BIGINT), max(longest_s), "
        "arg_max((rank, device, step, longest_end_s), longest_s) FROM passed"
    ).fetchall()[0]
    if not steps:
        return None
    return Timeline(
        steps=steps,
        elapsed_s=elapsed_s,
        busy_s=busy_s,
        gaps=gaps,
        longest_gap_s=longest_s or 0.0,
        longest_gap_before=_started(connection, launches, scan, place),
        collective_only_s=math.fsum(exposed(connection).values()),
    )


def host_steps_s(part: Part) -> tuple[float, ...]:
    """How long a step takes when nothing is recorded, by file; empty unless all say.

    Of a phase nobody knows; of a rank, where its files say that they are of it.
    """
    if part.phase is not None:
        return ()
    origins = part.run.provenance
    if part.rank is not None:
        origins = tuple(each for each in origins if each.extra.get("rank") == str(part.rank))
    stated = [_seconds(origin.extra.get("step_host_s", "")) for origin in origins]
    known = tuple(value for value in stated if value is not None)
    return known if len(known) == len(stated) else ()


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < LARGEST else None


def exposed(connection: "DuckDBPyConnection") -> dict[int | None, float]:
    """Exposed communication: time by rank in which nothing but collectives ran, in s.

    Args:
        connection: with the table ``passed`` that ``timeline`` leaves.
    """
    rows = connection.execute(
        # Per GPU and step: what rounding leaves below zero in one must not be taken from another.
        "SELECT rank, sum(greatest(0e0, busy_s - computing_s)) FROM passed GROUP BY rank"
    ).fetchall()
    return dict(rows)


def _passed(launches: Launches, where: str) -> str:
    """One row for each GPU and step: its times, its gaps, and the time of the computing alone."""
    before = (
        "OVER (PARTITION BY rank, device, step ORDER BY start_s "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    timed = (
        "SELECT rank, device, step, start_s, start_s + duration_s AS end_s, "
        "name NOT IN (SELECT name FROM names WHERE family = 'collective') AS computing "
        f"FROM ({launches.sql}) AS launched WHERE {where}"
    )
    # When all launches, or all computing ones, that started before had ended.
    swept = (
        f"SELECT *, max(end_s) {before} AS free_s, "
        f"max(CASE WHEN computing THEN end_s END) {before} AS computed_s FROM ({timed}) AS timed"
    )
    gap = f"CASE WHEN start_s - free_s > {_RESOLUTION_S!r} THEN start_s - free_s END"
    busy = "greatest(0e0, end_s - greatest(start_s, coalesce(free_s, start_s)))"
    computed = "greatest(0e0, end_s - greatest(start_s, coalesce(computed_s, start_s)))"
    return (
        "SELECT rank, device, step, max(end_s) - min(start_s) AS elapsed_s, "
        f"sum({busy}) AS busy_s, CAST(count({gap}) AS BIGINT) AS gaps, "
        f"max({gap}) AS longest_s, arg_max(start_s, {gap}) AS longest_end_s, "
        f"coalesce(sum(CASE WHEN computing THEN {computed} END), 0e0) AS computing_s "
        f"FROM ({swept}) AS swept GROUP BY rank, device, step"
    )


def _started(
    connection: "DuckDBPyConnection",
    launches: Launches,
    scan: Scan,
    place: tuple[int | None, int | None, int | None, float] | None,
) -> str | None:
    """Key of the launch that started at a place and time."""
    if place is None:
        return None
    *which, start_s = place
    same = [
        f"{name} IS NULL" if value is None else f"{name} = {int(value)}"
        for name, value in zip(("rank", "device", "step"), which, strict=True)
    ]
    scan(
        connection,
        "started",
        f"SELECT name, kind FROM ({launches.sql}) AS launched "
        f"WHERE {' AND '.join(same)} AND start_s = CAST({float(start_s)!r} AS DOUBLE) LIMIT 1",
    )
    found = connection.execute("SELECT key FROM started JOIN names USING (name, kind)").fetchone()
    return str(found[0]) if found else None
