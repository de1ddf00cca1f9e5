"""Why a rank is slow: more work, a lower clock, or a resource that gives less than elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mansard.analysis.cube import Plan
from mansard.analysis.floors import LAUNCH
from mansard.model.analysis import quotient
from mansard.model.fleet import RankTime, SlowKernel, Spread, Straggler

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Kernels shown for a straggler.
MOST_KERNELS = 5

#: A cause must explain this share of the slowdown; a resource must hold that share of the excess.
_EXPLAINS = 0.5

#: Counts that are more where a rank has more work to do.
_WORK = ("launches", "flop", "bytes_dram")


def stragglers(
    connection: "DuckDBPyConnection", plan: Plan, slow: Sequence[RankTime], among: Spread
) -> tuple[Straggler, ...]:
    """Explain the slow ranks, largest excess first.

    Args:
        connection: with the table ``cell`` of the cube.
        plan: of the cube.
        slow: the ranks to explain.
        among: spread of the compute times of all ranks.
    """
    if not slow:
        return ()
    _tables(connection, plan, [time.rank for time in slow])
    counts = _counts(connection)
    kernels = _kernels(connection)
    by_bound = _by_bound(connection)
    found = []
    for time in slow:
        excess_s = time.compute_s - among.median
        resources = by_bound.get(time.rank, {})
        found.append(
            Straggler(
                rank=time.rank,
                host=time.host,
                excess_s=excess_s,
                ratio=time.compute_s / among.median,
                score=time.score or 0.0,
                cause=_cause(time.compute_s / among.median, counts[time.rank], resources),
                counts=counts[time.rank],
                by_bound={
                    name: needed_s[0] / needed_s[1]
                    for name, needed_s in resources.items()
                    if needed_s[1]
                },
                kernels=tuple(kernels.get(time.rank, ())),
            )
        )
    return tuple(sorted(found, key=lambda straggler: (-straggler.excess_s, straggler.rank)))


def _tables(connection: "DuckDBPyConnection", plan: Plan, ranks: list[int]) -> None:
    """Sums by kernel and rank, and what is usual for a kernel."""
    work = [name for name in ("flop", "bytes_dram") if name == "flop" or name in plan.launches.live]
    floors = [f"floor_{resource.name}" for resource in plan.resources]
    summed = ", ".join(f"sum({name}) AS {name}" for name in [*work, *floors])
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE by_rank AS SELECT rank, key, sum(launches) AS launches, "
        "sum(timed) AS timed, sum(duration_s) AS duration_s, sum(clocks_hz) AS clocks_hz, "
        f"sum(clocked) AS clocked, {summed} FROM cell "
        "WHERE rank IS NOT NULL AND family <> 'collective' GROUP BY rank, key"
    )
    # The launch cost is no resource that a GPU could have less of.
    largest = [f"floor_{r.name}" for r in plan.resources if r.name != LAUNCH and r.counted]
    bound = "NULL::VARCHAR"
    if largest:
        total = [f"coalesce(sum({name}), 0)" for name in largest]
        most = f"greatest({', '.join(total)})"
        cases = " ".join(
            f"WHEN {value} = {most} THEN '{name.removeprefix('floor_')}'"
            for name, value in zip(largest, total, strict=True)
        )
        bound = f"CASE WHEN {most} = 0 THEN NULL {cases} END"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE usual AS SELECT key, count(*) AS ranks, "
        "median(duration_s) AS duration_s, median(duration_s / timed) AS mean_s, "
        f"{bound} AS bound FROM by_rank GROUP BY key"
    )
    # A kernel that most ranks do not run is usually not run: its usual time is none.
    connection.execute(
        "UPDATE usual SET duration_s = 0 WHERE ranks * 2 <= (SELECT count(DISTINCT rank) "
        "FROM by_rank)"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE slow AS SELECT r.*, u.duration_s AS usual_s, u.mean_s, "
        "u.bound FROM by_rank r JOIN usual u USING (key) WHERE rank IN "
        f"({', '.join(str(int(rank)) for rank in ranks)})"
    )


def _counts(connection: "DuckDBPyConnection") -> dict[int, dict[str, float]]:
    """What a rank did, each as a ratio to the median of the ranks, as far as it is known."""
    columns = [row[0] for row in connection.execute("DESCRIBE by_rank").fetchall()]
    wanted = {"launches": "sum(launches)", "sm_clock_hz": "sum(clocks_hz) / sum(clocked)"}
    wanted |= {name: f"sum({name})" for name in ("flop", "bytes_dram") if name in columns}
    listed = ", ".join(f"{sql} AS {name}" for name, sql in wanted.items())
    ratios = ", ".join(f"{name} / usual_{name}" for name in wanted)
    usual = ", ".join(f"median({name}) AS usual_{name}" for name in wanted)
    rows = connection.execute(
        f"WITH done AS (SELECT rank, {listed} FROM by_rank GROUP BY rank) "
        f"SELECT rank, {ratios} FROM done, (SELECT {usual} FROM done) "
        "WHERE rank IN (SELECT rank FROM slow)"
    ).fetchall()
    return {
        rank: {
            name: float(ratio)
            for name, ratio in zip(wanted, values, strict=True)
            if ratio is not None and ratio == ratio and abs(ratio) != float("inf")  # noqa: PLR0124
        }
        for rank, *values in rows
    }


def _kernels(connection: "DuckDBPyConnection") -> dict[int, list[SlowKernel]]:
    rows = connection.execute(
        "SELECT rank, key, duration_s - usual_s AS excess_s, duration_s / timed / mean_s, bound "
        "FROM slow WHERE duration_s > usual_s QUALIFY row_number() OVER "
        f"(PARTITION BY rank ORDER BY excess_s DESC, key) <= {MOST_KERNELS} "
        "ORDER BY rank, excess_s DESC, key"
    ).fetchall()
    found: dict[int, list[SlowKernel]] = {}
    for rank, key, excess_s, ratio, bound in rows:
        found.setdefault(rank, []).append(
            SlowKernel(key=key, excess_s=excess_s, ratio=ratio, bound=bound)
        )
    return found


def _by_bound(connection: "DuckDBPyConnection") -> dict[int, dict[str, tuple[float, float]]]:
    """By rank and resource: time of the kernels bound by it, and what others need for them."""
    rows = connection.execute(
        "SELECT rank, bound, sum(duration_s), sum(timed * mean_s) FROM slow "
        "WHERE bound IS NOT NULL GROUP BY rank, bound ORDER BY rank, bound"
    ).fetchall()
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for rank, bound, duration_s, usual_s in rows:
        found.setdefault(rank, {})[bound] = (duration_s, usual_s)
    return found


def _cause(
    ratio: float, counts: dict[str, float], resources: dict[str, tuple[float, float]]
) -> str:
    """The plainest explanation that covers half of the slowdown."""
    slowdown = ratio - 1
    if max(counts.get(name, 1.0) for name in _WORK) - 1 >= _EXPLAINS * slowdown:
        return "more work"
    clock = quotient(1.0, counts.get("sm_clock_hz"))
    if clock is not None and clock - 1 >= _EXPLAINS * slowdown:
        return "lower clock"
    excess = {name: max(0.0, took - needs) for name, (took, needs) in resources.items()}
    total = sum(excess.values())
    needs_s = sum(needs for _, needs in resources.values())
    for name, value in excess.items():
        # One resource has most of the excess, and more of it than of the time.
        usual_share = resources[name][1] / needs_s if needs_s else 1.0
        if total and value / total >= max(_EXPLAINS, usual_share + (1 - usual_share) / 2):
            return f"slower at {name}"
    return "slower"
