"""What the launches of a run say beyond its Analysis: parts, spreads, callers, one step in time.

The Analysis sums launches by one thing at a time. The page filters kernels by phase and rank,
and shows how the launches of a kernel spread, who launched them and when.
"""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from mansard import engine
from mansard.analysis import cube
from mansard.analysis.collected import absent_columns
from mansard.analysis.floors import resources
from mansard.analysis.groups import kernel
from mansard.analysis.launches import launches
from mansard.analysis.options import AnalysisOptions
from mansard.charts.page.strip import Strip, read_strip
from mansard.charts.plain import text
from mansard.errors import FormatError
from mansard.model.analysis import Analysis, Kernel
from mansard.model.run import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Bars of a histogram per decade of time: each is 12 % wide.
BARS_PER_DECADE = 20

#: Columns of the cube that are no measures.
_IDENTITY = ("name", "kind", "phase", "rank", "key", "short_name", "family")

#: Operators named per kernel, and letters of a name.
_MOST_CALLERS = 5
_NAME_LIMIT = 300


@dataclasses.dataclass(frozen=True, slots=True)
class KernelPart:
    """The launches of a kernel in one phase, on one rank, or in one phase on one rank.

    Attributes:
        phase: name of the phase; None for launches outside any, or of all phases.
        rank: number of the rank; None if unknown, or of all ranks.
        by: ``phase``, ``rank`` or ``phaserank``: what the part is of one of.
        kernel: sums of these launches.
    """

    phase: str | None
    rank: int | None
    by: Literal["phase", "rank", "phaserank"]
    kernel: Kernel


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """What launched a kernel: operator and module of the framework, launches, their time."""

    op: str | None
    module: str | None
    launches: int
    duration_s: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What the page shows beyond the Analysis; empty where the run does not say.

    Attributes:
        parts: kernels by phase, by rank, and by both, where there are several.
        spreads: by kernel, (least duration_s of a bar, launches) of its histogram.
        callers: by kernel, the operators that launched it, longest first.
        strip: when the launches of one step ran.
    """

    parts: tuple[KernelPart, ...] = ()
    spreads: dict[str, tuple[tuple[float, int], ...]] = dataclasses.field(default_factory=dict)
    callers: dict[str, tuple[Caller, ...]] = dataclasses.field(default_factory=dict)
    strip: Strip | None = None


def read_detail(run: Run, analysis: Analysis) -> Detail:
    """Read what the page shows beyond an analysis from the run that was analysed.

    Args:
        run: the launches.
        analysis: made from this run; its machine and options are used again.

    Raises:
        FormatError: a file of the run is damaged.
    """
    if not run.files:
        return Detail()
    with (
        engine.connect() as connection,
        engine.translated(FormatError, f"the launches of {run.label or 'the run'} are damaged"),
    ):
        found = launches(connection, run)
        machine = analysis.machine
        plan = cube.Plan(
            launches=found,
            resources=resources(machine, found) if machine else (),
            absent=absent_columns(run),
            options=AnalysisOptions(**analysis.options),
        )
        plan = cube.build(connection, plan, machine)
        return Detail(
            parts=tuple(_parts(connection, plan)),
            spreads=_spreads(connection, plan),
            callers=_callers(connection, plan),
            strip=read_strip(connection, run.files[0]),
        )


def _parts(connection: "DuckDBPyConnection", plan: cube.Plan) -> Iterator[KernelPart]:
    """Sum the cube to kernels by phase, by rank and by both, each where there are several."""
    phases, ranks = connection.execute(
        "SELECT count(DISTINCT coalesce('.' || phase, '')), count(DISTINCT coalesce(rank, -1)) "
        "FROM cell"
    ).fetchall()[0]
    several: list[Literal["phase", "rank", "phaserank"]] = []
    if phases > 1:
        several.append("phase")
    if ranks > 1:
        several.append("rank")
    if len(several) > 1:
        several.append("phaserank")
    for by in several:
        columns = {"phaserank": "phase, rank"}.get(by, by)
        cursor = connection.execute(
            "SELECT key, any_value(short_name) AS short_name, any_value(family_of) AS family_of, "
            f"{columns}, 1 AS kernels, {', '.join(_sums(connection))} "
            "FROM (SELECT *, family AS family_of FROM cell) "
            f"GROUP BY key, {columns} ORDER BY key, {columns}"
        )
        names = [column[0] for column in cursor.description]
        for values in cursor.fetchall():
            sums = dict(zip(names, values, strict=True))
            row = cube.Row("kernel", sums["key"], sums)
            yield KernelPart(sums.get("phase"), sums.get("rank"), by, kernel(row, plan, {}))


def _sums(connection: "DuckDBPyConnection") -> Iterator[str]:
    """Aggregates of every measure of the cube; the first word of its name tells which."""
    for name, *_ in connection.execute("DESCRIBE cell").fetchall():
        if name not in _IDENTITY:
            how = {"shortest": "min", "first": "min", "longest": "max"}.get(name.split("_")[0])
            quoted = engine.identifier(name)
            yield f"{how or 'sum'}({quoted}) AS {quoted}"


def _spreads(
    connection: "DuckDBPyConnection", plan: cube.Plan
) -> dict[str, tuple[tuple[float, int], ...]]:
    """Count the launches of each kernel by duration, in bars of equal width on a log axis."""
    rows = connection.execute(
        f"SELECT key, floor(log10(duration_s) * {BARS_PER_DECADE}) AS bar, count(*) "
        f"FROM ({plan.launches.sql}) JOIN names USING (name, kind) "
        "WHERE duration_s > 0 GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    found: dict[str, list[tuple[float, int]]] = {}
    for key, bar, count in rows:
        found.setdefault(key, []).append((float(f"{10 ** (bar / BARS_PER_DECADE):.4g}"), count))
    return {key: tuple(bars) for key, bars in found.items() if sum(n for _, n in bars) > 1}


def _callers(connection: "DuckDBPyConnection", plan: cube.Plan) -> dict[str, tuple[Caller, ...]]:
    """Return the operators and modules behind each kernel, as far as they were recorded."""
    if not plan.launches.named:
        return {}
    rows = connection.execute(
        "SELECT key, op, module, count(*), sum(duration_s) AS spent_s "
        f"FROM ({plan.launches.sql}) JOIN names USING (name, kind) "
        "WHERE op IS NOT NULL OR module IS NOT NULL GROUP BY key, op, module "
        "ORDER BY key, spent_s DESC NULLS LAST, op, module"
    ).fetchall()
    found: dict[str, list[Caller]] = {}
    for key, op_name, module_name, launched, duration_s in rows:
        caller = Caller(_bounded(op_name), _bounded(module_name), launched, duration_s)
        found.setdefault(key, []).append(caller)
    return {key: tuple(callers[:_MOST_CALLERS]) for key, callers in found.items()}


def _bounded(name: str | None) -> str | None:
    return None if name is None else text(name[:_NAME_LIMIT])
