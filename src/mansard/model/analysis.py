"""The result of an analysis: totals, phases and kernels with their floors. All values SI."""

import dataclasses
from typing import Any

from mansard.model.fleet import Fleet
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.model.run import Run

#: Version of the JSON report.
#: 1: first.
REPORT_FORMAT = "mansard-report/1"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Launches taken together: a whole run, a phase, a family, a rank, a module or one kernel.

    Sums over launches; ``None`` where no launch has the value. ``floors_s`` and ``floor_s`` are
    sums of per-launch floors, never floors of sums.

    Attributes:
        key: name of the group (kernel name, phase, ...); None for launches outside any.
        launches: number of launches.
        kernels: number of distinct kernel names.
        duration_s: time on the GPU.
        flop: floating-point operations of all known paths.
        op_int: integer operations of all known paths.
        flop_complete: False where some path was not collected, so that ``flop`` is a lower bound.
        flop_by_path: operations by path name, integer paths included; unknown paths are None.
        bytes_by_level: bytes by level name; unknown levels are None.
        zero_flop_launches: launches with no floating-point work at all (zero-AI launches).
        zero_flop_duration_s: their time.
        near_zero_flop_launches: launches with some, but less than the near-zero intensity.
        near_zero_flop_duration_s: their time.
        short_launches: launches shorter than the short-launch limit.
        floors_s: least time by resource: ``vector``, ``tensor``, each level, ``launch``.
        floor_s: sum over launches of the largest floor; None without a machine.
        bound: resource with the largest floor; ``unknown among ...`` where a resource of the
            machine was not collected; None without a machine.
        launches_above_roof: launches faster than their floor by more than the tolerance.
        untimed_launches: launches without a duration: no rate can be given, and the floors
            leave them out.
        partial_levels: levels whose bytes are unknown on some launches: no intensity there.
        sm_clock_hz: mean SM clock over the launches that have one.
    """

    key: str | None
    launches: int
    kernels: int
    duration_s: float | None
    flop: float | None
    op_int: float | None
    flop_complete: bool
    flop_by_path: dict[str, float | None]
    bytes_by_level: dict[str, float | None]
    zero_flop_launches: int | None
    zero_flop_duration_s: float | None
    near_zero_flop_launches: int | None
    near_zero_flop_duration_s: float | None
    short_launches: int | None
    floors_s: dict[str, float | None]
    floor_s: float | None
    bound: str | None
    launches_above_roof: int = 0
    untimed_launches: int = 0
    partial_levels: tuple[str, ...] = ()
    sm_clock_hz: float | None = None

    @property
    def flop_per_s(self) -> float | None:
        """Floating-point rate; None when unknown, also on some launches only."""
        return None if self.untimed_launches else quotient(self.flop, self.duration_s)

    @property
    def intensity(self) -> dict[str, float | None]:
        """FLOP per byte at each level; None where either is unknown or no byte moved."""
        return {
            level: None if level in self.partial_levels else quotient(self.flop, moved)
            for level, moved in self.bytes_by_level.items()
        }

    @property
    def efficiency(self) -> float | None:
        """Floor over measured time, 1 at the roof."""
        return quotient(self.floor_s, self.duration_s)

    @property
    def recoverable_s(self) -> float | None:
        """Time above the floor; never negative (see ``launches_above_roof``)."""
        if self.floor_s is None or self.duration_s is None:
            return None
        return max(0.0, self.duration_s - self.floor_s)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Group):
    """All launches of one kernel name.

    Attributes:
        short_name: the name without template arguments, parameters and return type.
        family: gemm, conv, attention, norm, elementwise, copy, reduction, collective or other.
        shapes: number of distinct (grid, block) pairs.
        duration_min_s: shortest launch.
        duration_max_s: longest launch.
        tiny: its launches are so short, or move so little, that intensity and efficiency say
            more of starting a kernel than of its work.
        idle_sm_launches: launches with fewer blocks than the GPU has SMs; None where grid or
            number of SMs are unknown.
        idle_sm_s: their time, each times the share of the SMs that got no block.
    """

    short_name: str
    family: str
    shapes: int = 1
    duration_min_s: float | None = None
    duration_max_s: float | None = None
    tiny: bool = False
    idle_sm_launches: int | None = None
    idle_sm_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """How steps of a run passed on the GPU, from the start times of their launches.

    Times are sums over all (rank, GPU, step) that were looked at.

    Attributes:
        steps: number of (rank, GPU, step).
        elapsed_s: from the first start to the last end.
        busy_s: time in which at least one launch ran.
        gaps: stretches in between in which nothing ran.
        longest_gap_s: the longest of them; 0 where there is none.
        longest_gap_before: key of the kernel that ended it.
        collective_only_s: time in which nothing but collectives ran.
        host_s: how long the program takes for as many steps when nothing is recorded; None where
            that was not measured. A trace lengthens the gaps of a program that is bound by
            launches.
    """

    steps: int
    elapsed_s: float
    busy_s: float
    gaps: int
    longest_gap_s: float
    longest_gap_before: str | None
    collective_only_s: float
    host_s: float | None = None

    @property
    def idle_s(self) -> float:
        """Time in which nothing ran; no more than the program, left alone, gives the GPU."""
        traced_s = self.elapsed_s - self.busy_s
        if self.host_s is None:
            return traced_s
        return min(traced_s, max(0.0, self.host_s - self.busy_s))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A run placed under the roofs of a machine.

    Attributes:
        label: name of the run.
        provenance: origin of each file.
        machine: the roofs, or None (then no floors, bounds or percentages).
        totals: the whole run.
        phases: by phase, in order of first launch.
        families: by family, longest first.
        ranks: by rank.
        kernels: by name, longest first.
        modules: by module of the framework, longest first; empty where modules are not known, or
            the run has too many launches.
        layers: by module without the numbers in its path (``blocks.*.mix``), likewise.
        operators: by operator of the framework, likewise.
        notices: everything the user must know.
        options: settings of the analysis that change numbers (time rule, names, weights).
        timeline: how the steps passed; None where start times were not recorded.
        fleet: the ranks side by side; None where fewer than two have times.
        run: what was analysed: the run that was given, without files that could not be read.
    """

    label: str
    provenance: tuple[Provenance, ...]
    machine: Machine | None
    totals: Group
    phases: tuple[Group, ...]
    families: tuple[Group, ...]
    ranks: tuple[Group, ...]
    kernels: tuple[Kernel, ...]
    notices: tuple[Notice, ...]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    timeline: Timeline | None = None
    fleet: Fleet | None = None
    modules: tuple[Group, ...] = ()
    layers: tuple[Group, ...] = ()
    operators: tuple[Group, ...] = ()
    run: Run | None = dataclasses.field(default=None, compare=False, repr=False)


def quotient(numerator: float | None, denominator: float | None) -> float | None:
    """``numerator / denominator``, or None where either is unknown or the divisor is 0."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    return numerator / denominator
