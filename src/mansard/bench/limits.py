"""Theory beside each ceiling: what the hardware could do at the clock it ran at.

Rates per clock are those of ``analysis/rates.toml``; what is only needed here stands in
``limits.toml``. Where nothing is known there is no limit, and no share of it.
"""

import functools
import importlib.resources
import tomllib

import msgspec

from mansard.analysis.theoretical import theoretical
from mansard.bench.messages import Task
from mansard.bench.neighbour import NVLINK, UNKNOWN
from mansard.model.device import DeviceFacts

#: FLOP of an FMA against one of an add or a multiply.
_UNFUSED = 2


class Limit(msgspec.Struct, frozen=True):
    """A limit, in the unit of its task, and where it comes from."""

    value: float
    source: str


class _Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """FLOP (or operations) per clock and SM by compute capability."""

    source: str
    per_clock: dict[str, float]


class _Slices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """L2 of one product: bytes that its slices send per L2 clock, and that clock."""

    bytes_per_clock: float
    clock_hz: float
    source: str


class _Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """NVLinks of one chip: how many at most, and payload of one in one direction."""

    links: int
    byte_per_s: float
    source: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rate: dict[str, _Rate]
    l2: dict[str, _Slices]
    nvlink: dict[str, _Links]


def limit_of(
    task: Task, facts: DeviceFacts, numbers: dict[str, float], clock_hz: float | None
) -> Limit | None:
    """The limit of a ceiling at an SM clock; None if it is not known.

    Args:
        task: which ceiling.
        facts: of the device.
        numbers: further attributes of the device.
        clock_hz: mean SM clock of the samples; not needed where another clock rules.
    """
    if task.kind == "compute":
        return _compute(task, facts, clock_hz)
    if task.kind == "bandwidth":
        return _bandwidth(task, facts, numbers, clock_hz)
    return None


def _compute(task: Task, facts: DeviceFacts, clock_hz: float | None) -> Limit | None:
    if clock_hz is None or facts.sm_count is None:
        return None
    at_clock = theoretical(msgspec.structs.replace(facts, sm_clock_max_hz=clock_hz))
    found = at_clock.compute(str(task.path)) if at_clock is not None else None
    limit = None
    if found is not None and found.value is not None:
        limit = Limit(found.value, found.source or "")
    else:
        rate = _table().rate.get(str(task.path))
        per_clock = rate.per_clock.get(str(facts.compute_capability)) if rate else None
        if rate is not None and per_clock is not None:
            limit = Limit(per_clock * facts.sm_count * clock_hz, rate.source)
    if limit is not None and task.instruction in ("add", "mul"):
        return Limit(limit.value / _UNFUSED, f"half of the FMA rate; {limit.source}")
    return limit


def _bandwidth(
    task: Task, facts: DeviceFacts, numbers: dict[str, float], clock_hz: float | None
) -> Limit | None:
    if task.level == "link":
        return _link(task, facts, numbers)
    if task.level == "l2":
        slices = _table().l2.get(str(facts.name))
        if slices is None or task.access != "read":
            return None
        return Limit(slices.bytes_per_clock * slices.clock_hz, slices.source)
    if task.level == "dram":
        if "MIG" in (facts.name or ""):
            return None
        at_clock = theoretical(facts)
    elif clock_hz is not None:
        at_clock = theoretical(msgspec.structs.replace(facts, sm_clock_max_hz=clock_hz))
    else:
        return None
    found = at_clock.bandwidth(str(task.level)) if at_clock is not None else None
    if found is None or found.value is None:
        return None
    return Limit(found.value, found.source or "")


def _link(task: Task, facts: DeviceFacts, numbers: dict[str, float]) -> Limit | None:
    ways = 2 if task.access == "copy" else 1
    if task.instruction == NVLINK:
        chip = _table().nvlink.get(str(facts.compute_capability))
        if chip is None:
            return None
        told = numbers.get("nvlink_links")
        count = min(told or chip.links, chip.links)
        whose = "as NVML counts them" if told else "all of the chip: NVML does not count them"
        source = f"{count:g} links, {whose}; {chip.source}"
        return Limit(ways * count * chip.byte_per_s, source)
    value = None if task.instruction == UNKNOWN else numbers.get("pcie_byte_per_s")
    if not value:
        return None
    return Limit(ways * value, "line rate of the link, as NVML states it, less the line code")


@functools.cache
def _table() -> _Table:
    text = (importlib.resources.files("mansard.bench") / "limits.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)
