"""A machine as rows of text: what a table or a terminal shows of each ceiling."""

import dataclasses
from collections.abc import Iterable

from mansard.model.machine import Ceiling, Machine, printed_unit
from mansard.units import format_share, format_si, unit_factor

_GHZ = unit_factor("ghz")[0]
#: Share of its limit from which a pipe is called filled.
_FILLED = 0.9
_LIBRARY = "library"
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
    return tuple(_row(ceiling, _short_of(ceiling, ceilings)) for ceiling in ceilings)


def _short_of(ceiling: Ceiling, others: Iterable[Ceiling]) -> str | None:
    """What to say of an instruction that leaves room in a pipe which another one fills."""
    if not (ceiling.path or "").startswith("tensor") or ceiling.instruction == _LIBRARY:
        return None
    if ceiling.share_of_limit is None or ceiling.share_of_limit > _FILLED:
        return None
    fuller = [
        _first_word(other.instruction)
        for other in others
        if (other.path, other.arm) == (ceiling.path, ceiling.arm)
        and other.instruction != _LIBRARY
        and (other.share_of_limit or 0.0) > _FILLED
    ]
    if not fuller:
        return None
    own = _first_word(ceiling.instruction)
    return f"the limit is that of the tensor pipe: {fuller[0]} reaches it here, {own} does not"


def _first_word(instruction: str | None) -> str:
    """Without what is told of the sums: ``mma.sync`` of ``mma.sync fp16-acc``."""
    return next(iter((instruction or "").split()), "another instruction")


def _row(ceiling: Ceiling, remark: str | None) -> Row:
    clock, unit = ceiling.sm_clock_hz, printed_unit(ceiling.unit, ceiling.path)
    return Row(
        section=_SECTIONS[ceiling.kind],
        what=name_of(ceiling),
        how=ceiling.instruction or "",
        data=data_of(ceiling.arm),
        value="refused" if ceiling.value is None else format_si(ceiling.value, unit),
        share="" if ceiling.share_of_limit is None else format_share(ceiling.share_of_limit),
        clock="" if clock is None else f"{clock / _GHZ:.2f}",
        reason="; ".join(text for text in (remark, ceiling.reason) if text) or None,
    )


def data_of(arm: str | None) -> str:
    """The data of a ceiling in the word that tables use: ``zeros``, ``random`` or nothing."""
    return _DATA.get(arm or "", "")


def name_of(ceiling: Ceiling) -> str:
    """What a ceiling limits, in words: ``tensor bf16``, ``dram copy``, ``launch stream``."""
    if ceiling.kind == "launch":
        return str(ceiling.access)
    if ceiling.path:
        return ceiling.path
    return " ".join(word for word in (ceiling.level, ceiling.access) if word)


def footnotes(rows: Iterable[Row]) -> dict[str, int]:
    """Numbers for the reasons of rows, each text once, in order."""
    texts = dict.fromkeys(row.reason for row in rows if row.reason)
    return {text: number for number, text in enumerate(texts, start=1)}
