"""The launches of one rank in one step as they followed one another, with the gaps between."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mansard import engine
from mansard.analysis.file_statistics import LARGEST
from mansard.location import File
from mansard.units import PREFIXES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Launches drawn on the strip, and gaps named below it.
MOST_DRAWN = 5_000
MOST_GAPS = 20

#: Resolution of the traces.
_NANOSECOND = dict(PREFIXES)["n"]

#: Columns of a run that the strip needs; a file of another tool may lack some.
_NEEDED = {
    "name": "VARCHAR",
    "kind": "VARCHAR",
    "rank": "INTEGER",
    "step": "INTEGER",
    "stream": "BIGINT",
    "launch": "BIGINT",
    "start_s": "DOUBLE",
    "duration_s": "DOUBLE",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which nothing ran on the GPU, and the kernels around it."""

    start_s: float
    duration_s: float
    after: str | None
    before: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The launches of one rank in one step, in time.

    Attributes:
        rank: which rank; None if unknown.
        step: which step; None if unknown.
        span_s: from the first start to the last end.
        busy_s: time in which at least one launch ran.
        launches: how many there are.
        drawn: the longest of them in order of start: (start_s, duration_s, kernel's key, stream).
        gaps: the longest gaps.
    """

    rank: int | None
    step: int | None
    span_s: float
    busy_s: float
    launches: int
    drawn: tuple[tuple[float, float, str, int | None], ...]
    gaps: tuple[Gap, ...]

    def columns(self, places: Mapping[str | None, int]) -> dict[str, Any]:
        """Return plain values; kernels are their place in the analysis (None: not there)."""
        starts = [round(start / _NANOSECOND) for start, *_ in self.drawn]
        return {
            "rank": self.rank,
            "step": self.step,
            "span_s": self.span_s,
            "busy_s": self.busy_s,
            "launches": self.launches,
            # Each from the start before it: small numbers, and many of them.
            "start_ns": [later - start for start, later in itertools.pairwise([0, *starts])],
            "duration_ns": [round(duration / _NANOSECOND) for _, duration, *_ in self.drawn],
            "kernel": [places.get(key) for _, _, key, _ in self.drawn],
            "stream": [stream for *_, stream in self.drawn],
            "gaps": [
                [gap.start_s, gap.duration_s, places.get(gap.after), places.get(gap.before)]
                for gap in self.gaps
            ],
        }


def read_strip(connection: "DuckDBPyConnection", file: File) -> Strip | None:
    """Read the strip of the first rank and step of a file; None if it holds no start times.

    Args:
        connection: with the table ``names`` of the analysis (name, kind, key).
        file: one file of a run.
    """
    source = engine.parquet([file])
    present = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    listed = ", ".join(
        f"TRY_CAST({engine.identifier(name)} AS {kind}) AS {name}"
        if name in present
        else f"CAST(NULL AS {kind}) AS {name}"
        for name, kind in _NEEDED.items()
    )
    connection.execute(
        f"CREATE TEMP TABLE timed AS SELECT n.key, t.* FROM (SELECT {listed} FROM {source}) AS t "
        "JOIN names AS n ON n.name = coalesce(t.name, '') AND n.kind = coalesce(t.kind, 'kernel') "
        f"WHERE start_s >= 0 AND start_s < {LARGEST!r}::DOUBLE "
        f"AND duration_s >= 0 AND duration_s < {LARGEST!r}::DOUBLE"
    )
    first = connection.execute(
        "SELECT rank, step FROM timed ORDER BY rank, step, launch LIMIT 1"
    ).fetchall()
    if not first:
        return None
    rank, step = first[0]
    # The end of whatever ran before: where it lies before a start, nothing ran in between.
    connection.execute(
        "CREATE TEMP TABLE spans AS SELECT *, start_s + duration_s AS end_s, "
        "max(start_s + duration_s) OVER before AS free_s, "
        "arg_max(key, start_s + duration_s) OVER before AS after_key "
        "FROM timed WHERE rank IS NOT DISTINCT FROM $1 AND step IS NOT DISTINCT FROM $2 "
        "WINDOW before AS (ORDER BY start_s, launch ROWS BETWEEN UNBOUNDED PRECEDING "
        "AND 1 PRECEDING)",
        [rank, step],
    )
    count, begin, end, idle = connection.execute(
        "SELECT count(*), min(start_s), max(end_s), "
        "coalesce(sum(start_s - free_s) FILTER (start_s > free_s), 0) FROM spans"
    ).fetchall()[0]
    drawn = connection.execute(
        "SELECT start_s - $1, duration_s, key, stream FROM "
        f"(FROM spans ORDER BY duration_s DESC, start_s LIMIT {MOST_DRAWN}) ORDER BY start_s",
        [begin],
    ).fetchall()
    gaps = connection.execute(
        "SELECT free_s - $1, start_s - free_s, after_key, key FROM spans WHERE start_s > free_s "
        f"ORDER BY start_s - free_s DESC, start_s LIMIT {MOST_GAPS}",
        [begin],
    ).fetchall()
    return Strip(
        rank=rank,
        step=step,
        span_s=end - begin,
        busy_s=end - begin - idle,
        launches=count,
        drawn=tuple(drawn),
        gaps=tuple(Gap(*gap) for gap in gaps),
    )
