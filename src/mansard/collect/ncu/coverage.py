"""How much of a joined run was measured, how well repeats agree, and what must be said of it."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mansard.collect.ncu.join import INFERRED, JOINED, MEASURED, TRACED
from mansard.collect.ncu.vocabulary import is_collective
from mansard.counters.apply import Applied
from mansard.engine import literal
from mansard.model.columns import WORK_COLUMNS
from mansard.model.notice import Notice
from mansard.units import format_share

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Launches whose time is further from that of their sample may do other work: a factor.
_UNLIKE = 1.25
#: Shares of the time of all kernels below this are not worth a notice.
_NOTABLE = 0.01
_LEVELS = ("bytes_l1", "bytes_l2", "bytes_dram")
_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far repeats of a quantity are from each other.

    Attributes:
        share: uncertainty of the total that comes from launches that were not measured, as a
            part of the total; None where the total is 0 or unknown.
        checked: part of the inferred amount whose group was measured more than once.
    """

    share: float | None
    checked: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What became of the launches of a traced run.

    Attributes:
        launches: kernels in the trace.
        configurations: distinct kernels with their grid and block.
        groups: kernels of one configuration and of nearly one time.
        measured: launches that were counted.
        inferred: launches with the counters of another.
        collectives: launches without counters that wait for other ranks.
        uncounted: other launches without counters, by name, most time first.
        uncounted_share: their part of the time of all kernels.
        unlike: inferred launches whose time is far from that of the launch they are taken from.
        unlike_share: their part of the time of all kernels.
        time_apart: by how much times of inferred launches differ from those of the launches they
            are taken from, as a part of the time of all kernels.
        only_counted: counted launches that have no place in the trace.
        spreads: by quantity: ``flop`` and the levels.
    """

    launches: int
    configurations: int
    groups: int
    measured: int
    inferred: int
    collectives: int
    uncounted: Mapping[str, int]
    uncounted_share: float
    unlike: int
    unlike_share: float
    time_apart: float
    only_counted: int
    spreads: Mapping[str, Spread]

    @property
    def facts(self) -> dict[str, str]:
        """Numbers for the provenance of the run."""
        found = {
            "launches_measured": str(self.measured),
            "launches_inferred": str(self.inferred),
            "launches_uncounted": str(sum(self.uncounted.values()) + self.collectives),
            "configurations": str(self.configurations),
            "groups": str(self.groups),
            "time_apart": f"{self.time_apart:.3g}",
        }
        for name, spread in self.spreads.items():
            if spread.share is not None and spread.checked:
                found[f"{name}_uncertainty"] = f"{spread.share:.3g}"
        return found


def measure_coverage(connection: "DuckDBPyConnection", applied: Applied) -> Coverage:
    """Look at the joined launches.

    Args:
        connection: where the join was made.
        applied: how columns are made of counters.
    """
    shape = ", ".join(_SHAPE)
    total = _row(
        connection,
        f"SELECT count(*), count(DISTINCT (name, {shape})), "
        f"count(*) FILTER (counters_from = {literal(MEASURED)}), "
        f"count(*) FILTER (counters_from = {literal(INFERRED)}), coalesce(sum(duration_s), 0) "
        f"FROM {JOINED} WHERE kind = 'kernel'",
    )
    time_s = total[4] or 1.0
    without = connection.execute(
        f"SELECT name, count(*), sum(duration_s) FROM {JOINED} "
        "WHERE kind = 'kernel' AND counters_from IS NULL GROUP BY name ORDER BY 3 DESC"
    ).fetchall()
    lost = [(name or "", count, spent) for name, count, spent in without]
    unlike = _row(
        connection,
        f"SELECT count(*), coalesce(sum(j.duration_s), 0) FROM {JOINED} j "
        f"JOIN matched m ON m.number = j.row WHERE m.unlike > ln({_UNLIKE})",
    )
    apart = _row(
        connection,
        "SELECT coalesce(sum(abs(t.duration_ns - s.duration_ns)), 0), "
        "coalesce(sum(t.duration_ns), 0) FROM traced_keyed t LEFT JOIN matched m USING (number) "
        f"LEFT JOIN samples s ON s.row = m.row AND m.counters_from = {literal(INFERRED)}",
    )
    only = _row(connection, "SELECT count(*) FROM samples WHERE twin IS NULL")
    groups = _row(connection, f'SELECT count(DISTINCT "group") FROM {TRACED}')
    return Coverage(
        launches=total[0],
        configurations=total[1],
        groups=groups[0],
        measured=total[2],
        inferred=total[3],
        collectives=sum(count for name, count, _ in lost if is_collective(name)),
        uncounted={name: count for name, count, _ in lost if not is_collective(name)},
        uncounted_share=sum(s for name, _, s in lost if not is_collective(name)) / time_s,
        unlike=unlike[0],
        unlike_share=unlike[1] / time_s,
        time_apart=apart[0] / apart[1] if apart[1] else 0.0,
        only_counted=only[0],
        spreads={
            name: _spread(connection, expression)
            for name, expression in _quantities(applied).items()
        },
    )


def coverage_notices(coverage: Coverage, *, sampled: bool) -> list[Notice]:
    """What the user must know of it, in words."""
    said: list[Notice] = []
    if sampled:
        said.append(Notice("sampled", _sampled(coverage)))
    elif coverage.inferred:
        said.append(
            Notice(
                "runs-differ",
                f"{coverage.inferred} of {coverage.launches} launches of the traced run have no "
                "counterpart of their own in the counted run: they have the counters of another "
                "launch of the same kernel and shape. The program does not repeat itself",
            )
        )
    if coverage.collectives:
        said.append(
            Notice(
                "collectives-not-counted",
                f"{coverage.collectives} launches wait for other ranks (NCCL, NVSHMEM and such): "
                "they have times and no counters, since a repeated launch of one rank alone hangs. "
                "--collectives counts them all the same",
            )
        )
    if coverage.uncounted:
        names = list(coverage.uncounted)
        shown = ", ".join(name[:60] for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        said.append(
            Notice(
                "launches-uncounted",
                f"{sum(coverage.uncounted.values())} launches "
                f"({format_share(coverage.uncounted_share)} of the time of all kernels) have no "
                f"counters, since ncu counted no launch like them: {shown}{more}. Libraries may "
                "choose other kernels under a profiler (autotuning): let the program tune before "
                "cudaProfilerStart, with --from-profiler-start",
                partial=coverage.uncounted_share >= _NOTABLE,
            )
        )
    if coverage.unlike and coverage.unlike_share >= _NOTABLE:
        said.append(
            Notice(
                "sampled-unlike",
                f"{coverage.unlike} launches ({format_share(coverage.unlike_share)} of the time) "
                f"took more than {_UNLIKE} times as long, or as short, as the launch whose "
                "counters they have: one kernel and shape may do different work there (a GEMM "
                "over another depth). A larger --sample, or none, counts them apart",
            )
        )
    return said


def _sampled(coverage: Coverage) -> str:
    text = (
        f"{coverage.measured} of {coverage.launches} launches were counted, out of "
        f"{coverage.groups} groups of the same kernel, shape and time ({coverage.configurations} "
        f"kernels and shapes); {coverage.inferred} have the counters of the one of these whose "
        "time is nearest (column counters_from)."
    )
    known = {
        name: spread.share
        for name, spread in coverage.spreads.items()
        if spread.share is not None and spread.checked
    }
    if not known:
        return (
            f"{text} Its time differs from theirs by {format_share(coverage.time_apart)} of the "
            "time of all: so far totals are off if work goes with time. Each group was counted "
            "once; --sample 2 shows how far repeats differ"
        )
    spreads = ", ".join(f"{name} {format_share(share)}" for name, share in known.items())
    least = min(spread.checked or 0.0 for name, spread in coverage.spreads.items() if name in known)
    return f"{text} Repeats differ, which makes totals uncertain by: {spreads}" + (
        "" if least > 1 - _NOTABLE else f" (repeats were seen for {format_share(least)} of it)"
    )


def _quantities(applied: Applied) -> dict[str, str]:
    """Expressions for the quantities whose spread is looked at, as far as they are known."""
    made = dict(applied.columns)
    work = [made[c.name] for c in WORK_COLUMNS if c.name in applied.definitions and not _op(c.name)]
    found = {"flop": " + ".join(f"coalesce({sql}, 0)" for sql in work)} if work else {}
    return found | {level: made[level] for level in _LEVELS if level in applied.definitions}


def _op(column: str) -> bool:
    return column.startswith("op_")


def _spread(connection: "DuckDBPyConnection", expression: str) -> Spread:
    """Half of the range of the repeats, for every launch that took its value from one of them.

    Repeats are launches that were taken to be alike.
    """
    row = _row(
        connection,
        f'WITH valued AS (SELECT t."group", counters_from, ({expression}) AS v '
        f"FROM {JOINED} j JOIN {TRACED} t ON t.number = j.row WHERE j.kind = 'kernel'), "
        "per AS (SELECT "
        f"count(v) FILTER (counters_from = {literal(MEASURED)}) AS repeats, "
        f"max(v) FILTER (counters_from = {literal(MEASURED)}) "
        f"- min(v) FILTER (counters_from = {literal(MEASURED)}) AS range_, "
        f"count(v) FILTER (counters_from = {literal(INFERRED)}) AS others, "
        f"coalesce(sum(v) FILTER (counters_from = {literal(INFERRED)}), 0) AS taken, "
        'sum(v) AS total FROM valued GROUP BY "group") '
        "SELECT sum(total), coalesce(sum(others * range_ / 2) FILTER (repeats > 1), 0), "
        "sum(taken), coalesce(sum(taken) FILTER (repeats > 1), 0) FROM per",
    )
    total, uncertain, taken, checked = row
    return Spread(
        share=uncertain / total if total else None,
        checked=checked / taken if taken else None,
    )


def _row(connection: "DuckDBPyConnection", sql: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(sql).fetchone()
    return row or ()
