"""Launches without floating-point work: the paper's zero-AI kernels, and those next to none."""

import dataclasses
from collections.abc import Iterator

from mansard.analysis import analyze
from mansard.analysis.parts import Part
from mansard.model.analysis import Analysis, Kernel
from mansard.study.blocks import Block, Heading, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.paper import paper
from mansard.study.words import NOT_MEASURED, count, share, with_share
from mansard.units import format_share

#: FLOP for each byte of device memory below which they are no work on the data: compilers move
#: constants with instructions of the half-precision pipe, and such a kernel casts or copies.
STRAY = 0.01

_PHASES = ("forward", "backward", "step")


@dataclasses.dataclass(frozen=True, slots=True)
class Workless:
    """Launches of kernels that did no floating-point work, or next to none.

    Attributes:
        launches: their number.
        duration_s: their time.
        of_launches: number of all.
        of_duration_s: time of all; None where it is not known.
    """

    launches: int
    duration_s: float
    of_launches: int
    of_duration_s: float | None


def workless(analysis: Analysis) -> Workless:
    """Count what a phase launched without work.

    Args:
        analysis: of one phase, since the paper takes all launches of a kernel in it together.
    """
    found = [kernel for kernel in analysis.kernels if _is_workless(kernel)]
    return Workless(
        launches=sum(kernel.launches for kernel in found),
        duration_s=sum(kernel.duration_s or 0.0 for kernel in found),
        of_launches=analysis.totals.launches,
        of_duration_s=analysis.totals.duration_s,
    )


def _is_workless(kernel: Kernel) -> bool:
    if kernel.zero_flop_launches == kernel.launches:
        return True
    moved = kernel.bytes_by_level.get("dram")
    if kernel.flop is None or not kernel.flop_complete or moved is None:
        return False
    return kernel.flop < STRAY * moved


def census(study: Study) -> Iterator[Block]:
    """The paper's census of its phases, and the same of each step of its network."""
    yield Heading("Launches without floating-point work")
    yield Paragraph(
        "The paper counts launches of kernels that did no floating-point work in their phase. "
        "Today one stray instruction takes all launches of a kernel out of that count: compilers "
        "move constants with half-precision instructions, a cast to 16 bits has a few of them. So "
        "kernels with less than one operation for 100 bytes of device memory are counted too; in "
        "the paper's data of the forward pass there are none. Fills and copies by the driver are "
        "launches, as the kernels that did the same in the paper."
    )
    rows: list[tuple[str, ...]] = [
        (
            f"V100, {phase.run}",
            phase.phase,
            count(phase.launches),
            with_share(phase.zero_flop_launches, phase.launches),
            format_share(phase.zero_flop_time_share),
            "",
            "",
        )
        for phase in paper().phase
        if phase.phase in _PHASES
    ]
    theirs = len(rows)
    seen = set()
    for entry in study.entries:
        c = entry.cell.configuration
        # Another optimizer launches the same forward and backward pass.
        kind = (c.model, c.framework, c.precision, c.layout, c.execution)
        if c.model.startswith("deeplab") and entry.run is not None and kind not in seen:
            seen.add(kind)
            rows += _rows(entry)
    head = ("cell", "phase", "launches", "none", "their time", "or next to none", "their time")
    if len(rows) > theirs:
        yield Table(head, tuple(rows), words=2)
    else:
        yield Paragraph(NOT_MEASURED)


def _rows(entry: Entry) -> Iterator[tuple[str, ...]]:
    for key in _PHASES:
        phase = entry.phase(key)
        # A graph is one launch of many kernels.
        if phase is None or entry.run is None or phase.launches < 2:
            continue
        found = workless(analyze(Part(entry.run, phase=key)))
        yield (
            entry.cell.title,
            key,
            count(phase.launches),
            with_share(phase.zero_flop_launches, phase.launches),
            share(phase.zero_flop_duration_s, phase.duration_s),
            with_share(found.launches, found.of_launches),
            share(found.duration_s, found.of_duration_s),
        )
