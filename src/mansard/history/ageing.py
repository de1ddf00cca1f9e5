"""The same GPU measured over months: which of its ceilings moved, when, and what else did then."""

import dataclasses
from collections.abc import Iterable, Sequence

from mansard.bench.rows import name_of
from mansard.history.changes import LEAST_RUNS, Change, change_points
from mansard.model.machine import Ceiling, Machine


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CeilingTrend:
    """One ceiling of one GPU over time.

    Attributes:
        name: what it limits, how it is reached, and the data.
        unit: of the values.
        values: one a measurement, in order of time.
        changes: the steps of its level.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    changes: tuple[Change, ...]

    def is_worse(self, change: Change) -> bool:
        """Whether a step is a loss: less bandwidth or work, or more time."""
        return (change.after < change.before) != (self.unit == "s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """One GPU over time.

    Attributes:
        gpu: its UUID; the name of its machine files where they have none.
        device: name of the product.
        dates: of the measurements, in order (ISO 8601).
        drivers: of the measurements; None where not recorded.
        trends: of the ceilings that every measurement has, those that changed first.
    """

    gpu: str
    device: str
    dates: tuple[str, ...]
    drivers: tuple[str | None, ...]
    trends: tuple[CeilingTrend, ...]

    @property
    def enough(self) -> bool:
        """Whether there are enough measurements to tell a change from noise."""
        return len(self.dates) >= LEAST_RUNS


def over_time(machines: Sequence[Machine]) -> tuple[Ageing, ...]:
    """Put the measurements of each GPU in order, and find the steps of its ceilings.

    Args:
        machines: of any number of GPUs, in any order. Those without a date are left out, and so
            are GPUs that were measured once.
    """
    groups: dict[str, list[Machine]] = {}
    for machine in machines:
        if isinstance(machine.provenance.get("created"), str):
            groups.setdefault(machine.device.uuid or machine.name, []).append(machine)
    return tuple(
        _ageing(gpu, sorted(group, key=lambda one: str(one.provenance["created"])))
        for gpu, group in groups.items()
        if len(group) > 1
    )


def _ageing(gpu: str, group: Sequence[Machine]) -> Ageing:
    tables = [{_name(c): c for c in reversed(one.ceilings) if c.value is not None} for one in group]
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    trends = (_trend(name, [table[name] for table in tables], len(shared)) for name in shared)
    return Ageing(
        gpu=gpu,
        device=group[-1].device.name or "device unknown",
        dates=tuple(str(one.provenance["created"]) for one in group),
        drivers=tuple(_text(one.provenance.get("driver_version")) for one in group),
        trends=tuple(sorted(trends, key=lambda trend: not trend.changes)),
    )


def _trend(name: str, ceilings: Iterable[Ceiling], series: int) -> CeilingTrend:
    ceilings = tuple(ceilings)
    values = tuple(c.value for c in ceilings if c.value is not None)
    return CeilingTrend(
        name=name,
        unit=ceilings[0].unit,
        values=values,
        changes=change_points(values, series=series),
    )


def _name(ceiling: Ceiling) -> str:
    words = (name_of(ceiling), ceiling.instruction, ceiling.arm)
    return " ".join(word for word in words if word)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
