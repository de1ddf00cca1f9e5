"""What the time chart shows: FLOP time against byte time, per launch (after arXiv 2009.04598).

Position is work, not rate: a kernel that does more FLOP/s by doing more work moves away from the
origin instead of looking better. Each kernel is two markers on its line of equal intensity: where
its work could be done (the floors), and where the measured time puts it.
"""

import dataclasses
from collections.abc import Sequence

from mansard.charts.frame import Frame, decade_above, decade_below
from mansard.charts.labels import count_text, known, origin_line, positive, printable
from mansard.charts.rows import share
from mansard.charts.scene import KEY_ROWS, KeyRow, key_row, marker_area, totals_text
from mansard.model.analysis import Analysis, Kernel
from mansard.model.machine import Ceiling
from mansard.units import format_si

#: Memory level of the byte time: the first of these that the machine and the run have.
_LEVELS = ("dram", "l2", "l1", "shared")


@dataclasses.dataclass(frozen=True, slots=True)
class TimePoint:
    """One kernel, mean of its launches.

    Attributes:
        number: place of the kernel in the analysis, from 1.
        byte_s: least time for its bytes.
        flop_s: least time for its FLOP; 0 without FLOP (drawn on the strip below the chart).
        measured_s: measured time; at least the larger of the two, unless above the roof.
        area: marker area in square points, proportional to the time of all its launches.
    """

    number: int
    byte_s: float
    flop_s: float
    measured_s: float
    area: float

    @property
    def reached(self) -> tuple[float, float]:
        """The point of equal intensity whose limiting time is the measured one."""
        factor = self.measured_s / max(self.byte_s, self.flop_s)
        return self.byte_s * factor, self.flop_s * factor

    def ends(self, frame: Frame) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return both markers as drawn: least time and measured time, inside the frame.

        A least time below the axes moves along its line of equal intensity to the edge, unless
        all of that line up to the measured time lies below them. ``script/time.js`` does the same.
        """
        reached_byte_s, reached_flop_s = self.reached
        to_edge = 1.0
        if reached_byte_s >= frame.x_min and reached_flop_s >= frame.y_min:
            to_edge = max(frame.x_min / self.byte_s, frame.y_min / self.flop_s, 1.0)
        best = frame.clamp(self.byte_s * to_edge, self.flop_s * to_edge)
        return best, frame.clamp(reached_byte_s, reached_flop_s)


@dataclasses.dataclass(frozen=True, slots=True)
class TimeScene:
    """All that the time chart shows.

    Attributes:
        frame: limits of both axes in seconds (byte time, FLOP time).
        level: memory level of the byte time.
        bandwidth: its roof in byte/s, for the second axis.
        iso_times: times of the lines of equal run time, in seconds.
        launch_s: least time of one launch; work inside that box is bound by launching.
    """

    title: str
    subtitle: str
    frame: Frame
    level: str
    bandwidth: float | None
    points: tuple[TimePoint, ...]
    iso_times: tuple[float, ...]
    launch_s: float | None
    rows: tuple[KeyRow, ...]
    rest: tuple[int, float]
    notes: tuple[str, ...]
    origin: str


def time_scene(analysis: Analysis) -> TimeScene:
    """Place kernels by the least time of their FLOP and of their bytes."""
    level, ceiling = _byte_level(analysis)
    placed = []
    for number, kernel in enumerate(analysis.kernels, start=1):
        point = _place(number, kernel, level, marker_area(share(kernel, analysis)))
        if point:
            placed.append((point, kernel))
    points = [point for point, _ in placed]
    launch = analysis.machine.launch_cost("stream") if analysis.machine else None
    launch_s = positive(launch.value) if launch else None
    frame = _frame(points, launch_s)
    iso_times = []
    time = frame.x_min * 10
    while time < frame.x_max:
        iso_times.append(time)
        time = float(f"{time * 10:.3g}")
    rest = placed[KEY_ROWS:]
    return TimeScene(
        title=printable(analysis.label or "run", 90),
        subtitle=totals_text(analysis),
        frame=frame,
        level=level,
        bandwidth=positive(ceiling.value) if ceiling else None,
        points=tuple(points),
        iso_times=tuple(iso_times),
        launch_s=launch_s,
        rows=tuple(key_row(point.number, kernel, analysis) for point, kernel in placed[:KEY_ROWS]),
        rest=(len(rest), sum(share(kernel, analysis) or 0 for _, kernel in rest)),
        notes=tuple(_notes(analysis, points, launch_s)),
        origin=origin_line(analysis),
    )


def _byte_level(analysis: Analysis) -> tuple[str, Ceiling | None]:
    for level in _LEVELS:
        ceiling = analysis.machine.bandwidth(level) if analysis.machine else None
        if ceiling and positive(analysis.totals.bytes_by_level.get(level)):
            return level, ceiling
    return "dram", None


def _place(number: int, kernel: Kernel, level: str, area: float) -> TimePoint | None:
    byte_s = known(kernel.floors_s.get(level))
    pipes = [known(kernel.floors_s.get(pipe)) for pipe in ("tensor", "vector")]
    flop_s = max((floor for floor in pipes if floor is not None), default=None)
    measured = positive(kernel.duration_s)
    if byte_s is None or flop_s is None or measured is None or not (byte_s or flop_s):
        return None
    if byte_s == 0 or kernel.launches < 1:
        return None
    return TimePoint(
        number=number,
        byte_s=byte_s / kernel.launches,
        flop_s=flop_s / kernel.launches,
        measured_s=measured / kernel.launches,
        area=area,
    )


def _frame(points: Sequence[TimePoint], launch_s: float | None) -> Frame:
    ends = [(p.byte_s, p.flop_s) for p in points] + [p.reached for p in points]
    xs = [x for x, _ in ends] + ([launch_s] if launch_s else [])
    ys = [y for _, y in ends if y > 0] + ([launch_s] if launch_s else [])
    if not xs or not ys:
        return Frame(0.001, 10.0, 0.001, 10.0)
    # The same decades on both axes to the right; work far below a launch needs no room.
    high = decade_above(max([*xs, *ys]) * 1.5)
    x_low = max(decade_below(min(xs)), high / 10**7)
    y_low = max(decade_below(min(ys)), high / 10**7)
    return Frame(decade_below(x_low * 1.001), high, decade_below(y_low * 1.001), high)


def _notes(analysis: Analysis, points: Sequence[TimePoint], launch_s: float | None) -> list[str]:
    if analysis.machine is None:
        return ["No machine, so no least times: nothing can be placed on this chart."]
    explained = (
        "Mean of each kernel's launches. Filled: least time of its bytes and of its FLOP (the"
        " longer pipe, each path at its own roof). Hollow: the same intensity at the measured"
        " time. The shorter their link, the nearer to the roof. On the machine balance bytes and"
        " FLOP take equal time; FLOP rule above it, bytes below."
    )
    notes = [explained]
    without = sum(1 for point in points if point.flop_s == 0)
    if without:
        verb = "stands" if without == 1 else "stand"
        notes.append(
            f"{count_text(without, 'kernel')} without FLOP {verb} on the strip below the chart."
        )
    absent = len(analysis.kernels) - len(points)
    if absent:
        verb = "has" if absent == 1 else "have"
        notes.append(
            f"{count_text(absent, 'kernel')} {verb} no known bytes, FLOP or time, so no place."
        )
    if launch_s:
        notes.append(
            f"Box: work that takes less than one launch ({format_si(launch_s, 's')}) is bound by"
            " launching, whatever its intensity."
        )
    return notes
