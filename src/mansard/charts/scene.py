"""What a Roofline chart shows: points, roofs, key and notes. Computes; draws nothing."""

import dataclasses
from collections.abc import Sequence

from mansard.charts.frame import Frame, Roof, data_frame, machine_frame, roofs
from mansard.charts.labels import (
    ABOVE_ROOF_CAUSES,
    above_roof,
    bound_label,
    count_text,
    efficiency_label,
    intensity_names,
    is_tiny,
    known,
    no_flop,
    origin_line,
    positive,
    printable,
    resource_label,
)
from mansard.charts.rows import share
from mansard.model.analysis import Analysis, Kernel
from mansard.model.paths import FLOP_PATHS, LEVELS
from mansard.units import format_share, format_si

#: Kernels that get a number on the chart and a row of its key.
KEY_ROWS = 40

#: Marker area in square points: of all the time, and the least one that can be seen.
_AREA_OF_ALL_TIME = 1000.0
_LEAST_AREA = 10.0

#: Pipes of a kernel, and the share of its FLOP below which the lesser one is not shown.
PIPES = ("tensor", "vector")
_LEAST_PART = 0.01

#: Letters of a note.
_NOTE_LIMIT = 450


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """One kernel at one memory level.

    Attributes:
        number: place of the kernel in the analysis, from 1.
        level: memory level of the intensity.
        intensity: FLOP/byte.
        flop_per_s: rate of all floating-point work.
        x: where it is drawn; differs from ``intensity`` only for a point outside the frame.
        y: where it is drawn; differs from ``flop_per_s`` only for a point outside the frame.
        outside: whether it was moved to the edge.
        area: marker area in square points, proportional to time.
    """

    number: int
    level: str
    intensity: float
    flop_per_s: float
    x: float
    y: float
    outside: bool
    area: float


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What one pipe did of a kernel that uses both, at the outermost level of its bytes.

    Attributes:
        number: place of the kernel in the analysis, from 1.
        pipe: ``tensor`` or ``vector``.
        x: FLOP of the pipe / bytes.
        y: FLOP of the pipe / time.
    """

    number: int
    pipe: str
    x: float
    y: float


@dataclasses.dataclass(frozen=True, slots=True)
class KeyRow:
    """One row of the table beside the chart."""

    number: int
    name: str
    share: float | None
    bound: str
    efficiency: str


@dataclasses.dataclass(frozen=True, slots=True)
class RooflineScene:
    """All that a Roofline chart shows.

    Attributes:
        title: label of the run.
        subtitle: totals of the run.
        frame: limits of the axes.
        roofs: limits of the machine; empty without one.
        levels: memory levels with a point, from the SM outwards.
        points: longest kernel first.
        parts: both pipes of the kernels of the key that use both, where inside the frame.
        rows: key of the numbered kernels.
        rest: placed kernels beyond the key, and their share of the time.
        notes: what cannot be seen on the chart and must be said.
        origin: where points and roofs come from.
    """

    title: str
    subtitle: str
    frame: Frame
    roofs: tuple[Roof, ...]
    levels: tuple[str, ...]
    points: tuple[Point, ...]
    parts: tuple[Part, ...]
    rows: tuple[KeyRow, ...]
    rest: tuple[int, float]
    notes: tuple[str, ...]
    origin: str


def roofline_scene(analysis: Analysis) -> RooflineScene:
    """Place every kernel of an analysis on the hierarchical Roofline chart.

    One point per kernel and level: x = all FLOP / bytes of the level, y = all FLOP / time
    (arXiv 2009.05257). The axes come from the machine; without one, from the points.
    """
    places = [
        (number, kernel, level, x, y)
        for number, kernel in enumerate(analysis.kernels, start=1)
        for level, x, y in kernel_places(kernel)
    ]
    machine = analysis.machine
    frame = machine_frame(machine) if machine else None
    drawn: tuple[Roof, ...] = ()
    if machine and frame:
        used = {path for path, flop in analysis.totals.flop_by_path.items() if flop != 0}
        # A link roof says something only of a run whose kernels were seen to use the link.
        linked = "link" in intensity_names(analysis.kernels, analysis.kernels)
        every = roofs(machine, frame, used_paths=used)
        drawn = tuple(roof for roof in every if roof.name != "link" or linked)
    else:
        frame = data_frame((x, y) for *_, x, y in places)
    points = []
    for number, kernel, level, x, y in places:
        drawn_x, drawn_y = frame.clamp(x, y)
        points.append(
            Point(
                number=number,
                level=level,
                intensity=x,
                flop_per_s=y,
                x=drawn_x,
                y=drawn_y,
                outside=(drawn_x, drawn_y) != (x, y),
                area=marker_area(share(kernel, analysis)),
            )
        )
    placed = _kernels(places)
    present = {point.level for point in points}
    return RooflineScene(
        title=printable(analysis.label or "run", 90),
        subtitle=totals_text(analysis),
        frame=frame,
        roofs=drawn,
        levels=tuple(level for level in LEVELS if level in present),
        points=tuple(points),
        parts=tuple(
            part for number, kernel in placed[:KEY_ROWS] for part in _parts(number, kernel, frame)
        ),
        rows=tuple(key_row(number, kernel, analysis) for number, kernel in placed[:KEY_ROWS]),
        rest=(
            len(placed[KEY_ROWS:]),
            sum(share(kernel, analysis) or 0 for _, kernel in placed[KEY_ROWS:]),
        ),
        notes=tuple(_notes(analysis, points, drawn)),
        origin=origin_line(analysis),
    )


def kernel_places(kernel: Kernel) -> list[tuple[str, float, float]]:
    """Return (level, FLOP/byte, FLOP/s) for each level at which a kernel has a place.

    None without FLOP, time or bytes: a logarithmic axis has no zero.
    """
    rate = positive(kernel.flop_per_s)
    if rate is None:
        return []
    intensity = kernel.intensity
    return [
        (level, x, rate) for level in LEVELS if (x := positive(intensity.get(level))) is not None
    ]


def _parts(number: int, kernel: Kernel, frame: Frame) -> list[Part]:
    work = dict.fromkeys(PIPES, 0.0)
    for path in FLOP_PATHS:
        work[path.pipe] += known(kernel.flop_by_path.get(path.name)) or 0.0
    if min(work.values()) < _LEAST_PART * sum(work.values()):
        return []
    _, outer, rate = kernel_places(kernel)[-1]
    total = sum(work.values())
    parts = []
    for pipe, flop in work.items():
        x, y = outer * flop / total, rate * flop / total
        if frame.clamp(x, y) == (x, y):
            parts.append(Part(number=number, pipe=pipe, x=x, y=y))
    return parts


def marker_area(part: float | None) -> float:
    """Return the area of a marker in square points for a share of the time."""
    return max(_LEAST_AREA, _AREA_OF_ALL_TIME * (positive(part) or 0.0))


def key_row(number: int, kernel: Kernel, analysis: Analysis) -> KeyRow:
    """Return a kernel's row of the key."""
    return KeyRow(
        number=number,
        name=printable(kernel.short_name or kernel.key),
        share=share(kernel, analysis),
        bound=bound_label(kernel),
        efficiency=efficiency_label(kernel),
    )


def totals_text(analysis: Analysis) -> str:
    """Return the totals of a run in one line."""
    totals = analysis.totals
    atleast = "" if totals.flop_complete or totals.flop is None else "at least "
    parts = [
        f"{count_text(totals.launches, 'launch')} of {count_text(totals.kernels, 'kernel')}",
        f"{format_si(totals.duration_s, 's')} on the GPU",
        f"{atleast}{format_si(totals.flop, 'FLOP')}, {format_si(totals.flop_per_s, 'FLOP/s')}",
    ]
    if totals.efficiency is not None:
        parts.append(
            f"floor {format_share(totals.efficiency)} of the time"
            f" (recoverable {format_si(totals.recoverable_s, 's')})"
        )
    return "  \N{MIDDLE DOT}  ".join(parts)


def absent_text(analysis: Analysis) -> list[str]:
    """Return sentences on the kernels that no FLOP axis can show, with their share of the time."""
    zero, unknown = [], []
    for kernel in analysis.kernels:
        if no_flop(kernel):
            zero.append(kernel)
        elif not kernel_places(kernel):
            unknown.append(kernel)
    found = []
    if zero:
        found.append(f"No FLOP, so no place here: {_count_text(zero, analysis)}.")
    if unknown:
        found.append(f"FLOP, bytes or time unknown: {_count_text(unknown, analysis)}.")
    return found


def _count_text(kernels: Sequence[Kernel], analysis: Analysis) -> str:
    launches = sum(kernel.launches for kernel in kernels)
    total = analysis.totals.launches
    parts = [share(kernel, analysis) for kernel in kernels]
    time = None if None in parts else sum(part for part in parts if part is not None)
    of_all = format_share(launches / total if total else None)
    return (
        f"{len(kernels)} of {len(analysis.kernels)} kernels"
        f" ({count_text(launches, 'launch')} = {of_all} of all,"
        f" {format_share(time)} of the time)"
    )


def _notes(analysis: Analysis, points: Sequence[Point], drawn: Sequence[Roof]) -> list[str]:
    notes = absent_text(analysis)
    if analysis.machine is None:
        notes.append("No machine, so no roofs: the axes follow the points.")
    elif not drawn:
        notes.append("No roofs: this machine has no ceiling that can be drawn.")
    outside: dict[int, list[Point]] = {}
    for point in points:
        if point.outside:
            outside.setdefault(point.number, []).append(point)
    if outside:
        named = "; ".join(_outside_text(members) for members in list(outside.values())[:4])
        rest = len(outside) - 4
        more = f"; and {count_text(rest, 'more kernel')}" if rest > 0 else ""
        notes.append(f"Outside the axes, drawn filled at the edge: {named}{more}.")
    numbers = [
        str(number) for number, kernel in enumerate(analysis.kernels, start=1) if above_roof(kernel)
    ]
    if numbers:
        listed = ", ".join(numbers[:8]) + (", ..." if len(numbers) > 8 else "")
        notes.append(
            f"Above the roof, so something is wrong: {listed}. Look at: {ABOVE_ROOF_CAUSES}."
        )
    if any(is_tiny(kernel) for kernel in analysis.kernels):
        notes.append("~: launches too small to judge; starting them counts more than their work.")
    if any(bound_label(kernel) == "?" for kernel in analysis.kernels):
        notes.append("Bound ?: a resource of the machine was not collected for this kernel.")
    if analysis.machine:
        notes += [f"Roofs: {printable(text, 400)}" for text in analysis.machine.caveats[:2]]
    return [printable(note, _NOTE_LIMIT) for note in notes]


def _outside_text(points: Sequence[Point]) -> str:
    levels = ", ".join(f"{resource_label(point.level)} {point.intensity:.3g}" for point in points)
    rate = format_si(points[0].flop_per_s, "FLOP/s")
    return f"{points[0].number} ({levels} FLOP/byte, {rate})"


def _kernels(
    places: Sequence[tuple[int, Kernel, str, float, float]],
) -> list[tuple[int, Kernel]]:
    seen: dict[int, Kernel] = {}
    for number, kernel, *_ in places:
        seen.setdefault(number, kernel)
    return list(seen.items())
