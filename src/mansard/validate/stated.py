"""What the chip states as its limits, beside the ceilings of the machine that fits. Pure."""

from collections.abc import Iterable

import msgspec

from mansard.counters.limits import StatedLimit, limits_of_chip
from mansard.model.machine import Ceiling, Machine
from mansard.validate.messages import LimitValues
from mansard.validate.result import Limit

#: Levels that run on the SM clock; the others have clocks of their own.
_SM_LEVELS = ("shared", "l1")


#: The limit itself, or what comes to the same on chips that state only the sparse one.
_LABELS = ("", "half of sparse")


def limits_from(read: LimitValues, machine: Machine | None) -> tuple[Limit, ...]:
    """The limits of a chip.

    Args:
        read: values of the counters.
        machine: measured ceilings of the same GPU; None where there are none.
    """
    return tuple(
        _limit(stated, read, machine) for stated in limits_of_chip(frozenset(read.base_counters))
    )


def beside_ceilings(machine: Machine, limits: Iterable[Limit]) -> Machine:
    """The machine with what the chip itself states in the evidence of each ceiling.

    ``counter_limit`` is at the clock of the ceiling where that is the limit's clock (compute,
    shared memory, L1), and at the clock that was read with the limit elsewhere.
    """
    stated: dict[str, Limit] = {}
    for limit in sorted(limits, key=lambda limit: bool(limit.label)):
        if limit.per_clock and limit.label in _LABELS:
            stated.setdefault(limit.name, limit)
    ceilings = tuple(_beside(ceiling, stated) for ceiling in machine.ceilings)
    return msgspec.structs.replace(machine, ceilings=ceilings)


def _beside(ceiling: Ceiling, stated: dict[str, Limit]) -> Ceiling:
    limit = stated.get(ceiling.path or ceiling.level or "")
    if limit is None or limit.unit != ceiling.unit or not limit.per_clock or not ceiling.value:
        return ceiling
    on_sm_clock = limit.unit == "flop/s" or limit.name in _SM_LEVELS
    clock = ceiling.sm_clock_hz if on_sm_clock else limit.clock_hz
    if not clock:
        return ceiling
    value = limit.per_clock * clock
    known = {
        "counter_limit": value,
        "counter_limit_source": limit.counter,
        "share_of_counter_limit": round(ceiling.value / value, 6),
    }
    return msgspec.structs.replace(ceiling, evidence={**ceiling.evidence, **known})


def _limit(stated: StatedLimit, read: LimitValues, machine: Machine | None) -> Limit:
    per_clock = stated.per_clock(read.values)
    clock = read.values.get(stated.clock)
    ceiling = _ceiling(stated, machine)
    measured = ceiling.value if ceiling else None
    return Limit(
        name=stated.name,
        label=stated.label,
        per_clock=per_clock,
        clock_hz=clock,
        value=per_clock * clock if per_clock is not None and clock is not None else None,
        unit=stated.unit,
        counter=stated.formula.text,
        meaning=stated.meaning,
        machine=machine.name if machine and ceiling else None,
        measured=measured,
        share=_share(stated, ceiling, per_clock, clock),
    )


def _ceiling(stated: StatedLimit, machine: Machine | None) -> Ceiling | None:
    if machine is None:
        return None
    if stated.unit == "flop/s":
        return machine.compute(stated.name)
    return machine.bandwidth(stated.name)


def _share(
    stated: StatedLimit, ceiling: Ceiling | None, per_clock: float | None, clock: float | None
) -> float | None:
    """The ceiling at its own clock, where that is the clock of the limit."""
    if ceiling is None or ceiling.value is None or not per_clock:
        return None
    on_sm_clock = stated.unit == "flop/s" or stated.name in _SM_LEVELS
    rate = ceiling.sm_clock_hz if on_sm_clock else clock
    return ceiling.value / (per_clock * rate) if rate else None
