"""Collectives over the ranks of a run: what moved the data, and what only waited.

The n-th launch of a collective kernel on one rank, in its step, is matched with the n-th on every
other. A rank that comes early waits inside the kernel until the last one is there; the last one
hardly waits. So the least time over the ranks is what the data take, and the rest is waiting.
Communicators are not recorded: a kernel that several groups of ranks use at the same time is
matched over all of them, which is right where their messages are alike.
"""

from typing import TYPE_CHECKING

from mansard.analysis.launches import Launches
from mansard.analysis.sql_engine import Scan
from mansard.model.fleet import Collective

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: SQL: the names of the kernels that are collectives.
COLLECTIVE = "SELECT name FROM names WHERE family = 'collective'"


def match(connection: "DuckDBPyConnection", launches: Launches, scan: Scan) -> None:
    """Leave one row a call in the table ``call``.

    Args:
        connection: with the table ``names`` of the cube.
        launches: the query.
        scan: what runs it.
    """
    numbered = (
        "SELECT name, kind, rank, step, duration_s, row_number() OVER (PARTITION BY rank, device, "
        f"step, name, kind ORDER BY launch, start_s) AS n FROM ({launches.sql}) AS launched "
        f"WHERE name IN ({COLLECTIVE}) AND rank IS NOT NULL"
    )
    scan(
        connection,
        "call",
        "SELECT name, kind, step, n, CAST(count(*) AS BIGINT) AS ranks, "
        "CAST(count(duration_s) AS BIGINT) AS timed, "
        "min(duration_s) AS least_s, max(duration_s) AS most_s, sum(duration_s) AS total_s, "
        f"arg_min(rank, duration_s) AS last_rank FROM ({numbered}) AS numbered "
        "GROUP BY name, kind, step, n",
        uses=("names",),
    )


def collectives(connection: "DuckDBPyConnection") -> tuple[Collective, ...]:
    """Sum up the table ``call``, longest first."""
    rows = connection.execute(
        # A call is whole where as many ranks made it as ever made a call of that kernel.
        f"WITH judged AS ({_JUDGED}) "
        "SELECT key, count_if(whole)::BIGINT, max(everyone)::BIGINT, "
        "coalesce(sum(least_s * ranks) FILTER (whole), 0), "
        "coalesce(sum(total_s - least_s * ranks) FILTER (whole), 0), "
        "coalesce(sum(total_s) FILTER (NOT whole), 0) FROM judged GROUP BY key "
        "ORDER BY sum(total_s) DESC NULLS LAST, key"
    ).fetchall()
    return tuple(
        Collective(
            key=key,
            calls=calls,
            ranks=ranks,
            moving_s=moving_s,
            waiting_s=max(0.0, waiting_s),
            unmatched_s=unmatched_s,
        )
        for key, calls, ranks, moving_s, waiting_s, unmatched_s in rows
    )


_JUDGED = (
    "SELECT *, ranks = everyone AND timed = ranks AND ranks > 1 AS whole FROM "
    "(SELECT *, max(ranks) OVER (PARTITION BY name, kind) AS everyone "
    "FROM call JOIN names USING (name, kind))"
)


def last_shares(connection: "DuckDBPyConnection") -> dict[int, float]:
    """By rank, the share of the whole calls that it spent the least time in."""
    rows = connection.execute(
        # Where all ranks spent the same time nobody was last.
        f"WITH judged AS ({_JUDGED}) SELECT last_rank, count(*) / (SELECT count(*) FROM judged "
        "WHERE whole) FROM judged WHERE whole AND most_s > least_s GROUP BY last_rank"
    ).fetchall()
    return dict(rows)
