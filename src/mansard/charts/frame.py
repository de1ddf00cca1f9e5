"""Axes and roofs of a Roofline chart: limits from the machine alone, in whole decades.

Axes that follow the data make a ten times faster kernel sit at the same place; axes that follow
the machine let two runs be laid side by side.
"""

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence

from mansard.charts.labels import ceiling_label, positive
from mansard.model.machine import Ceiling, Machine
from mansard.model.paths import FLOP_PATHS, MACHINE_LEVELS

#: Without ceilings of one kind the axes assume this ridge, in FLOP/byte (GPUs have 10 to 400).
_USUAL_RIDGE = 100.0

#: Slopes less apart than this part of them are one line to the eye, and get one label.
_ONE_LINE = 0.05

#: No axis goes beyond so many powers of ten: damaged files hold values at the ends of a float, of
#: which products and quotients are none any more.
_MOST_DECADES = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """The limits of two logarithmic axes: FLOP/byte and FLOP/s (or other positive units)."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float

    def fraction(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point lies, as parts (0 to 1) of the width and the height."""
        return (
            math.log10(x / self.x_min) / math.log10(self.x_max / self.x_min),
            math.log10(y / self.y_min) / math.log10(self.y_max / self.y_min),
        )

    def clamp(self, x: float, y: float) -> tuple[float, float]:
        """Return the point, or the nearest one on the edge when it lies outside."""
        return (
            min(max(x, self.x_min), self.x_max),
            min(max(y, self.y_min), self.y_max),
        )

    def union(self, other: "Frame") -> "Frame":
        """Return the smallest frame that holds both."""
        return Frame(
            min(self.x_min, other.x_min),
            max(self.x_max, other.x_max),
            min(self.y_min, other.y_min),
            max(self.y_max, other.y_max),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Roof:
    """One limit as a line of the chart.

    Attributes:
        kind: ``compute`` (flat) or ``bandwidth`` (slope 1).
        name: compute path or memory level.
        value: FLOP/s or byte/s.
        status: measured, theoretical, published.
        label: name and value as they are printed.
        start: left end, (FLOP/byte, FLOP/s).
        end: right end.
        used: whether the run has work or traffic there; others are drawn faintly.
    """

    kind: str
    name: str
    value: float
    status: str
    label: str
    start: tuple[float, float]
    end: tuple[float, float]
    used: bool = True


def decade_below(value: float) -> float:
    """Return the largest power of ten that is not above ``value`` and is within the decades."""
    return float(f"1e{math.floor(_exponent(value))}")


def decade_above(value: float) -> float:
    """Return the smallest power of ten that is not below ``value`` and is within the decades."""
    return float(f"1e{math.ceil(_exponent(value))}")


def _exponent(value: float) -> float:
    limit = float(_MOST_DECADES)
    if value == 0:  # underflow: all values of a chart are positive
        return -limit
    return min(max(math.log10(value), -limit), limit)


def machine_frame(machine: Machine) -> Frame | None:
    """Return the axes for a machine; None when it has no ceiling that can be drawn.

    The ridge of the outermost level lies inside, with room for the intensity of convolution
    and attention on its right and for streaming kernels on its left.
    """
    peaks = [value for _, _, value in _compute(machine)]
    bandwidths = {level: value for level, _, value in _bandwidth(machine)}
    if not peaks and not bandwidths:
        return None
    outer = bandwidths.get("dram") or min(
        (value for level, value in bandwidths.items() if level != "link"),
        default=bandwidths.get("link"),
    )
    peak = max(peaks) if peaks else (outer or 1.0) * _USUAL_RIDGE
    outer = outer or peak / _USUAL_RIDGE
    ridge = peak / outer
    x_min = decade_below(ridge) / 10**4
    return Frame(
        x_min=decade_below(x_min * 1.001),
        x_max=decade_above(ridge * 10),
        y_min=decade_below(outer * x_min / 3),
        y_max=decade_above(peak * 1.1),
    )


def data_frame(points: Iterable[tuple[float, float]]) -> Frame:
    """Return axes around points, for charts without a machine."""
    found = list(points)
    if not found:
        return Frame(0.01, 10_000.0, 10.0**9, 10.0**15)
    xs, ys = zip(*found, strict=True)
    x_min, y_min = decade_below(min(xs)), decade_below(min(ys))
    return Frame(
        x_min,
        max(decade_above(max(xs) * 1.001), x_min * 100),
        y_min,
        max(decade_above(max(ys) * 1.001), y_min * 100),
    )


def roofs(
    machine: Machine,
    frame: Frame,
    *,
    used_paths: Collection[str] | None = None,
) -> tuple[Roof, ...]:
    """Return the roofs as lines that span the frame, slopes first.

    A slope runs from the edge of the frame to the highest flat roof, a flat one from the
    fastest slope to the right edge. Integer paths have no place on a FLOP/s axis.

    Args:
        machine: the ceilings; refused ones are left out.
        frame: limits of the chart.
        used_paths: compute paths with work in the run; None marks every path as used.
    """
    flats = _compute(machine)
    slopes = _bandwidth(machine)
    top = max((value for _, _, value in flats), default=frame.y_max)
    fastest = max((value for _, _, value in slopes), default=None)
    lines = []
    for level, ceiling, value in slopes:
        start_x = max(frame.x_min, frame.y_min / value)
        end_x = min(frame.x_max, top / value)
        if start_x < end_x:
            lines.append(
                Roof(
                    kind="bandwidth",
                    name=level,
                    value=value,
                    status=ceiling.status,
                    label=ceiling_label(ceiling, machine),
                    start=(start_x, value * start_x),
                    end=(end_x, value * end_x),
                )
            )
    for path, ceiling, value in flats:
        start_x = frame.x_min if fastest is None else max(frame.x_min, value / fastest)
        if start_x < frame.x_max and frame.y_min < value:
            lines.append(
                Roof(
                    kind="compute",
                    name=path,
                    value=value,
                    status=ceiling.status,
                    label=ceiling_label(ceiling, machine),
                    start=(start_x, value),
                    end=(frame.x_max, value),
                    used=used_paths is None or path in used_paths,
                )
            )
    return tuple(lines)


def slope_labels(slopes: Sequence[Roof]) -> list[tuple[Roof, str]]:
    """Return the label of each slope; slopes that nearly meet share one, at the first of them.

    ``script/roofs.js`` does the same.
    """
    found: list[list[Roof]] = []
    for roof in slopes:
        near = next(
            (roofs for roofs in found if _apart(roofs[0].value, roof.value) <= _ONE_LINE), None
        )
        if near is None:
            found.append([roof])
        else:
            near.append(roof)
    return [(roofs[0], _together([roof.label for roof in roofs])) for roofs in found]


def _apart(one: float, other: float) -> float:
    return abs(one - other) / max(one, other)


def _together(labels: Sequence[str]) -> str:
    """Join labels, what all end with (the unit) said once: ``shared 33.4, L1 33.3 TB/s``."""
    words = [label.split(" ") for label in labels]
    alike = 0
    while all(len(own) > alike + 1 and own[-1 - alike] == words[0][-1 - alike] for own in words):
        alike += 1
    short = [" ".join(own[: len(own) - alike]) for own in words[:-1]]
    return ", ".join([*short, labels[-1]])


def _compute(machine: Machine) -> list[tuple[str, Ceiling, float]]:
    found = []
    for path in FLOP_PATHS:
        ceiling = machine.compute(path.name)
        value = positive(ceiling.value) if ceiling else None
        if ceiling and value:
            found.append((path.name, ceiling, value))
    return found


def _bandwidth(machine: Machine) -> list[tuple[str, Ceiling, float]]:
    found = []
    for level in MACHINE_LEVELS:
        ceiling = machine.bandwidth(level)
        value = positive(ceiling.value) if ceiling else None
        if ceiling and value:
            found.append((level, ceiling, value))
    return found
