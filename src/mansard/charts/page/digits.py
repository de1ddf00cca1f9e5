"""Fewer digits for large runs, wherever no figure that is shown changes by it.

A figure of the report has three digits. Most numbers need no more than five for all figures that
come of them to stay the same, and floors follow from bytes and FLOP; the rest keep every digit.
"""

import dataclasses
from collections.abc import Callable, Mapping

from mansard.analysis.floors import LAUNCH, bandwidth_of, ceiling_of
from mansard.charts.columns import intensity_text
from mansard.charts.page.compact import PACKED_DIGITS
from mansard.charts.rows import intensity, rate_text, share
from mansard.model.analysis import Analysis, Kernel
from mansard.model.machine import Machine
from mansard.model.paths import FLOP_PATHS, LEVELS, PATHS
from mansard.units import format_share, format_si

Number = float | None


def rates(machine: Machine | None) -> dict[str, float]:
    """Return what floors are made of: ceilings by path and level, and the cost of a launch."""
    if machine is None:
        return {}
    found = {path.name: ceiling_of(machine, path) for path in PATHS}
    found |= {level: bandwidth_of(machine, level) for level in LEVELS}
    cost = machine.launch_cost("graph node")
    found[LAUNCH] = cost.value if cost else None
    return {name: value for name, value in found.items() if value}


def following(kernel: Kernel, rate: Mapping[str, float]) -> dict[str, Number]:
    """Return what the page works out for a kernel; ``follow`` in data.js does the same.

    Right for launches that are all alike; where they are not, the page is given the value.
    """
    duration, launches = kernel.duration_s, kernel.launches
    shortest = None if duration is None or not launches else duration / launches
    least = kernel.duration_min_s
    longest = None if duration is None or least is None else duration - (launches - 1) * least
    done = [kernel.flop_by_path.get(path.name) for path in FLOP_PATHS]
    known = [work for work in done if work is not None]
    floors = {name: _floor(name, kernel, rate) for name in kernel.floors_s}
    all_zero = kernel.zero_flop_launches == launches
    return {
        "duration_min_s": shortest,
        "duration_max_s": longest,
        "flop": sum(known) if known else None,
        "zero_flop_duration_s": duration if all_zero else 0.0,
        **{f"floors_s.{name}": floor for name, floor in floors.items()},
        # Of the kernel's own floors, which may differ from these.
        "floor_s": max((f for f in kernel.floors_s.values() if f is not None), default=None),
    }


def _floor(name: str, kernel: Kernel, rate: Mapping[str, float]) -> Number:
    if name == LAUNCH:
        return rate[LAUNCH] * kernel.launches if LAUNCH in rate else None
    if name in LEVELS:
        moved = kernel.bytes_by_level.get(name)
        return None if moved is None or name not in rate else moved / rate[name]
    total = 0.0
    for path in PATHS:
        work = kernel.flop_by_path.get(path.name)
        if path.pipe == name and work:
            if path.name not in rate:
                return None
            total += work / rate[path.name]
    return total


def shortened(kernel: Kernel, analysis: Analysis, rate: Mapping[str, float]) -> Kernel:
    """Return the kernel with as few digits as leave every figure of it as it is."""
    shown = _figures(kernel, analysis)
    for digits in (PACKED_DIGITS, PACKED_DIGITS + 1):
        cut = _cut(kernel, digits)
        for attempt in (_followed(cut, rate), cut):
            if _figures(attempt, analysis) == shown:
                return attempt
    return kernel


def _cut(kernel: Kernel, digits: int) -> Kernel:
    def cut(value: Number) -> Number:
        return None if value is None else float(f"{value:.{digits}g}")

    return _changed(kernel, cut)


def _changed(kernel: Kernel, change: Callable[[Number], Number]) -> Kernel:
    return dataclasses.replace(
        kernel,
        duration_s=change(kernel.duration_s),
        duration_min_s=change(kernel.duration_min_s),
        duration_max_s=change(kernel.duration_max_s),
        flop=change(kernel.flop),
        op_int=change(kernel.op_int),
        flop_by_path={key: change(value) for key, value in kernel.flop_by_path.items()},
        bytes_by_level={key: change(value) for key, value in kernel.bytes_by_level.items()},
        zero_flop_duration_s=change(kernel.zero_flop_duration_s),
        near_zero_flop_duration_s=change(kernel.near_zero_flop_duration_s),
        floors_s={key: change(value) for key, value in kernel.floors_s.items()},
        floor_s=change(kernel.floor_s),
    )


def _followed(kernel: Kernel, rate: Mapping[str, float]) -> Kernel:
    """Return the kernel with the values that follow from its others, where it has them."""
    if kernel.launches <= 1:
        kernel = dataclasses.replace(kernel, duration_min_s=kernel.duration_s)
    values = following(kernel, rate)

    def take(name: str, own: Number) -> Number:
        return own if own is None or values[name] is None else values[name]

    floors = {name: take(f"floors_s.{name}", own) for name, own in kernel.floors_s.items()}
    kernel = dataclasses.replace(
        kernel,
        duration_max_s=take("duration_max_s", kernel.duration_max_s)
        if kernel.launches <= 2
        else kernel.duration_max_s,
        flop=take("flop", kernel.flop),
        zero_flop_duration_s=take("zero_flop_duration_s", kernel.zero_flop_duration_s),
        floors_s=floors,
    )
    largest = following(kernel, rate)["floor_s"]
    own = kernel.floor_s
    if own is not None and largest is not None and format_si(own) == format_si(largest):
        kernel = dataclasses.replace(kernel, floor_s=largest)
    return kernel


def _figures(kernel: Kernel, analysis: Analysis) -> list[str]:
    """Return every figure of a kernel as the terminal, the tables and the page write it."""
    sizes = [
        kernel.duration_s,
        kernel.duration_min_s,
        kernel.duration_max_s,
        kernel.flop,
        kernel.op_int,
        kernel.floor_s,
        kernel.recoverable_s,
        *(work for work in kernel.flop_by_path.values() if work),
        *kernel.bytes_by_level.values(),
        *kernel.floors_s.values(),
    ]
    return [
        *(format_si(size) for size in sizes),
        rate_text(kernel),
        *(intensity_text(intensity(kernel, level)) for level in kernel.intensity),
        *(
            format_share(floor / kernel.duration_s)
            for floor in kernel.floors_s.values()
            if floor is not None and kernel.duration_s
        ),
        format_share(share(kernel, analysis)),
        format_share(kernel.efficiency),
    ]
