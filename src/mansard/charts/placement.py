"""Where labels go so that they never overlap. All lengths in points (1/72 inch)."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

#: Distances at which a place for a label is tried.
_STEPS = (2.0, 6.0, 11.0, 17.0, 24.0, 33.0, 44.0, 58.0, 75.0, 95.0, 120.0)
_DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around a centre."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: "Box") -> bool:
        """Tell whether two rectangles have a point in common."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A drawn marker: its centre and its radius."""

    x: float
    y: float
    radius: float

    @property
    def box(self) -> Box:
        """The square around it."""
        return Box(self.x, self.y, 2 * self.radius, 2 * self.radius)


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A label that found its place, and the marker it belongs to."""

    box: Box
    mark: Mark

    @property
    def far(self) -> bool:
        """Whether it needs a line to its marker."""
        gap_x = abs(self.box.x - self.mark.x) - self.box.width / 2
        gap_y = abs(self.box.y - self.mark.y) - self.box.height / 2
        return max(gap_x, gap_y) > self.mark.radius + 4


def place_labels(
    labels: Sequence[tuple[tuple[float, float], Sequence[Mark]]],
    obstacles: Sequence[Box],
    area: tuple[float, float],
    *,
    texts: Sequence[Box] = (),
) -> list[Placed | None]:
    """Find a place near one of its markers for each label, in order of importance.

    A place that covers nothing is best; then one that covers obstacles but no other label.
    Texts never overlap: where the area is full, a label is None.

    Args:
        labels: size (width, height) of each label, and the markers that it may stand at.
        obstacles: what should not be covered: markers.
        area: width and height of the chart.
        texts: what must not be covered: other texts.
    """
    taken: list[Box] = list(texts)
    result: list[Placed | None] = []
    for size, marks in labels:
        place = _first_free(size, marks, [*taken, *obstacles], area) or _first_free(
            size, marks, taken, area
        )
        if place is None and marks:
            place = _any_free(size, marks[0], taken, area)
        if place is not None:
            taken.append(place.box)
        result.append(place)
    return result


def _first_free(
    size: tuple[float, float],
    marks: Sequence[Mark],
    occupied: Sequence[Box],
    area: tuple[float, float],
) -> Placed | None:
    for box, mark in _candidates(size, marks):
        if _inside(box, area) and not any(box.overlaps(other) for other in occupied):
            return Placed(box, mark)
    return None


def _candidates(size: tuple[float, float], marks: Sequence[Mark]) -> Iterator[tuple[Box, Mark]]:
    width, height = size
    for step in _STEPS:
        for mark in marks:
            for right, up in _DIRECTIONS:
                # A diagonal neighbour touches a round marker at 45 degrees.
                reach = mark.radius * (math.sqrt(0.5) if right and up else 1) + step
                yield (
                    Box(
                        mark.x + right * (reach + width / 2),
                        mark.y + up * (reach + height / 2),
                        width,
                        height,
                    ),
                    mark,
                )


def _any_free(
    size: tuple[float, float], mark: Mark, occupied: Sequence[Box], area: tuple[float, float]
) -> Placed | None:
    width, height = size
    columns, rows = int(area[0] // (width + 2)), int(area[1] // (height + 2))
    grid = [
        Box((column + 0.5) * (width + 2), (row + 0.5) * (height + 2), width, height)
        for row in range(rows)
        for column in range(columns)
    ]
    free = [box for box in grid if not any(box.overlaps(other) for other in occupied)]
    nearest = min(free, key=lambda b: math.hypot(b.x - mark.x, b.y - mark.y), default=None)
    return None if nearest is None else Placed(nearest, mark)


def _inside(box: Box, area: tuple[float, float]) -> bool:
    return (
        box.width / 2 <= box.x <= area[0] - box.width / 2
        and box.height / 2 <= box.y <= area[1] - box.height / 2
    )


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions as little as needed so that neighbours are at least ``gap`` apart.

    Neighbours that would collide become a block around their mean (least squares), as in
    isotonic regression. When all do not fit between ``low`` and ``high``, they are spaced evenly.

    Args:
        positions: wanted positions, in any order.
        gap: least distance.
        low: lowest position allowed.
        high: highest position allowed.
    """
    count = len(positions)
    if count == 0:
        return []
    if (count - 1) * gap > high - low:
        gap = (high - low) / max(1, count - 1)
    order = sorted(range(count), key=lambda index: positions[index])
    # With the gaps taken out, "apart by gap" becomes "not decreasing".
    blocks: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        mean, size = positions[index] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, members = blocks.pop()
            mean = (before * members + mean * size) / (members + size)
            size += members
        blocks.append((mean, size))
    flat = [mean for mean, size in blocks for _ in range(size)]
    result = [0.0] * count
    for rank, index in enumerate(order):
        slack = high - (count - 1) * gap
        result[index] = min(max(flat[rank], low), slack) + rank * gap
    return result


@dataclasses.dataclass(frozen=True, slots=True)
class Slope:
    """One of several parallel lines that carries a label, in coordinates along and across them.

    Attributes:
        across: distance from the origin, perpendicular to the lines.
        start: where the line begins, along it.
        end: where it ends.
        length: length of its label.
    """

    across: float
    start: float
    end: float
    length: float


@dataclasses.dataclass(frozen=True, slots=True)
class Strip:
    """Where a label lies on its line: an interval along it, and a band above or below it."""

    begin: float
    end: float
    low: float
    high: float

    def meets(self, other: "Strip", gap: float) -> bool:
        """Tell whether two labels come nearer than ``gap`` along the lines."""
        return (
            self.begin < other.end + gap
            and other.begin < self.end + gap
            and self.low < other.high
            and other.low < self.high
        )

    def covers(self, along: float, across: float, radius: float) -> bool:
        """Tell whether the label touches a marker."""
        return (
            self.begin - radius < along < self.end + radius
            and self.low - radius < across < self.high + radius
        )


def along_lines(
    lines: Sequence[Slope], marks: Sequence[tuple[float, float, float]], *, height: float
) -> list[Strip]:
    """Choose where along parallel lines their labels lie, above or below their line.

    No two labels touch where that can be; then the place that covers the fewest markers and
    lines wins; then early comes before late, and above before below.

    Args:
        lines: the lines, in order of importance.
        marks: (along, across, radius) of each marker.
        height: height of a label.
    """
    placed: list[Strip] = []
    for line in lines:
        first = line.start + height
        last = max(first, line.end - line.length - height)
        tries = []
        for step in range(int((last - first) / height) + 1):
            begin = first + step * height
            for side, low in enumerate((line.across + 2, line.across - 2 - height)):
                strip = Strip(begin, begin + line.length, low, low + height)
                cost = sum(strip.covers(*mark) for mark in marks)
                cost += sum(strip.low < other.across < strip.high for other in lines)
                blocked = any(strip.meets(other, height) for other in placed)
                tries.append(((blocked, cost, step, side), strip))
        placed.append(min(tries, key=lambda entry: entry[0])[1])
    return placed
