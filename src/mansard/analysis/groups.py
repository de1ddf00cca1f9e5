"""From sums to the values that the user sees: groups, kernels, and what bounds them."""

from collections.abc import Iterable, Mapping
from typing import Any

from mansard.analysis.collected import unaccounted
from mansard.analysis.cube import Plan, Row
from mansard.model.analysis import Group, Kernel, quotient
from mansard.model.paths import FLOP_PATHS, INTEGER_PATHS, LEVELS, PATHS


def group(row: Row, plan: Plan) -> Group:
    """The group of one row of a roll-up."""
    return Group(**_fields(row, plan))


def kernel(row: Row, plan: Plan, shapes: Mapping[str, int]) -> Kernel:
    """The kernel of one row of a roll-up.

    Args:
        row: its sums.
        plan: what was computed.
        shapes: distinct (grid, block) pairs by key.
    """
    return Kernel(
        **_fields(row, plan),
        short_name=str(row.sums["short_name"]),
        family=str(row.sums["family_of"]),
        shapes=shapes.get(row.key or "", 1),
        duration_min_s=row.value("shortest_s"),
        duration_max_s=row.value("longest_s"),
        tiny=_tiny(row, plan),
    )


def missing_flop(row: Row, plan: Plan) -> frozenset[str]:
    """Columns of FLOP paths that may hide work of these launches."""
    missing = frozenset(path.column for path in FLOP_PATHS if row.missing(path.column))
    return unaccounted(missing, plan.absent)


def _fields(row: Row, plan: Plan) -> dict[str, Any]:
    launches = row.count("launches")
    decided = row.count("decided")
    floors = {resource.name: _floor(row, resource.name) for resource in plan.resources}
    return {
        "key": row.key,
        "launches": launches,
        "kernels": row.count("kernels"),
        "duration_s": row.value("duration_s"),
        "flop": _flop(row),
        "op_int": _total(row.value(path.column) for path in INTEGER_PATHS),
        "flop_complete": not missing_flop(row, plan),
        "flop_by_path": {path.name: row.value(path.column) for path in PATHS},
        "bytes_by_level": {level: row.value(f"bytes_{level}") for level in LEVELS},
        "zero_flop_launches": row.count("zero launches") if decided else None,
        "zero_flop_duration_s": (row.value("zero_s") or 0.0) if decided else None,
        "near_zero_flop_launches": row.count("near launches") if decided else None,
        "near_zero_flop_duration_s": (row.value("near_s") or 0.0) if decided else None,
        "short_launches": row.count("short") if row.count("timed") else None,
        "floors_s": floors,
        "floor_s": row.value("floor_s") or (None if _open(row, floors) else row.value("floor_s")),
        "bound": _bound(row, floors),
        "launches_above_roof": row.count("above"),
        "untimed_launches": launches - row.count("timed"),
        "sm_clock_hz": quotient(row.value("clocks_hz"), row.count("clocked")),
        "partial_levels": tuple(
            level
            for level in LEVELS
            if row.value(f"bytes_{level}") is not None and row.missing(f"bytes_{level}")
        ),
    }


def _floor(row: Row, name: str) -> float | None:
    """A floor; nothing known of launches that may have one is unknown, and not 0."""
    return row.value(f"floor_{name}") or (
        None if _open(row, (name,)) else row.value(f"floor_{name}")
    )


def _open(row: Row, names: Iterable[str]) -> bool:
    """Whether some launch may have a longer floor than is known on one of the resources."""
    return any(row.value(f"open {name}") for name in names)


def _flop(row: Row) -> float | None:
    """FLOP on the known paths; None where no work was seen and some could not be seen."""
    seen = row.value("flop") or 0.0
    unseen = row.count("decided") < row.count("launches") or not row.count("launches")
    return None if unseen and not seen else seen


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _bound(row: Row, floors: Mapping[str, float | None]) -> str | None:
    """The resource with the largest floor, unless another one may have a larger.

    Where a resource was not counted its floor can be as long as the launch took, no longer.
    """
    known = {name: floor or 0.0 for name, floor in floors.items()}
    largest = max(known, key=lambda name: known[name], default=None)
    if largest is not None and not known[largest]:
        largest = None
    most = known[largest] if largest else 0.0
    unknown = []
    for name, floor_s in known.items():
        open_s = row.value(f"open {name}")
        if open_s is not None and name != largest and floor_s + open_s >= most:
            unknown.append(name)
    if not unknown:
        return largest
    return "unknown among " + ", ".join([largest, *unknown] if largest else unknown)


def _tiny(row: Row, plan: Plan) -> bool:
    options = plan.options
    duration_s, moved = row.value("duration_s"), row.value("bytes_dram")
    timed, counted = row.count("timed"), row.count("launches") - row.missing("bytes_dram")
    return (
        duration_s is not None and timed > 0 and duration_s < options.tiny_launch_s * timed
    ) or (moved is not None and counted > 0 and moved < options.tiny_launch_bytes * counted)
