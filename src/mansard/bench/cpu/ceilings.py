"""From samples to ceilings: medians, limits, and remarks that belong to a number. Pure.

The value of a ceiling is the **median** of its samples: what the machine holds, not what it
touched once. It is the same rule for compute and bandwidth, also for main memory that others share:
the best of many samples would depend on how many were taken. Best and spread stand in the evidence.
Samples in which other programs took a core are not among them (see ``sampling``).
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mansard.bench.cpu.levels import Level
from mansard.bench.cpu.limits import Microarchitecture, flop_per_cycle
from mansard.bench.cpu.recipes import Recipe
from mansard.bench.cpu.sampling import STEADY_SPREAD, UNDISTURBED_SHARE, Series
from mansard.bench.cpu.stream_kernels import STREAMS
from mansard.model.machine import ROOM_ABOVE_LIMIT_CPU, Ceiling
from mansard.units import format_share

#: All threads together below this part of one thread alone: something outside slowed them.
_BELOW_ONE = 0.95
#: A farther level may be this much faster than a nearer one before it is said.
_ORDER_TOLERANCE = 1.05


def compute_ceiling(
    recipe: Recipe,
    series: Series,
    *,
    alone: Series | None,
    clock: Series | None,
    core: Microarchitecture,
    evidence: Mapping[str, Any],
) -> Ceiling:
    """The ceiling of a compute path.

    Args:
        recipe: the instruction.
        series: samples of all threads.
        alone: samples of one thread.
        clock: clock under the same load; None where it could not be had.
        core: what is documented of the core.
        evidence: what was checked; ``threads`` among it.
    """
    clock_hz = clock.rates.median if clock else series.clock_hz
    value = series.rates.median
    most = flop_per_cycle(recipe, core)
    limit = None if most is None else most * clock_hz * evidence["threads"]
    share = None if limit is None else value / limit
    remarks = _disturbance(series, alone)
    if share is not None and share > 1 + ROOM_ABOVE_LIMIT_CPU:
        remarks.append(
            f"This is {format_share(share)} of the documented limit: the limit or the clock is"
            " wrong."
        )
    more: dict[str, Any] = {
        "clock_around_hz": series.clock_hz,
        "clock_under_load_hz": clock.rates.median if clock else None,
        "flop_per_call": series.work_per_call,
        "flop_per_cycle_per_core": value / clock_hz / evidence["threads"],
        "limit": core.source if most is not None else core.reason or "not documented",
    }
    return Ceiling(
        kind="compute",
        value=value,
        unit="flop/s",
        path=recipe.path,
        instruction=recipe.instruction,
        arm="random",
        sm_clock_hz=clock_hz,
        limit_at_clock=limit,
        share_of_limit=share,
        samples=series.rates.samples,
        evidence={**series.evidence(), **more, **evidence, **_alone(alone)},
        reason=" ".join(remarks) or None,
    )


def bandwidth_ceiling(
    level: Level,
    access: str,
    series: Series,
    *,
    alone: Series | None,
    evidence: Mapping[str, Any],
) -> Ceiling:
    """The ceiling of a memory level for one kind of access.

    Args:
        level: where the working set lives.
        access: key of ``STREAMS``.
        series: samples of all threads.
        alone: samples of one thread.
        evidence: what was checked; ``threads`` among it.
    """
    value = series.rates.median
    remarks = [level.remark] * bool(level.remark) + _disturbance(series, alone)
    more = {
        "bytes_per_call": series.work_per_call,
        "bytes_per_cycle_per_core": value / series.clock_hz / evidence["threads"],
        "counted": "bytes that the program reads and writes; no write-allocate",
    }
    return Ceiling(
        kind="bandwidth",
        value=value,
        unit="byte/s",
        level=level.name,
        access=access,
        instruction=f"{8 * evidence['vector_bytes']}-bit"
        f" {'non-temporal ' if access.endswith(' nt') else ''}{_verbs(access)}",
        sm_clock_hz=series.clock_hz,
        samples=series.rates.samples,
        evidence={**series.evidence(), **more, **evidence, **_alone(alone)},
        reason=" ".join(remarks) or None,
    )


def refused_compute(path: str, reason: str, instruction: str | None = None) -> Ceiling:
    """A compute path without a number, and why."""
    return Ceiling(
        kind="compute",
        value=None,
        unit="flop/s",
        status="refused",
        path=path,
        instruction=instruction,
        reason=reason,
    )


def refused_bandwidth(level: str, access: str, reason: str) -> Ceiling:
    """A bandwidth without a number, and why."""
    return Ceiling(
        kind="bandwidth",
        value=None,
        unit="byte/s",
        status="refused",
        level=level,
        access=access,
        reason=reason,
    )


def order_caveats(ceilings: Sequence[Ceiling]) -> list[str]:
    """Levels that read slower than a level farther from the core: one of the two is wrong."""
    reading = [
        ceiling
        for ceiling in ceilings
        if ceiling.kind == "bandwidth" and ceiling.access == "read" and ceiling.value
    ]
    return [
        f"Reading {far.level} was faster than reading {near.level}: one of the two is not what its"
        " name says."
        for near, far in itertools.pairwise(reading)
        if (far.value or 0.0) > _ORDER_TOLERANCE * (near.value or 0.0)
    ]


def _disturbance(series: Series, alone: Series | None) -> list[str]:
    remarks: list[str] = []
    if series.disturbed_kept:
        remarks.append(
            f"In {series.disturbed_kept} of {len(series.rates.samples)} samples other programs took"
            f" more than {format_share(1 - UNDISTURBED_SHARE)} of a core: the true limit is higher."
        )
    if series.rates.spread > STEADY_SPREAD:
        remarks.append(
            f"The samples spread by {format_share(series.rates.spread)}, in each of"
            f" {series.rounds} rounds: something outside changed meanwhile."
        )
    if alone is not None and series.rates.median < _BELOW_ONE * alone.rates.median:
        remarks.append(
            "One thread alone was faster than all together: the value was disturbed from outside."
        )
    return remarks


def _alone(series: Series | None) -> dict[str, Any]:
    if series is None:
        return {}
    return {
        "one_thread": {
            "value": series.rates.median,
            "clock_hz": series.clock_hz,
            **series.evidence(),
            "samples": series.rates.samples,
        }
    }


def _verbs(access: str) -> str:
    reads, writes = STREAMS[access]
    return " and ".join(["loads"] * bool(reads) + ["stores"] * bool(writes))
