"""Above the roof: a contradiction, and what in the numbers speaks for which cause of it."""

import dataclasses
from collections.abc import Iterator, Sequence

from mansard.analysis.advice_case import Case, floor_of, keys_of, level_word, listed, time_of
from mansard.model.advice import Advice
from mansard.model.analysis import Kernel, quotient
from mansard.model.machine import Ceiling, Machine
from mansard.model.paths import LEVELS
from mansard.units import format_si

#: From here on no clock, precision or sparsity explains it.
_FAR = 10.0
#: A factor of two (sparsity, packed halves) with some room for clocks.
_TWICE = 2.1
#: Levels inside the SM clock's reach: their bandwidth goes with it.
_CLOCKED = ("shared", "l1", "l2")


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """Why a kernel may seem faster than its roof."""

    name: str
    text: str


def is_above_roof(kernel: Kernel, case: Case) -> bool:
    """Whether a kernel as a whole is faster than its floors allow."""
    limit = 1 + case.option("tolerance_above_roof")
    efficiency = kernel.efficiency
    return kernel.launches_above_roof > 0 and efficiency is not None and efficiency > limit


def above_roof(kernels: Sequence[Kernel], case: Case) -> Iterator[Advice]:
    """One diagnosis for all kernels that the same causes fit."""
    alike: dict[tuple[str, ...], list[Kernel]] = {}
    for kernel in kernels:
        names = tuple(cause.name for cause in causes(kernel, case))
        alike.setdefault((_bound(kernel), *names), []).append(kernel)
    for members in alike.values():
        found = causes(members[0], case)
        times = quotient(floor_of(members), time_of(members)) or 0.0
        first, *others = found
        also = f" Else: {'; '.join(cause.text for cause in others)}." if others else ""
        yield Advice(
            rule="above-roof",
            sentence=f"{times:.3g} times as fast as the {level_word(_bound(members[0]))} roof "
            f"allows, which cannot be: {listed(members)}. Draw no conclusion from this before it "
            f"is explained. Look first at this: {first.text}.{also}",
            recoverable_s=None,
            kernels=keys_of(members),
            evidence={
                "times_the_roof": times,
                "duration_s": time_of(members),
                "bound": _bound(members[0]),
                "causes": ", ".join(cause.name for cause in found),
            },
        )


def causes(kernel: Kernel, case: Case) -> list[Cause]:
    """What may be wrong, what the numbers speak for first."""
    times = kernel.efficiency or 0.0
    bound, machine = _bound(kernel), case.machine
    roof = _roof(kernel, bound, machine)
    found = [
        *_foreign(case),
        *_units(times),
        *_clock(kernel, bound, roof, case),
        *_precision(kernel, bound, times, machine),
        *_factor_two(kernel, bound, times),
        *_collection(kernel, case),
        *_level(bound),
    ]
    if roof is not None and roof.status == "published":
        found.append(
            Cause("roof", "the roof is a published figure; measure this GPU with 'mansard bench'")
        )
    return found or [
        Cause("scope", "the time may be of other launches than the counts, or the roof too low")
    ]


def _bound(kernel: Kernel) -> str:
    """The resource with the highest floor, whatever else may be unknown."""
    floors = {name: floor for name, floor in kernel.floors_s.items() if floor and name != "launch"}
    return max(floors, key=lambda name: floors[name], default=kernel.bound or "unknown")


def _main_path(kernel: Kernel, pipe: str) -> str | None:
    work = {
        path: flop for path, flop in kernel.flop_by_path.items() if flop and path.startswith(pipe)
    }
    return max(work, key=lambda path: work[path], default=None)


def _roof(kernel: Kernel, bound: str, machine: Machine | None) -> Ceiling | None:
    if machine is None:
        return None
    if bound in LEVELS:
        return machine.bandwidth(bound)
    path = _main_path(kernel, bound)
    return machine.compute(path) if path else None


def _foreign(case: Case) -> Iterator[Cause]:
    if case.told("other-machine"):
        yield Cause("machine", "the roofs are of another GPU than the run")


def _units(times: float) -> Iterator[Cause]:
    if times >= _FAR:
        yield Cause(
            "units",
            "so far above, a unit is wrong, a total over ranks was taken for one of them, or the "
            "time is of other launches than the counts",
        )


def _clock(kernel: Kernel, bound: str, roof: Ceiling | None, case: Case) -> Iterator[Cause]:
    """The roof at the kernel's clock: if that is enough, it is the clock."""
    clock = kernel.sm_clock_hz
    if roof is None or not roof.sm_clock_hz or not clock or clock <= roof.sm_clock_hz:
        return
    if bound in LEVELS and bound not in _CLOCKED:
        return
    explained = (kernel.efficiency or 0.0) * roof.sm_clock_hz / clock
    if explained <= 1 + case.option("tolerance_above_roof"):
        yield Cause(
            "clock",
            f"the roof was measured at {format_si(roof.sm_clock_hz, 'Hz')} (a power limit holds "
            f"long tensor work there), and these ran at {format_si(clock, 'Hz')}; at that clock "
            "they are within it",
        )


def _precision(
    kernel: Kernel, bound: str, times: float, machine: Machine | None
) -> Iterator[Cause]:
    """Tensor work that the counters gave to the CUDA cores."""
    path = _main_path(kernel, "vector")
    if bound != "vector" or path is None or machine is None:
        return
    tensor = "tensor fp64" if path == "vector fp64" else "tensor tf32"
    if path == "vector fp16":
        tensor = "tensor fp16"
    roof, other = machine.compute(path), machine.compute(tensor)
    if roof is None or other is None or not roof.value or not other.value:
        return
    if times <= other.value / roof.value:
        yield Cause(
            "precision",
            f"work of the tensor cores ({tensor}) may have been counted as {path}: their roof is "
            f"{other.value / roof.value:.3g} times as high",
        )


def _factor_two(kernel: Kernel, bound: str, times: float) -> Iterator[Cause]:
    if times > _TWICE:
        return
    if bound == "tensor":
        yield Cause(
            "sparsity", "2:4 sparsity does up to twice the dense work, and the roof is dense"
        )
    if bound == "vector" and _main_path(kernel, "vector") == "vector fp16":
        yield Cause(
            "half-weights",
            "half instructions count as packed pairs, twice the work where one half is unused "
            "(--half-weights unpacked counts the other way)",
        )


def _collection(kernel: Kernel, case: Case) -> Iterator[Cause]:
    if kernel.untimed_launches or kernel.partial_levels:
        yield Cause(
            "partial", "some launches lack a time or bytes, so that sums do not belong together"
        )
    if any(origin.join for origin in case.analysis.provenance):
        yield Cause("join", "times and counts come from several runs of the program, joined")


def _level(bound: str) -> Iterator[Cause]:
    if bound in _CLOCKED:
        yield Cause(
            "level",
            f"{level_word(bound)} may be counted otherwise than its roof was measured: compare "
            "the counter's definition",
        )
