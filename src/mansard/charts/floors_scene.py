"""What the floors chart shows: least times per resource beside the measured time.

Kernels without FLOP have no place on a FLOP/s axis; here they stand beside all others.
"""

import dataclasses
from collections.abc import Sequence

from mansard.charts.frame import decade_below
from mansard.charts.labels import (
    RESOURCES,
    above_roof,
    bound_label,
    efficiency_label,
    known,
    no_flop,
    origin_line,
    positive,
    printable,
)
from mansard.charts.rows import share
from mansard.charts.scene import totals_text
from mansard.model.analysis import Analysis, Kernel, quotient
from mansard.units import format_share

#: Kernels shown, longest first.
ROWS = 15

#: Why an efficiency can be above every floor; the page says the same.
LAUNCHES_DIFFER = (
    "An efficiency can be above every floor of its kernel: each launch counts its own highest"
    " floor, and launches of one kernel are not all bound by the same resource."
)


@dataclasses.dataclass(frozen=True, slots=True)
class FloorRow:
    """One kernel.

    Attributes:
        number: place of the kernel in the analysis, from 1.
        name: short name.
        launches: number of launches.
        duration_s: measured time.
        share: part of the time of the run.
        floor_s: sum over launches of the largest floor; None when unknown.
        bound: resource of the largest floor, a key of ``shares`` where known.
        bound_text: the same in words.
        shares: floor / measured time of each resource; None where it is unknown.
        efficiency: floor / measured time, in words.
        above_roof: whether that cannot be.
        remark: ``no FLOP`` or ``integer`` for kernels without floating-point work, else empty.
    """

    number: int
    name: str
    launches: int
    duration_s: float | None
    share: float | None
    floor_s: float | None
    bound: str | None
    bound_text: str
    shares: dict[str, float | None]
    efficiency: str
    above_roof: bool
    remark: str


@dataclasses.dataclass(frozen=True, slots=True)
class FloorsScene:
    """All that the floors chart shows."""

    title: str
    subtitle: str
    rows: tuple[FloorRow, ...]
    resources: tuple[str, ...]
    notes: tuple[str, ...]
    origin: str


def floors_scene(analysis: Analysis) -> FloorsScene:
    """Put the least time of each resource beside the measured time, for the longest kernels."""
    rows = tuple(
        _row(number, kernel, analysis)
        for number, kernel in enumerate(analysis.kernels[:ROWS], start=1)
    )
    present = {name for row in rows for name, part in row.shares.items() if part is not None}
    return FloorsScene(
        title=printable(analysis.label or "run", 90),
        subtitle=totals_text(analysis),
        rows=rows,
        resources=tuple(name for name in RESOURCES if name in present),
        notes=tuple(_notes(analysis, rows)),
        origin=origin_line(analysis),
    )


def _row(number: int, kernel: Kernel, analysis: Analysis) -> FloorRow:
    duration = positive(kernel.duration_s)
    return FloorRow(
        number=number,
        name=printable(kernel.short_name or kernel.key),
        launches=kernel.launches,
        duration_s=duration,
        share=share(kernel, analysis),
        floor_s=known(kernel.floor_s),
        bound=kernel.bound,
        bound_text=bound_label(kernel),
        shares={
            name: known(quotient(known(floor), duration)) for name, floor in kernel.floors_s.items()
        },
        efficiency=efficiency_label(kernel),
        above_roof=above_roof(kernel),
        remark=_remark(kernel),
    )


def _launches_differ(row: FloorRow) -> bool:
    """Tell whether the floor, as printed, is above that of every resource."""
    part = quotient(row.floor_s, row.duration_s)
    highest = max((share for share in row.shares.values() if share is not None), default=None)
    if part is None or highest is None:
        return False
    return part > highest and format_share(part) != format_share(highest)


def _remark(kernel: Kernel) -> str:
    if not no_flop(kernel):
        return ""
    return "integer" if kernel.op_int else "no FLOP"


def round_ticks(longest: float) -> list[float]:
    """Return 3 to 8 round positions from 0 up to ``longest``."""
    scale = decade_below(longest)
    step = next(scale * part for part in (0.2, 0.5, 1, 2) if longest / (scale * part) < 7)
    # Through text, so that 3 x 0.1 is 0.3 and not 0.30000000000000004.
    return [float(f"{step * count:.6g}") for count in range(int(longest / step * 1.0001) + 1)]


def _notes(analysis: Analysis, rows: Sequence[FloorRow]) -> list[str]:
    notes = []
    rest = analysis.kernels[len(rows) :]
    if rest:
        parts = [share(kernel, analysis) or 0 for kernel in rest]
        notes.append(
            f"The {len(rows)} longest kernels; {len(rest)} more have"
            f" {format_share(sum(parts))} of the time."
        )
    if analysis.machine is None:
        notes.append("No machine, so no floors: only the measured time is shown.")
    else:
        notes.append(
            "A floor is the least time that a resource needs: FLOP / ceiling of the pipe, bytes /"
            " bandwidth of the level, cost of a launch. The largest is the bound; the white part"
            " of a bar is recoverable time."
        )
        if any(_launches_differ(row) for row in rows):
            notes.append(LAUNCHES_DIFFER)
    missing = sorted(
        {name for row in rows for name, part in row.shares.items() if part is None} & set(RESOURCES)
    )
    if missing:
        notes.append(f"Unknown for some kernels, so without a bar: {', '.join(missing)}.")
    if any(row.above_roof for row in rows):
        notes.append("Bars beyond 100 % cannot be: see the warnings of the report.")
    return notes
