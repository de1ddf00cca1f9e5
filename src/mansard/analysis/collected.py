"""What a run does not say: columns that are null because nobody counted them.

Null can also mean that the chip has no such path at all (tensor fp8 on Volta): such a path
cannot have done work, and its null takes nothing away from the sums.
"""

from collections.abc import Iterable, Mapping

from mansard.analysis.theoretical import lacking_paths
from mansard.model.paths import FLOP_PATHS
from mansard.model.provenance import Provenance
from mansard.model.run import Run

# Chips that cannot tell these three apart count them together; others never fill the sum.
_TOGETHER = "flop_tensor_fp4_fp6_fp8"
_APART = frozenset({"flop_tensor_fp8", "flop_tensor_fp6", "flop_tensor_fp4"})


def absent_columns(run: Run) -> frozenset[str]:
    """Columns of FLOP paths that no chip of the run has."""
    each = [_absent(origin) for origin in run.provenance]
    return frozenset.intersection(*each) if each else frozenset()


def unaccounted(missing: frozenset[str], absent: frozenset[str]) -> frozenset[str]:
    """Columns whose nulls may hide work.

    Args:
        missing: columns of FLOP paths that are null on some launch.
        absent: those of paths that the chip does not have.
    """
    hidden = missing - absent
    if _TOGETHER not in missing:
        hidden -= _APART
    if not missing >= _APART:
        hidden -= {_TOGETHER}
    return hidden


def known(column: str, live: frozenset[str], alike: Mapping[str, str]) -> str:
    """SQL: whether the work on a path is known of a launch.

    Args:
        column: of the path, one of ``live``.
        live: columns that were counted on some launch.
        alike: columns that are null on the same launches, by one that stands for them.
    """
    others = _APART if column == _TOGETHER else {_TOGETHER} if column in _APART else frozenset()
    return f"{any_of([column, *sorted(others & live)], alike)} IS NOT NULL"


def any_of(columns: Iterable[str], alike: Mapping[str, str]) -> str:
    """SQL: null only where all of the columns are; see ``known``."""
    asked = list(dict.fromkeys(alike.get(column, column) for column in columns))
    return asked[0] if len(asked) == 1 else f"coalesce({', '.join(asked)})"


def _absent(origin: Provenance) -> frozenset[str]:
    lacking = [lacking_paths(device.compute_capability) for device in origin.devices]
    known = [paths for paths in lacking if paths is not None]
    if known and len(known) == len(lacking):
        names = frozenset.intersection(*known)
        return frozenset(path.column for path in FLOP_PATHS if path.name in names)
    if origin.counter_table is None:
        return frozenset()
    # The table of the chip has a formula for every path that it can count: what it neither
    # made nor missed does not exist there.
    named = origin.definitions.keys() | origin.missing.keys()
    return frozenset(path.column for path in FLOP_PATHS if path.column not in named)
