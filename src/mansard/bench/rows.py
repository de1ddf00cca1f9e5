"""A machine as rows of text: what a table or a terminal shows of each ceiling."""

import dataclasses
from collections.abc import Iterable

from mansard.model.machine import Ceiling, Machine
from mansard.units import format_share, format_si, unit_factor

_GHZ = unit_factor("ghz")[0]
_DATA = {"low-toggle": "zeros", "random": "random"}
_SECTIONS = {
    "compute": "Compute",
    "bandwidth": "Bandwidth",
    "latency": "Latency",
    "launch": "Launch",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One ceiling.

    Attributes:
        section: ``Compute``, ``Bandwidth``, ``Latency`` or ``Launch``.
        what: path, or level and access.
        how: instruction.
        data: random, zeros, or nothing.
        value: with its unit; ``refused`` where there is none.
        share: of the limit at the clock it ran at.
        clock: SM clock in GHz.
        reason: remark, or why it was refused.
    """

    section: str
    what: str
    how: str
    data: str
    value: str
    share: str
    clock: str
    reason: str | None


def rows_of(machine: Machine) -> tuple[Row, ...]:
    """All ceilings, refused ones included, compute first."""
    order = list(_SECTIONS)
    ceilings = sorted(machine.ceilings, key=lambda ceiling: order.index(ceiling.kind))
    return tuple(_row(ceiling) for ceiling in ceilings)


def _row(ceiling: Ceiling) -> Row:
    clock = ceiling.sm_clock_hz
    return Row(
        section=_SECTIONS[ceiling.kind],
        what=name_of(ceiling),
        how=ceiling.instruction or "",
        data=_DATA.get(ceiling.arm or "", ""),
        value="refused" if ceiling.value is None else format_si(ceiling.value, unit_of(ceiling)),
        share="" if ceiling.share_of_limit is None else format_share(ceiling.share_of_limit),
        clock="" if clock is None else f"{clock / _GHZ:.2f}",
        reason=ceiling.reason,
    )


def name_of(ceiling: Ceiling) -> str:
    """What a ceiling limits, in words: ``tensor bf16``, ``dram copy``, ``launch stream``."""
    if ceiling.kind == "launch":
        return str(ceiling.access)
    if ceiling.path:
        return ceiling.path
    return " ".join(word for word in (ceiling.level, ceiling.access) if word)


def unit_of(ceiling: Ceiling) -> str:
    """The unit as it is printed: FLOP/s, OP/s for integers, B/s or s."""
    if ceiling.unit == "flop/s":
        return "OP/s" if " int" in f" {ceiling.path}" else "FLOP/s"
    return "B/s" if ceiling.unit == "byte/s" else "s"


def footnotes(rows: Iterable[Row]) -> dict[str, int]:
    """Numbers for the reasons of rows, each text once, in order."""
    texts = dict.fromkeys(row.reason for row in rows if row.reason)
    return {text: number for number, text in enumerate(texts, start=1)}
