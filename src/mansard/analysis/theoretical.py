"""Ceilings computed from the attributes of a GPU, for when none were measured.

Rates per clock and SM stand in ``rates.toml`` with their sources. What is not known there (the
L2 bandwidth of every chip, for one) gets no ceiling: nothing is guessed.
"""

import functools
import importlib.resources
import math
import re
import tomllib
from collections.abc import Iterator

import msgspec

from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine

_CAVEAT_COMPUTED = (
    "These roofs are computed, not measured: rates per clock times the highest clock. A power "
    "limit holds tensor work well below that clock, and no program reaches all of the memory's "
    "rate, so percentages of these roofs are lower than of measured ones. "
    "'mansard bench' measures."
)
_CAVEAT_L2 = (
    "There is no L2 roof and no launch cost: they cannot be computed from public attributes."
)


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One compute capability of ``rates.toml``; see there."""

    source: str
    l1_bytes: float
    l1_source: str
    rates: dict[str, float]
    lacks: tuple[str, ...] = ()
    half_on_geforce: tuple[str, ...] = ()


def theoretical(device: DeviceFacts) -> Machine | None:
    """The ceilings that follow from a device's attributes, or None if too little is known.

    Compute and L1 (and shared memory, the same data path) are rate x SMs x highest SM clock;
    device memory is clock x bus width x 2 / 8, two transfers a clock.

    Args:
        device: needs its compute capability, and what each ceiling is computed from.
    """
    rates = _table().get(device.compute_capability or "")
    if rates is None:
        return None
    found = (*_sm_ceilings(device, rates), *_dram_ceilings(device))
    # Of attributes of a damaged file no roof follows.
    ceilings = tuple(each for each in found if 0 < (each.value or 0.0) < math.inf)
    if not ceilings:
        return None
    return Machine(
        name=_name(device),
        basis="theoretical",
        device=device,
        ceilings=ceilings,
        caveats=(
            _CAVEAT_COMPUTED,
            _CAVEAT_L2,
            *_missing(ceilings),
            *_accumulation(device, rates),
        ),
    )


def lacking_paths(compute_capability: str | None) -> frozenset[str] | None:
    """Floating-point paths that GPUs of this capability do not have; None if it is not known."""
    rates = _table().get(compute_capability or "")
    return None if rates is None else frozenset(rates.lacks)


def _sm_ceilings(device: DeviceFacts, rates: Rates) -> Iterator[Ceiling]:
    if not device.sm_count or not device.sm_clock_max_hz:
        return
    cycles_per_s = device.sm_count * device.sm_clock_max_hz
    for path, per_clock in rates.rates.items():
        yield Ceiling(
            kind="compute",
            value=per_clock * cycles_per_s,
            unit="flop/s",
            status="theoretical",
            path=path,
            sm_clock_hz=device.sm_clock_max_hz,
            reason=f"{per_clock:g} per clock and SM, dense",
            source=rates.source,
        )
    for level in ("shared", "l1"):
        yield Ceiling(
            kind="bandwidth",
            value=rates.l1_bytes * cycles_per_s,
            unit="byte/s",
            status="theoretical",
            level=level,
            sm_clock_hz=device.sm_clock_max_hz,
            reason=f"{rates.l1_bytes:g} byte per clock and SM",
            source=rates.l1_source,
        )


def _dram_ceilings(device: DeviceFacts) -> Iterator[Ceiling]:
    if device.dram_clock_hz and device.dram_bus_bits:
        yield Ceiling(
            kind="bandwidth",
            value=device.dram_clock_hz * device.dram_bus_bits * 2 / 8,
            unit="byte/s",
            status="theoretical",
            level="dram",
            reason="memory clock x bus width x 2 / 8",
            source="attributes of the device",
        )


def _missing(ceilings: tuple[Ceiling, ...]) -> Iterator[str]:
    if not any(ceiling.kind == "compute" for ceiling in ceilings):
        yield "There are no compute roofs: the number of SMs or their highest clock is not known."
    if not any(ceiling.level == "dram" for ceiling in ceilings):
        yield "There is no roof of device memory: its clock or bus width is not known."


def _accumulation(device: DeviceFacts, rates: Rates) -> Iterator[str]:
    """GeForce parts accumulate tensor products in fp32 at half rate; others do not."""
    name = device.name or ""
    if rates.half_on_geforce and (not name or re.search(r"geforce|titan", name, re.IGNORECASE)):
        whose = name or "GeForce parts"
        yield (
            f"{whose}: products on {', '.join(rates.half_on_geforce)} that accumulate in fp32 "
            "run at half of the roof drawn (tf32 and bf16 always do); the roof is that of "
            "professional parts."
        )


def _name(device: DeviceFacts) -> str:
    stem = device.name or f"compute-{device.compute_capability}"
    return re.sub(r"[^a-z0-9.]+", "-", stem.lower()).strip("-")[:80] + "-theoretical"


@functools.cache
def _table() -> dict[str, Rates]:
    text = (importlib.resources.files("mansard.analysis") / "rates.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Rates])
