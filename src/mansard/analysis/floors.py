"""Time floors: the least time that each resource of a machine needs for one launch.

    vector, tensor   sum over precisions p of  work_p / ceiling_p      (they share the pipe)
    shared ... link  bytes / bandwidth
    launch           the cost of one node of a CUDA graph, if the machine knows it

The largest of them is the launch's floor: pipes and levels work at the same time. It bounds the
launch, and floor / measured time is its efficiency. Unlike a Roofline this needs no special case
for launches without FLOP, and none for launches that use several pipes; for one pipe and one
level it is the same statement: FLOP / s <= min(ceiling, bandwidth x FLOP / byte)
(Williams et al., Roofline, CACM 52(4), 2009; time-based: Wang et al., arXiv 2009.04598).

A floor is null, unknown, where nothing of its resource was counted, and where a launch did work
on a path that the machine has no ceiling for. Some of a pipe's precisions missing does not make
it null: it is then a lower bound, as every floor is.
"""

import dataclasses

from mansard.model.machine import Machine
from mansard.model.paths import LEVELS, PATHS, ComputePath

#: What a chip that cannot tell them apart counts together; its roof is the highest of theirs.
_PARTS = {"tensor fp4_fp6_fp8": ("tensor fp4", "tensor fp6", "tensor fp8")}

LAUNCH = "launch"


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """Something of a machine that takes time.

    Attributes:
        name: ``vector``, ``tensor``, a memory level or ``launch``.
        floor: SQL over the columns of a launch: its least time in s, null where unknown.
        columns: which of its columns were collected at all.
    """

    name: str
    floor: str
    columns: tuple[str, ...]


def resources(machine: Machine, live: frozenset[str]) -> tuple[Resource, ...]:
    """The resources of a machine, and the pipes that a run used and the machine does not know.

    Args:
        machine: with the ceilings.
        live: columns that were collected.
    """
    found = [_pipe(machine, pipe, live) for pipe in ("vector", "tensor")]
    found += [_level(machine, level, live) for level in LEVELS]
    cost = machine.launch_cost("graph node")
    if cost is not None and cost.value is not None:
        found.append(Resource(LAUNCH, _number(cost.value), ()))
    return tuple(resource for resource in found if resource is not None)


def ceiling_of(machine: Machine, path: ComputePath) -> float | None:
    """The roof of a path in operations per second, or None where the machine has none."""
    names = (path.name, *_PARTS.get(path.name, ()))
    found = [machine.compute(name) for name in names]
    return max((c.value for c in found if c is not None and c.value is not None), default=None)


def bandwidth_of(machine: Machine, level: str) -> float | None:
    """The roof of a level in byte/s, or None where the machine has none."""
    found = machine.bandwidth(level)
    return None if found is None else found.value


def _pipe(machine: Machine, pipe: str, live: frozenset[str]) -> Resource | None:
    paths = [path for path in PATHS if path.pipe == pipe]
    known = any(ceiling_of(machine, path) for path in paths)
    counted = [path for path in paths if path.column in live]
    if not known and not counted:
        return None
    terms = []
    roofless = []
    for path in counted:
        ceiling = ceiling_of(machine, path)
        if ceiling is None:
            roofless.append(f"{path.column} > 0")
        else:
            terms.append(f"coalesce({path.column}, 0) / {_number(ceiling)}")
    if not counted:
        return Resource(pipe, "NULL::DOUBLE", ())
    columns = tuple(path.column for path in counted)
    floor = f"CASE WHEN coalesce({', '.join(columns)}) IS NULL THEN NULL "
    if roofless:
        floor += f"WHEN {' OR '.join(roofless)} THEN NULL "
    floor += f"ELSE {' + '.join(terms) or '0'} END"
    # Work on a pipe without any ceiling can be the bound all the same: it counts as unknown.
    return Resource(pipe, floor, columns)


def _level(machine: Machine, level: str, live: frozenset[str]) -> Resource | None:
    column = f"bytes_{level}"
    bandwidth = bandwidth_of(machine, level)
    if bandwidth is None:
        return None  # no resource of this machine; where it was counted a notice says so
    if column not in live:
        return Resource(level, "NULL::DOUBLE", ())
    return Resource(level, f"{column} / {_number(bandwidth)}", (column,))


def _number(value: float) -> str:
    """A number for SQL with every digit; the exponent makes it a DOUBLE, not a DECIMAL."""
    return f"{float(value)!r}::DOUBLE"
