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
on a path that the machine has no ceiling for. Where some of a pipe's precisions are known of a
launch and others are not, the floor is of those known, and the launch counts as ``open``: the
true floor can be longer, up to the time that the launch took. Taken as unused are precisions
counted on no launch at all (the analysis says so in a notice), those that the machine has no
ceiling for, and int4 and int1, which hardly any program uses and hardly any profile counts. So is
a link that was not counted: kernels seldom reach beyond device memory, and a machine with a link
roof would otherwise leave every bound undecided.
"""

import dataclasses

from mansard.analysis.collected import any_of, known
from mansard.analysis.launches import Launches
from mansard.model.machine import Machine
from mansard.model.paths import LEVELS, PATHS, ComputePath

#: What a chip that cannot tell them apart counts together; its roof is the highest of theirs.
_PARTS = {"tensor fp4_fp6_fp8": ("tensor fp4", "tensor fp6", "tensor fp8")}

_HARDLY_USED = ("tensor int4", "tensor int1")

_LINK = "link"
_WITH_HOST = "kind = 'memcpy' AND (contains(name, 'HtoD') OR contains(name, 'DtoH'))"

LAUNCH = "launch"


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """Something of a machine that takes time.

    Attributes:
        name: ``vector``, ``tensor``, a memory level or ``launch``.
        floor: SQL over the columns of a launch: its least time in s, null where unknown.
        open: SQL, whether its true floor may be longer than that.
        counted: whether it was counted on any launch, or is the cost of a launch.
    """

    name: str
    floor: str
    open: str
    counted: bool = True


def resources(machine: Machine, launches: Launches) -> tuple[Resource, ...]:
    """The resources of a machine, and the pipes that a run used and the machine does not know.

    Args:
        machine: with the ceilings.
        launches: the run; what was collected is a resource that has a floor.
    """
    found = [_pipe(machine, pipe, launches) for pipe in ("vector", "tensor")]
    found += [_level(machine, level, launches) for level in LEVELS]
    cost = machine.launch_cost("graph node")
    if cost is not None and cost.value is not None:
        found.append(Resource(LAUNCH, _number(cost.value), "false"))
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


def _pipe(machine: Machine, pipe: str, launches: Launches) -> Resource | None:
    live, alike = launches.live, launches.alike
    paths = [path for path in PATHS if path.pipe == pipe]
    counted = [path for path in paths if path.column in live]
    if not counted:
        has_roof = any(ceiling_of(machine, path) for path in paths)
        return Resource(pipe, "NULL::DOUBLE", "true", counted=False) if has_roof else None
    terms = []
    unknown = []
    roofless = []
    for path in counted:
        ceiling = ceiling_of(machine, path)
        worked = path.column not in launches.zero
        if ceiling is None:
            if worked:
                roofless.append(f"coalesce({path.column}, 0) > 0")
        else:
            if worked:
                terms.append(f"coalesce({path.column}, 0) / {_number(ceiling)}")
            if path.name not in _HARDLY_USED:
                unknown.append(f"NOT {known(path.column, live, alike)}")
    unroofed = " OR ".join(roofless) or "false"
    none = f"{any_of((path.column for path in counted), alike)} IS NULL"
    floor = f"CASE WHEN {none} OR {unroofed} THEN NULL ELSE {' + '.join(terms) or '0e0'} END"
    return Resource(pipe, floor, f"({' OR '.join(dict.fromkeys([none, *unknown, unroofed]))})")


def _level(machine: Machine, level: str, launches: Launches) -> Resource | None:
    column = f"bytes_{level}"
    bandwidth = bandwidth_of(machine, level)
    if bandwidth is None:
        return None  # no resource of this machine; where it was counted a notice says so
    if column not in launches.live:
        return None if level == _LINK else Resource(level, "NULL::DOUBLE", "true", counted=False)
    # What copies to the host moved is known; a link that no kernel was counted on is unused by it.
    unknown = "false" if level == _LINK else f"{any_of([column], launches.alike)} IS NULL"
    roof = _number(bandwidth)
    host = machine.host_link() if level == _LINK else None
    if host is not None and host.value is not None:
        # What goes to the host does not take the link between GPUs, which is faster.
        roof = f"CASE WHEN {_WITH_HOST} THEN {_number(host.value)} ELSE {roof} END"
    return Resource(level, f"{column} / {roof}", unknown)


def _number(value: float) -> str:
    """A number for SQL with every digit; the exponent makes it a DOUBLE, not a DECIMAL."""
    return f"{float(value)!r}::DOUBLE"
