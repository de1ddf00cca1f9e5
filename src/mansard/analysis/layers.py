"""Launches summed by what the framework called: its modules (layers) and its operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mansard import engine
from mansard.analysis import cube
from mansard.analysis.cube import Plan, Row
from mansard.analysis.groups import group
from mansard.analysis.launches import launches
from mansard.errors import UsageError
from mansard.model.analysis import Analysis, Group

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Runs with more launches are not looked at: of a job of many ranks the kernels tell enough.
MOST_LAUNCHES = 1_000_000
#: More modules or operators are no network: something else stands in the column.
MOST_GROUPS = 10_000


# Twice, since neighbours share a dot.
_NUMBERS = r"regexp_replace({}, '\.[0-9]+\.', '.*.', 'g')"
_DOTTED = _NUMBERS.format(_NUMBERS.format("'.' || module || '.'"))
#: A module without the numbers in its path: layers that are built alike.
_ALIKE = f"substr({_DOTTED}, 2, length({_DOTTED}) - 2)"
_WHO_NAMES = (
    "'mansard profile' names those of PyTorch programs, without torch.compile and --no-operators"
)
#: How each list of groups is made: its column, and the key in SQL.
KEYS = {"module": ("module", "module"), "layer": ("module", _ALIKE), "operator": ("op", "op")}


def layers(connection: "DuckDBPyConnection", plan: Plan) -> dict[str, tuple[Group, ...]]:
    """Groups by ``module``, ``layer`` (equal modules, ``blocks.*.mix``) and ``operator``.

    Longest first; the launches outside any have the key None. Empty where the run does not name
    them, or has more than ``MOST_LAUNCHES`` launches or ``MOST_GROUPS`` groups.

    Args:
        connection: with the cube of the plan.
        plan: what was computed.
    """
    count = connection.execute("SELECT sum(launches) FROM cube").fetchall()[0][0]
    if not count or count > MOST_LAUNCHES:
        return dict.fromkeys(KEYS, ())
    for column in plan.launches.named:
        cube.scan_by(connection, plan, column)
    return {
        by: _longest_first(cube.sums_by(connection, plan, column, key), plan)
        if column in plan.launches.named
        else ()
        for by, (column, key) in KEYS.items()
    }


def names(analysis: Analysis, by: str) -> bool:
    """Whether a run has such groups; of what is none of ``KEYS`` it always has."""
    return by not in KEYS or bool(_groups(analysis)[by])


def layers_of(analysis: Analysis, by: str) -> tuple[Group, ...]:
    """The groups of an analysis by one of ``KEYS``.

    Raises:
        UsageError: the run does not name them, or too many.
    """
    groups = _groups(analysis)[by]
    if not groups:
        raise UsageError(f"{analysis.label or 'the run'} {why_none(analysis, by)}")
    return groups


def why_none(analysis: Analysis, by: str) -> str:
    """Why a run has no groups by one of ``KEYS``, and what to do; goes on after its name."""
    count = analysis.totals.launches
    if count > MOST_LAUNCHES:
        return (
            f"has {count:,} launches, and {by}s are not summed beyond {MOST_LAUNCHES:,}: of a job, "
            "give the file of one rank"
        )
    if analysis.run is not None:
        with engine.connect() as connection:
            if KEYS[by][0] in launches(connection, analysis.run).named:
                return (
                    f"names more than {MOST_GROUPS:,} {by}s, which are not summed: use --by kernel "
                    "or --by family"
                )
    collectors = {origin.collector or "" for origin in analysis.provenance}
    if any(name.startswith("Mansard") for name in collectors):
        return f"names no {by}s: record it again, since {_WHO_NAMES}"
    return f"names no {by}s: record the program with Mansard, since {_WHO_NAMES}"


def _groups(analysis: Analysis) -> dict[str, tuple[Group, ...]]:
    return {
        "module": analysis.modules,
        "layer": analysis.layers,
        "operator": analysis.operators,
    }


def _longest_first(rows: Sequence[Row], plan: Plan) -> tuple[Group, ...]:
    if len(rows) > MOST_GROUPS:
        return ()
    made = [group(row, plan) for row in rows]
    return tuple(sorted(made, key=lambda each: (-(each.duration_s or 0.0), each.key or "")))
