"""What a chip's counters state as the most that each path and level does: ``limits.toml``."""

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping
from importlib import resources
from typing import Literal

import msgspec

from mansard.counters.formula import Formula

Unit = Literal["flop/s", "byte/s"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StatedLimit:
    """One way to read a limit from the counters.

    Attributes:
        name: compute path or memory level.
        label: tells it from others of the same name; empty for the limit itself.
        unit: of the limit.
        formula: work or bytes of the whole chip in one clock.
        clock: counter of that clock, in Hz.
        needs: name without roll-up of a counter that its chips have besides; empty for none.
        meaning: what it counts, a few words.
    """

    name: str
    label: str
    unit: Unit
    formula: Formula
    clock: str
    needs: str
    meaning: str

    @property
    def counters(self) -> tuple[str, ...]:
        """What must be collected for it."""
        return (*self.formula.counters, self.clock)

    def per_clock(self, values: Mapping[str, float | None]) -> float | None:
        """Work or bytes of a clock; None where a counter is unknown."""
        return self.formula.evaluate(values)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    unit: Unit
    clock: str
    formula: str
    meaning: str
    label: str = ""
    needs: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    limit: list[_Entry]


@functools.cache
def stated_limits() -> tuple[StatedLimit, ...]:
    """All entries of the table, in its order."""
    text = (resources.files(__package__) / "limits.toml").read_text(encoding="utf-8")
    return tuple(
        StatedLimit(
            name=entry.name,
            label=entry.label,
            unit=entry.unit,
            formula=Formula.parse(entry.formula),
            clock=entry.clock,
            needs=entry.needs,
            meaning=entry.meaning,
        )
        for entry in msgspec.toml.decode(text, type=_File).limit
    )


def limits_of_chip(base_counters: Collection[str]) -> tuple[StatedLimit, ...]:
    """The limits that a chip states: for each name and label the first that it has counters for.

    Args:
        base_counters: names without roll-up that the chip's library lists.
    """
    found: dict[tuple[str, str], StatedLimit] = {}
    for limit in stated_limits():
        needed = {counter.split(".", 1)[0] for counter in limit.counters} | {limit.needs} - {""}
        if needed <= {*base_counters}:
            found.setdefault((limit.name, limit.label), limit)
    return tuple(
        limit
        for (name, label), limit in found.items()
        if not label or (name, "") not in found or found[name, ""].formula != limit.formula
    )


def counters_of_limits(limits: Iterable[StatedLimit]) -> tuple[str, ...]:
    """What must be collected for several limits, each counter once."""
    return tuple(dict.fromkeys(name for limit in limits for name in limit.counters))
