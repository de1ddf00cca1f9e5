"""The rows that a table can have: kernels, families, phases, ranks, modules, ... of a run."""

from mansard.analysis.layers import MOST_GROUPS, MOST_LAUNCHES
from mansard.charts.labels import known, positive
from mansard.errors import UsageError
from mansard.model.analysis import Analysis, Group, quotient

#: What the rows of a table can be.
ROWS = ("kernel", "family", "phase", "rank", "module", "layer", "operator")
#: Rows that not every run has, and which do.
_NAMED = ("module", "layer", "operator")


def groups_of(analysis: Analysis, by: str) -> tuple[Group, ...]:
    """Return the groups that the rows of a table stand for.

    Raises:
        UsageError: ``by`` is not one of ROWS, or the run does not name them, or too many.
    """
    rows: dict[str, tuple[Group, ...]] = {
        "kernel": analysis.kernels,
        "family": analysis.families,
        "phase": analysis.phases,
        "rank": analysis.ranks,
        "module": analysis.modules,
        "layer": analysis.layers,
        "operator": analysis.operators,
    }
    if by not in rows:
        raise UsageError(f"no rows by '{by}': choose one of {', '.join(ROWS)}")
    if by in _NAMED and not rows[by]:
        raise UsageError(
            f"the run names no {by}s: 'mansard profile' of a PyTorch program does, without "
            f"torch.compile; or it names more than {MOST_GROUPS:,}, or has more than "
            f"{MOST_LAUNCHES:,} launches, which is not summed: of a job, give the file of one rank"
        )
    return rows[by]


def share(group: Group, analysis: Analysis) -> float | None:
    """Return a group's part of the time of the whole run."""
    return quotient(known(group.duration_s), positive(analysis.totals.duration_s))
