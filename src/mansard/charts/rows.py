"""The rows that a table can have: kernels, families, phases, ranks, modules, ... of a run."""

from mansard.analysis.layers import KEYS, layers_of
from mansard.charts.labels import known, positive
from mansard.errors import UsageError
from mansard.model.analysis import Analysis, Group, quotient

#: What the rows of a table can be, and its title then.
ROW_TITLES = {
    "kernel": "Kernels",
    "family": "Families",
    "phase": "Phases",
    "rank": "Ranks",
    "module": "Modules",
    "layer": "Layers",
    "operator": "Operators",
}
#: What the rows of a table can be.
ROWS = tuple(ROW_TITLES)


def groups_of(analysis: Analysis, by: str) -> tuple[Group, ...]:
    """Return the groups that the rows of a table stand for.

    Raises:
        UsageError: ``by`` is not one of ROWS, or the run does not name them, or too many.
    """
    if by in KEYS:
        return layers_of(analysis, by)
    rows: dict[str, tuple[Group, ...]] = {
        "kernel": analysis.kernels,
        "family": analysis.families,
        "phase": analysis.phases,
        "rank": analysis.ranks,
    }
    if by not in rows:
        raise UsageError(f"no rows by '{by}': choose one of {', '.join(ROWS)}")
    return rows[by]


def share(group: Group, analysis: Analysis) -> float | None:
    """Return a group's part of the time of the whole run."""
    return quotient(known(group.duration_s), positive(analysis.totals.duration_s))
