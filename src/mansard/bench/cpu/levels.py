"""Where each memory level can be measured: sizes from the caches that the system describes."""

import dataclasses
import math
from collections.abc import Sequence

from mansard.bench.cpu.processor import Cache
from mansard.units import format_si

#: Main memory is measured over this many times all last-level caches together.
_DRAM_TIMES_CACHE = 4
#: At least this many times, or the result would be that of a cache.
_DRAM_LEAST_TIMES = 2
#: Working set of main memory where the system does not describe its caches.
_DRAM_UNKNOWN_BYTES = 1 << 30
#: Part of the free memory that is taken at most, for all threads and once more for one alone.
_MEMORY_SHARE = 0.3
#: How far a rate must fall, or stay, for the sweep to contradict a described size.
_FALLS_BELOW = 0.7
_STAYS_ABOVE = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """A memory level as a thread of a team sees it.

    Attributes:
        name: ``l1``, ``l2``, ``l3`` or ``dram``.
        capacity_bytes: its share of the level for each thread; None for main memory.
        footprint_bytes: all arrays of one thread together, chosen to live in this level.
        reason: why the level cannot be measured; empty if it can.
        remark: what belongs to its numbers.
    """

    name: str
    capacity_bytes: int | None
    footprint_bytes: int
    reason: str = ""
    remark: str = ""


def plan_levels(
    caches: Sequence[Cache], cpus: Sequence[int], memory_bytes: int | None
) -> tuple[Level, ...]:
    """Choose a working set for each level.

    Within a cache the set lies between its own size and the size of the cache below, in the
    geometric middle but at least four times the lower one and at most half of the own: far from
    both edges.

    Args:
        caches: as the system describes them.
        cpus: processors that the threads run on; a shared cache is divided among them.
        memory_bytes: memory that may be taken; None if unknown.
    """
    used = frozenset(cpus)
    mine = [cache for cache in caches if cache.cpus & used]
    found: list[Level] = []
    below = 0
    for number in sorted({cache.level for cache in mine}):
        share = min(
            cache.size_bytes // len(cache.cpus & used) for cache in mine if cache.level == number
        )
        found.append(_cache_level(f"l{number}", share, below))
        below = share
    last = max((cache.level for cache in mine), default=0)
    total = sum(cache.size_bytes for cache in mine if cache.level == last)
    found.append(_main_memory(total, len(used), memory_bytes))
    return tuple(found)


def sweep_sizes(levels: Sequence[Level], factor: float) -> list[int]:
    """Working sets of a thread from a quarter of the first cache to main memory."""
    first = levels[0].capacity_bytes or levels[0].footprint_bytes
    end = levels[-1].footprint_bytes
    start = max(4096, first // 4)
    steps = max(1, math.ceil(math.log(max(end / start, factor)) / math.log(factor)))
    ratio = (end / start) ** (1 / steps) if end > start else 1.0
    return [round(start * ratio**step) for step in range(steps + 1)]


def contradictions(levels: Sequence[Level], sweep: Sequence[tuple[float, float]]) -> dict[str, str]:
    """Levels whose described size the sweep does not show.

    Args:
        levels: caches from the nearest to main memory.
        sweep: pairs (working set of a thread in bytes, byte/s of all threads), rising sizes.

    Returns:
        For each such level a sentence.
    """
    said: dict[str, str] = {}
    for level in levels:
        if level.capacity_bytes is None or level.reason or not sweep:
            continue
        inside = [
            (size, rate)
            for size, rate in sweep
            if level.footprint_bytes / 1.01 <= size <= level.capacity_bytes / 2
        ]
        near = _rate_at(sweep, level.footprint_bytes)
        beyond = [rate for size, rate in sweep if size >= 2 * level.capacity_bytes]
        slow = next(((size, rate) for size, rate in inside if rate < _FALLS_BELOW * near), None)
        if slow:
            said[level.name] = (
                f"The described size of {level.name} is {_bytes(level.capacity_bytes)} a thread,"
                f" but reading falls from {format_si(near, 'B/s')} at"
                f" {_bytes(level.footprint_bytes)} to {format_si(slow[1], 'B/s')} at"
                f" {_bytes(slow[0])}: less of it can be used, for example because others share it."
            )
        elif beyond and max(beyond) > _STAYS_ABOVE * near:
            said[level.name] = (
                f"The described size of {level.name} is {_bytes(level.capacity_bytes)} a thread,"
                f" but reading beyond twice that is as fast ({format_si(max(beyond), 'B/s')}):"
                " the sweep does not show this level."
            )
    return said


def _cache_level(name: str, share: int, below: int) -> Level:
    if not below:
        return Level(name, share, share // 2)
    if share >= 8 * below:
        middle = math.isqrt(below * share)
        return Level(name, share, min(max(4 * below, middle), share // 2))
    if share >= 4 * below:
        return Level(name, share, share // 2)
    # A last-level cache of recent servers is hardly larger than the one below, and holds what
    # that one lost: together they hold more than either.
    footprint = 3 * below // 2
    if footprint <= 0.8 * (share + below):
        return Level(
            name,
            share,
            footprint,
            remark=f"A thread's share of {name} ({_bytes(share)}) is less than four times the"
            f" cache below ({_bytes(below)}): some of the traffic may have stayed below.",
        )
    return Level(
        name,
        share,
        footprint,
        reason=f"A thread's share of {name} ({_bytes(share)}) is too small beside the cache below"
        f" ({_bytes(below)}) to be told apart from it.",
    )


def _main_memory(caches_bytes: int, threads: int, memory_bytes: int | None) -> Level:
    wanted = _DRAM_TIMES_CACHE * caches_bytes or _DRAM_UNKNOWN_BYTES
    taken = wanted if memory_bytes is None else min(wanted, int(_MEMORY_SHARE * memory_bytes))
    least = _DRAM_LEAST_TIMES * caches_bytes or _DRAM_UNKNOWN_BYTES // 4
    footprint = taken // threads
    if taken < least:
        return Level(
            "dram",
            None,
            footprint,
            reason=f"Only {_bytes(taken)} can be taken of {_bytes(memory_bytes or 0)} free memory;"
            f" {_bytes(least)} are needed to get past {_bytes(caches_bytes)} of cache.",
        )
    remark = "" if caches_bytes else "The system does not describe its caches."
    return Level("dram", None, footprint, remark=remark)


def _rate_at(sweep: Sequence[tuple[float, float]], size: float) -> float:
    """The rate at the size of the sweep that is nearest by ratio."""
    return min(sweep, key=lambda row: abs(math.log(row[0] / size)))[1]


def _bytes(size: float) -> str:
    return format_si(size, "B")
