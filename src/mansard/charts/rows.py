"""The rows that a table can have: kernels, families, phases, ranks, modules, ... of a run."""

from mansard.analysis.layers import KEYS, layers_of
from mansard.charts.labels import known, positive
from mansard.errors import UsageError
from mansard.model.analysis import Analysis, Group, quotient
from mansard.units import format_si

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
#: Stands behind a rate that is of integer operations, and what is said of it below a table.
INTEGER_MARK = "*"
INTEGER_NOTE = f"{INTEGER_MARK}: only integer operations, so OP/s and OP/byte; they are no FLOP."
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


def only_integer(group: Group) -> bool:
    """Tell whether a group did integer operations and no FLOP; its rates are then of those."""
    return group.flop == 0 and positive(group.op_int) is not None


def rate(group: Group) -> float | None:
    """Return FLOP/s, or OP/s of a group that did only integer operations."""
    if not only_integer(group):
        return known(group.flop_per_s)
    return None if group.untimed_launches else quotient(known(group.op_int), group.duration_s)


def intensity(group: Group, level: str) -> float | None:
    """Return FLOP/byte of a level, or OP/byte of a group that did only integer operations."""
    if not only_integer(group) or level in group.partial_levels:
        return group.intensity.get(level)
    return quotient(known(group.op_int), known(group.bytes_by_level.get(level)))


def rate_text(group: Group) -> str:
    """Return the rate as a cell, with INTEGER_MARK behind OP/s; ``-`` when unknown."""
    found = rate(group)
    mark = INTEGER_MARK if only_integer(group) and found is not None else ""
    return f"{format_si(found)}{mark}"
