"""Notices of an analysis: what is missing, impossible or suspicious in it, and what to do."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mansard.analysis.cube import Plan, Row
from mansard.analysis.floors import bandwidth_of, ceiling_of
from mansard.analysis.groups import missing_flop
from mansard.analysis.launches import COPY_KINDS
from mansard.model.analysis import Group, Kernel, quotient
from mansard.model.device import DeviceFacts
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.paths import FLOP_PATHS, LEVELS, PATHS
from mansard.model.run import Run
from mansard.units import format_share, format_si

#: A finding about some kernels is told when they take at least this share of the time.
_WORTH_TELLING = 0.01
#: Below this share of its roof a long communication kernel did hardly anything but wait.
_WAITING = 0.05
#: From this mean duration on, a launch is long: many times what starting it costs.
_LONG_IN_SHORT_LAUNCHES = 20
#: Clocks this much below those of every roof make the roofs out of reach.
_CLOCK_APART = 0.05

_TENSOR_NAMES = re.compile(
    r"gemm(?!v)|[hi]mma|wgmma|mma_|tensorop|nvjet|fprop|dgrad|wgrad|flash_(fwd|bwd)|fmha|sdpa"
    r"|attention|matmul|s\d{3,5}cudnn",
    re.IGNORECASE,
)
#: What is said of a run as a whole in other words than of its counters.
_REWORDED = ("vector-not-collected", "time-not-collected")
_NCU = "Nsight Compute"
_PEER_NAMES = re.compile(
    r"nccl|nvshmem|all_?to_?all|all2all|deep_ep|(\b|_|mega_?)moe", re.IGNORECASE
)

_ABOVE_CAUSES = (
    "the roof was measured at a lower clock, or under a power limit that the run did not meet",
    "the run uses 2:4 sparsity and the roof is dense",
    "work was counted on the wrong precision (TF32 as FP32), or with a wrong FLOP factor",
    "the level is counted otherwise than its roof was measured",
    "units, or a time of other launches than the counts (several runs joined)",
    "the roof is too low (published or computed; measure it with 'mansard bench')",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Findings:
    """All that notices are made from.

    Attributes:
        run: the launches' origin.
        machine: the roofs.
        plan: what was computed.
        row: sums of the whole run.
        totals: the same as a group.
        kernels: by name.
        kinds: launches by kind.
        faulty: columns with impossible values.
    """

    run: Run
    machine: Machine | None
    plan: Plan
    row: Row
    totals: Group
    kernels: Sequence[Kernel]
    kinds: Mapping[str, int]
    faulty: Sequence[str]

    def notices(self) -> Iterator[Notice]:
        """Every finding, the most fundamental first."""
        if not self.totals.launches:
            yield Notice(
                "no-launches",
                "the run holds no launches; check that the program reached the GPU while it was "
                "recorded, and that no filter or phase left everything out",
            )
            return
        yield from self._kinds()
        yield from self._faulty()
        yield from self._durations()
        yield from self._work()
        yield from self._tensor()
        yield from self._levels()
        yield from self._tiny()
        if self.machine is not None:
            yield from self._device(self.machine)
            yield from self._clock(self.machine)
            yield from self._no_ceiling(self.machine)
            yield from self._above()
            yield from self._waiting()

    def _kinds(self) -> Iterator[Notice]:
        """B29: a graph or a range is not a kernel."""
        others = {
            kind: count
            for kind, count in self.kinds.items()
            if kind != "kernel" and kind not in COPY_KINDS
        }
        if others:
            counted = ", ".join(f"{count} of kind '{kind}'" for kind, count in others.items())
            yield Notice(
                "not-kernels",
                f"{counted}: each stands for many kernels, whose bounds cannot be told apart; "
                "they are rows of their own. Record graphs node by node (ncu --graph-profiling "
                "node) to see their kernels",
            )

    def _faulty(self) -> Iterator[Notice]:
        if self.faulty:
            yield Notice(
                "impossible-values",
                f"{self.row.count('invalid')} launches hold negative, infinite or absurdly large "
                f"values in {', '.join(self.faulty)}; they are taken as unknown. The file was not "
                "written by Mansard, or is damaged",
            )

    def _durations(self) -> Iterator[Notice]:
        untimed, launches = self.totals.untimed_launches, self.totals.launches
        if untimed == launches and self.is_whole():
            yield Notice(
                "time-not-collected",
                "no row has a duration: there are no rates, floors or percentages. Those that ncu "
                "takes of ranges and graphs are of little use; 'mansard profile --with ncu' takes "
                "them from a traced run",
            )
        elif untimed == launches:
            yield Notice(
                "time-not-collected",
                "no launch has a duration: there are no rates, floors or percentages; record the "
                f"time too{self._remedy(['duration_s'])}",
            )
        elif untimed:
            yield Notice(
                "time-not-collected",
                f"{untimed} of {launches} launches have no duration: their groups have no rate, "
                "and floors and efficiencies leave those launches out",
            )
        elif self.plan.options.time_rule == "paper" and self.row.count("clocked") < launches:
            yield Notice(
                "clock-not-collected",
                "the time rule 'paper' needs the SM clock of every launch; kernels that lack it "
                "are timed by their durations",
            )

    def _work(self) -> Iterator[Notice]:
        missing = missing_flop(self.row, self.plan)
        if missing and self.totals.flop is None:
            yield Notice(
                "flop-unknown",
                "FLOP, rates and intensities are unknown, not 0: no work was seen, and what "
                "could show it was not counted",
            )
        for pipe in ("vector", "tensor"):
            paths = [path for path in FLOP_PATHS if path.pipe == pipe and path.column in missing]
            if not paths:
                continue
            remedy = self._remedy(path.column for path in paths)
            if pipe == "vector" and self.is_whole():
                remedy = (
                    f". {_NCU} counts none of it in ranges and whole graphs; counting kernels one "
                    "by one gives it (mansard profile --with ncu --replay kernel --graphs node)"
                )
            yield Notice(
                f"{pipe}-not-collected",
                f"{', '.join(path.name for path in paths)} not counted on every launch: FLOP "
                "are a lower bound, and floors and bounds take it that paths which were "
                f"never counted did no work{remedy}",
            )

    def _tensor(self) -> Iterator[Notice]:
        """B01: tensor work without tensor counters looks like no work at all."""
        tensor = {path.column for path in FLOP_PATHS if path.pipe == "tensor"}
        unseen = [
            kernel.short_name
            for kernel in self.kernels
            if _TENSOR_NAMES.search(kernel.key or "")
            and not kernel.flop_complete
            and not any(kernel.flop_by_path[path.name] for path in PATHS if path.pipe == "tensor")
        ]
        if unseen and missing_flop(self.row, self.plan) & tensor:
            yield Notice(
                "tensor-work-unseen",
                f"{_listed(unseen)} look like tensor work by their names, but none of it was "
                f"counted: their FLOP and bounds are not known{self._remedy(sorted(tensor))}",
            )

    def _levels(self) -> Iterator[Notice]:
        for level in LEVELS:
            has_roof = self.machine is not None and bandwidth_of(self.machine, level) is not None
            missing = self.row.missing(f"bytes_{level}")
            if not missing or (level in ("shared", "link") and not has_roof):
                continue
            if level == "link" and not any(k.family == "collective" for k in self.kernels):
                continue  # taken as unused (floors.py): only collectives are known to need it
            counted = self.row.count("counted")
            who = "any launch" if missing == counted else f"{missing} of {counted} launches"
            yield Notice(
                f"{level}-not-collected",
                f"bytes of level {level} are not known of {who}: no intensity and no floor "
                f"there{self._remedy([f'bytes_{level}'])}",
            )

    def _tiny(self) -> Iterator[Notice]:
        """B02: tiny kernels move more for being kernels than for their work."""
        tiny = [kernel for kernel in self.kernels if kernel.tiny]
        share = quotient(_time(tiny), self.totals.duration_s)
        if share is not None and share >= _WORTH_TELLING:
            yield Notice(
                "tiny-kernels",
                f"{len(tiny)} kernels ({format_share(share)} of the time) are too small to judge "
                f"their intensity or efficiency: {_listed(k.short_name for k in tiny)}",
            )

    def _device(self, machine: Machine) -> Iterator[Notice]:
        for origin in self.run.provenance:
            for device in origin.devices:
                if _differ(device, machine.device):
                    yield Notice(
                        "other-machine",
                        f"the run is of {device.name or 'a GPU'} (compute capability "
                        f"{device.compute_capability or 'unknown'}), the roofs of "
                        f"'{machine.name}' are of {machine.device.name or 'another'} "
                        f"({machine.device.compute_capability or 'unknown'}): percentages say "
                        "nothing; give the machine file of the run's GPU",
                    )
                    return

    def _clock(self, machine: Machine) -> Iterator[Notice]:
        clock = quotient(self.row.value("clocks_hz"), self.row.count("clocked"))
        used = list(_roof_clocks(machine))
        if clock is not None and used and clock < (1 - _CLOCK_APART) * min(used):
            yield Notice(
                "clock-mismatch",
                f"the run's SM clock was {format_si(clock, 'Hz')}, the compute roofs were taken "
                f"at {format_si(min(used), 'Hz')} or more: they were out of reach. Record without "
                "clock control (ncu --clock-control none), or compare with that in mind",
            )

    def _no_ceiling(self, machine: Machine) -> Iterator[Notice]:
        unroofed = [
            path.name
            for path in PATHS
            if (self.row.value(path.column) or 0) > 0 and ceiling_of(machine, path) is None
        ]
        unroofed += [
            f"level {level}"
            for level in LEVELS
            if (self.row.value(f"bytes_{level}") or 0) > 0 and bandwidth_of(machine, level) is None
        ]
        if unroofed:
            yield Notice(
                "no-ceiling",
                f"machine '{machine.name}' has no ceiling for {', '.join(unroofed)}: floors there "
                "are unknown, not 0",
            )

    def _above(self) -> Iterator[Notice]:
        count = self.totals.launches_above_roof
        if count:
            worst = [kernel for kernel in self.kernels if kernel.launches_above_roof]
            yield Notice(
                "above-roof",
                f"{count} of {self.totals.launches} launches are faster than their roof by more "
                f"than {format_share(self.plan.options.tolerance_above_roof)}, which cannot be "
                f"({_listed(k.short_name for k in worst)}). Possible causes: "
                f"{'; '.join(_ABOVE_CAUSES)}",
            )

    def _waiting(self) -> Iterator[Notice]:
        """B31: a kernel that waits for its peers has no utilisation of its own."""
        long_s = _LONG_IN_SHORT_LAUNCHES * self.plan.options.short_launch_s
        waiting = [
            kernel
            for kernel in self.kernels
            if (kernel.family == "collective" or _PEER_NAMES.search(kernel.key or ""))
            and (kernel.duration_s or 0) >= long_s * kernel.launches
            and kernel.efficiency is not None
            and kernel.efficiency < _WAITING
        ]
        share = quotient(_time(waiting), self.totals.duration_s)
        if share is not None and share >= _WORTH_TELLING:
            yield Notice(
                "waiting-on-peers",
                f"{_listed(k.short_name for k in waiting)} ({format_share(share)} of the time) "
                "hardly use the GPU and may be waiting for other ranks, which a profiler "
                "serialises: their times and percentages say nothing; take them from a trace",
            )

    def is_whole(self) -> bool:
        """Whether Nsight Compute counted ranges or graphs, and not their kernels."""
        by_ncu = any(origin.collector == _NCU for origin in self.run.provenance)
        return by_ncu and bool(self.kinds.keys() & {"range", "graph"})

    def _remedy(self, columns: Iterable[str]) -> str:
        """Which counters would fill columns, as the files' own tables say."""
        counters = [
            counter
            for column in columns
            for origin in self.run.provenance
            for counter in origin.missing.get(column, ())
        ]
        return f"; collect {_listed(dict.fromkeys(counters), 12)}" if counters else ""


def findings(facts: Findings, told: Iterable[Notice]) -> tuple[Notice, ...]:
    """What was told already and what is found here, each kind once.

    A reader knows its counters and not its rows, so of ranges the words of here hold.

    Args:
        facts: what to look at.
        told: notices of the run and of the caller.
    """
    found = tuple(facts.notices())
    better = {each.code for each in found if each.code in _REWORDED and facts.is_whole()}
    before = tuple(each for each in dict.fromkeys(told) if each.code not in better)
    codes = {notice.code for notice in before}
    return before + tuple(notice for notice in found if notice.code not in codes)


def _listed(names: Iterable[str], most: int = 3) -> str:
    found = list(dict.fromkeys(names))
    rest = len(found) - most
    return ", ".join(found[:most]) + (f" and {rest} more" if rest > 0 else "")


def _time(kernels: Iterable[Group]) -> float:
    return sum(kernel.duration_s or 0.0 for kernel in kernels)


def _differ(device: DeviceFacts, other: DeviceFacts) -> bool:
    """Whether two descriptions cannot be of one product."""
    capabilities = {device.compute_capability, other.compute_capability} - {None}
    if len(capabilities) > 1:
        return True
    if not device.name or not other.name:
        return False
    short, long = sorted((device.name.lower(), other.name.lower()), key=len)
    return short not in long


def _roof_clocks(machine: Machine) -> list[float]:
    """SM clocks of the compute roofs in use."""
    roofs = (machine.compute(path.name) for path in PATHS)
    return [roof.sm_clock_hz for roof in roofs if roof is not None and roof.sm_clock_hz]
