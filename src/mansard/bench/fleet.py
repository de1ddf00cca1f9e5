"""Machines side by side: ratios of their ceilings, and which of a fleet is slow."""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Sequence

from mansard.analysis.robust import limit
from mansard.bench.rows import name_of
from mansard.errors import MachineError
from mansard.model.machine import Ceiling, Machine

#: Fewer machines than this have no usual value to differ from.
LEAST_FLEET = 4
#: 1.4826 x median absolute deviation estimates a standard deviation.
_TO_SIGMA = 1.4826
#: Machines of one kind differ by this much anyway; less is never called a difference.
_FLOOR = 0.005

#: What the machines of a fleet should have in common, from provenance or device.
_FACTS = (
    "name",
    "driver_version",
    "cuda_version",
    "power_limit_w",
    "sm_count",
    "sm_clock_max_hz",
    "dram_clock_hz",
    "dram_bytes",
    "gpus_measured",
    "mansard_version",
)

Key = tuple[str, str, str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One ceiling on several machines.

    Attributes:
        name: what it limits.
        instruction: how it is reached.
        arm: data.
        unit: of the values.
        values: one a machine; None where it has no such ceiling or refused it.
        ratios: to the first machine, see ``ratios_to_first``; of times, larger is slower.
        scores: robust z-scores, positive is better; None with fewer than LEAST_FLEET values.
    """

    name: str
    instruction: str
    arm: str
    unit: str
    values: tuple[float | None, ...]
    ratios: tuple[float | None, ...]
    scores: tuple[float | None, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """One machine within a fleet.

    Attributes:
        name: of the machine.
        compared: ceilings that at least LEAST_FLEET machines share.
        median_ratio: median over ceilings of value / median of the fleet, inverted for times.
        slow: names of ceilings on which it is slow, slowest first, with ratio and score.
    """

    name: str
    compared: int
    median_ratio: float | None
    slow: tuple[tuple[str, float, float], ...]


def compare(machines: Sequence[Machine]) -> tuple[Line, ...]:
    """Every ceiling that some of the machines have.

    Raises:
        MachineError: fewer than two machines.
    """
    if len(machines) < 2:
        raise MachineError("give at least two machines to compare")
    tables = [{_key(ceiling): ceiling for ceiling in reversed(m.ceilings)} for m in machines]
    keys = dict.fromkeys(_key(ceiling) for machine in machines for ceiling in machine.ceilings)
    return tuple(_line(key, [table.get(key) for table in tables]) for key in keys)


def ratios_to_first(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each value over the first; None where one of the two is not known."""
    first = values[0] if values else None
    return tuple(value / first if value and first else None for value in values)


def standings(machines: Sequence[Machine]) -> tuple[Standing, ...]:
    """Where each machine stands in a fleet of at least LEAST_FLEET.

    Raises:
        MachineError: fewer machines.
    """
    if len(machines) < LEAST_FLEET:
        raise MachineError(f"a fleet is {LEAST_FLEET} machines or more, {len(machines)} given")
    lines = [line for line in compare(machines) if any(s is not None for s in line.scores)]
    found = []
    for index, machine in enumerate(machines):
        ratios, slow = [], []
        for line in lines:
            value, score = line.values[index], line.scores[index]
            if value is None or score is None:
                continue
            middle = statistics.median(v for v in line.values if v is not None)
            ratio = middle / value if line.unit == "s" else value / middle
            ratios.append(ratio)
            known = sum(other is not None for other in line.values)
            if score < -limit(known, series=len(lines)):
                slow.append((f"{line.name} {line.instruction} {line.arm}".strip(), ratio, score))
        found.append(
            Standing(
                machine.name,
                len(ratios),
                statistics.median(ratios) if ratios else None,
                tuple(sorted(slow, key=lambda one: one[1])),
            )
        )
    return tuple(found)


@dataclasses.dataclass(frozen=True, slots=True)
class Oddity:
    """Machines of a fleet that were measured under other conditions than most.

    Attributes:
        fact: what differs, e.g. ``driver_version``.
        usual: what more than half of the machines have.
        found: by other value, the names of the machines that have it.
    """

    fact: str
    usual: str
    found: dict[str, tuple[str, ...]]


def oddities(machines: Sequence[Machine]) -> tuple[Oddity, ...]:
    """Facts that more than half of the machines share and some do not.

    A machine that does not state a fact is not odd, and where no value has a majority none is.
    """
    found = []
    for fact in _FACTS:
        stated = [(one.name, value) for one in machines if (value := _fact(one, fact)) is not None]
        counts = Counter(value for _, value in stated)
        if len(counts) < 2:
            continue
        usual, count = counts.most_common(1)[0]
        if 2 * count <= len(stated):
            continue
        others = {
            value: tuple(name for name, own in stated if own == value)
            for value in counts
            if value != usual
        }
        found.append(Oddity(fact, usual, others))
    return tuple(found)


def _fact(machine: Machine, fact: str) -> str | None:
    value = machine.provenance.get(fact)
    if value is None:
        value = getattr(machine.device, fact, None)
    return None if value is None else str(value)


def _key(ceiling: Ceiling) -> Key:
    return (ceiling.kind, name_of(ceiling), ceiling.instruction or "", ceiling.arm or "")


def _line(key: Key, ceilings: Sequence[Ceiling | None]) -> Line:
    values = tuple(ceiling.value if ceiling is not None else None for ceiling in ceilings)
    unit = next(ceiling.unit for ceiling in ceilings if ceiling is not None)
    return Line(
        name=key[1],
        instruction=key[2],
        arm=key[3],
        unit=unit,
        values=values,
        ratios=ratios_to_first(values),
        scores=_scores(values, higher_is_better=unit != "s"),
    )


def _scores(values: Sequence[float | None], *, higher_is_better: bool) -> tuple[float | None, ...]:
    known = [value for value in values if value is not None]
    if len(known) < LEAST_FLEET:
        return (None,) * len(values)
    middle = statistics.median(known)
    deviation = _TO_SIGMA * statistics.median(abs(value - middle) for value in known)
    scale = max(deviation, _FLOOR * middle)
    sign = 1 if higher_is_better else -1
    return tuple(None if value is None else sign * (value - middle) / scale for value in values)
