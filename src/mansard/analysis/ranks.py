"""The ranks of a run side by side: spread, stragglers, nodes, imbalance, collectives.

A slow rank makes all others wait for it inside their collectives, so ranks are compared by their
compute time: the time of everything but collectives. All but the collectives comes from the cube
that the analysis has scanned already.
"""

import math
import statistics
from typing import TYPE_CHECKING

from mansard.analysis import collectives, robust
from mansard.analysis.cube import Plan
from mansard.analysis.ranks_stragglers import stragglers
from mansard.analysis.timeline import exposed
from mansard.model.analysis import quotient
from mansard.model.fleet import Fleet, Imbalance, Node, RankTime, Straggler

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COMPUTING = "family <> 'collective'"


def fleet(connection: "DuckDBPyConnection", plan: Plan, *, traced: bool = False) -> Fleet | None:
    """Compare the ranks of a run.

    Args:
        connection: with the tables ``cell`` and ``names`` of the cube.
        plan: of the cube.
        traced: whether ``analysis.timeline`` has left its tables ``passed`` and ``step_size``.

    Returns:
        The comparison, or None where fewer than two ranks have times.
    """
    rows = connection.execute(
        "SELECT rank, sum(launches)::BIGINT, coalesce(sum(duration_s), 0), "
        f"coalesce(sum(duration_s) FILTER ({_COMPUTING}), 0) FROM cell WHERE rank IS NOT NULL "
        "GROUP BY rank HAVING count(duration_s) > 0 ORDER BY rank"
    ).fetchall()
    if len(rows) < 2:
        return None
    compute = {rank: compute_s for rank, _, _, compute_s in rows}
    among = robust.spread(list(compute.values()))
    hosts = _hosts(connection, plan)
    collectives.match(connection, plan.launches, plan.scan)
    called = collectives.collectives(connection)
    last = collectives.last_shares(connection) if called else {}
    alone, steps = _exposed(connection) if called and traced else ({}, None)
    matched = any(collective.calls for collective in called)
    times = tuple(
        RankTime(
            rank=rank,
            host=hosts.get(rank),
            launches=launches,
            duration_s=duration_s,
            compute_s=compute_s,
            collective_s=max(0.0, duration_s - compute_s),
            ratio=quotient(compute_s, among.median),
            score=robust.score(compute_s, among),
            exposed_s=alone.get(rank),
            last_share=last.get(rank, 0.0) if matched else None,
        )
        for rank, launches, duration_s, compute_s in rows
    )
    slow = [time for time in times if robust.stands_out(time.compute_s, among)]
    found = stragglers(connection, plan, slow, among)
    unjudged = None
    if among.count < robust.LEAST_VALUES:
        unjudged = (
            f"{among.count} ranks are too few to tell a slow one from the usual spread "
            f"(it takes {robust.LEAST_VALUES})"
        )
    return Fleet(
        compute=among,
        ranks=times,
        stragglers=found,
        nodes=_nodes(times, found),
        phases=_imbalance(connection),
        collectives=called,
        exposed_s=math.fsum(alone.values()) if alone else None,
        unjudged=unjudged,
        gaps=tuple(_gaps(plan, hosts=hosts, called=called, exposed=alone, steps=steps)),
    )


def _hosts(connection: "DuckDBPyConnection", plan: Plan) -> dict[int, str]:
    """Host by rank, as far as it was recorded."""
    plan.scan(
        connection,
        "host",
        f"SELECT rank, any_value(host) AS host FROM ({plan.launches.sql}) AS launched "
        "WHERE rank IS NOT NULL GROUP BY rank",
    )
    return dict(connection.execute("SELECT rank, host FROM host WHERE host IS NOT NULL").fetchall())


def _exposed(connection: "DuckDBPyConnection") -> tuple[dict[int, float], int | None]:
    """Time by rank in which nothing but collectives ran; of how many steps if not of all."""
    found = {rank: time_s for rank, time_s in exposed(connection).items() if rank is not None}
    seen, every = connection.execute(
        "SELECT (SELECT count(DISTINCT coalesce(step, -1)) FROM passed), "
        "(SELECT count(*) FROM step_size)"
    ).fetchall()[0]
    return found, seen if seen < every else None


def _nodes(times: tuple[RankTime, ...], found: tuple[Straggler, ...]) -> tuple[Node, ...]:
    by_host: dict[str, list[RankTime]] = {}
    for time in times:
        if time.host is not None:
            by_host.setdefault(time.host, []).append(time)
    if len(by_host) < 2:
        return ()
    medians = {
        host: statistics.median(time.compute_s for time in ranks) for host, ranks in by_host.items()
    }
    among = robust.spread(list(medians.values()))
    nodes = [
        Node(
            host=host,
            ranks=len(by_host[host]),
            compute_s=compute_s,
            ratio=quotient(compute_s, among.median),
            score=robust.score(compute_s, among),
            stragglers=sum(straggler.host == host for straggler in found),
            slow=robust.stands_out(compute_s, among),
        )
        for host, compute_s in medians.items()
    ]
    return tuple(sorted(nodes, key=lambda node: (-node.compute_s, node.host)))


def _imbalance(connection: "DuckDBPyConnection") -> tuple[Imbalance, ...]:
    """Percent imbalance of each phase: (most / mean) - 1.

    DeRose, Homer, Johnson, "Detecting application load imbalance on high end massively parallel
    systems", Euro-Par 2007.
    """
    rows = connection.execute(
        "SELECT phase, count(*)::BIGINT, avg(compute_s), max(compute_s), arg_max(rank, compute_s) "
        "FROM (SELECT phase, rank, min(first_launch) AS first, sum(duration_s) AS compute_s "
        f"FROM cell WHERE rank IS NOT NULL AND {_COMPUTING} GROUP BY phase, rank) "
        "WHERE compute_s IS NOT NULL GROUP BY phase HAVING count(*) > 1 AND avg(compute_s) > 0 "
        "ORDER BY min(first), phase"
    ).fetchall()
    return tuple(
        Imbalance(
            phase=phase,
            ranks=ranks,
            mean_s=mean_s,
            most_s=most_s,
            slowest=slowest,
            share=most_s / mean_s - 1,
        )
        for phase, ranks, mean_s, most_s, slowest in rows
    )


def _gaps(
    plan: Plan,
    *,
    hosts: dict[int, str],
    called: tuple[object, ...],
    exposed: dict[int, float],
    steps: int | None,
) -> list[str]:
    """What could not be said, and what it needs."""
    said = []
    if not hosts:
        said.append("no nodes: the column host is empty")
    if not called:
        said.append("no collectives: no kernel is known as one")
    elif not exposed:
        said.append("no exposed communication: it needs start_s and duration_s of every launch")
    elif steps is not None:
        first = "step" if steps == 1 else f"{steps} steps"
        said.append(f"exposed communication is of the first {first} only")
    if not plan.resources:
        said.append("no slow level of a straggler: it needs a machine")
    return said
