"""Draws a Roofline scene on a figure: roofs, hollow markers, numbers, key and origin."""

import math
from collections.abc import Collection, Sequence
from typing import Any

from mansard.charts.canvas import (
    FAINT,
    INK,
    LABEL,
    LEVEL_STYLE,
    LINE,
    PIPE_MARKERS,
    SOFT,
    TEXT,
    axes_at,
    draw_links,
    footing,
    heading,
    key_table,
    log_axis,
    log_frame,
    number_marks,
)
from mansard.charts.frame import Frame, Roof, slope_labels
from mansard.charts.labels import resource_label
from mansard.charts.placement import Box, Mark, Slope, along_lines, spread
from mansard.charts.scene import Part, Point, RooflineScene, marker_area

#: Size of the figure, and of its parts, in inches.
SIZE = (12.6, 7.2)
_LEFT, _TOP = 0.80, 1.02
_CHART_WIDTH, _ROOF_LABELS, _GAP, _RIGHT = 6.35, 1.60, 0.10, 0.25

#: Markers that labels keep clear of.
_MOST_OBSTACLES = 400

#: Mean width of a character of the text font, in parts of its size.
_LETTER = 0.60


def draw_roofline(figure: Any, scene: RooflineScene) -> None:
    """Draw the hierarchical Roofline chart with its key."""
    _, height = SIZE
    heading(figure, scene.title, scene.subtitle)
    bottom = footing(figure, scene.notes, scene.origin) + 0.52
    right = _LEFT + _CHART_WIDTH
    axes = axes_at(figure, _LEFT, bottom, right, height - _TOP)
    size = (_CHART_WIDTH * 72, (height - _TOP - bottom) * 72)
    frame = scene.frame
    log_frame(axes, (frame.x_min, frame.x_max), (frame.y_min, frame.y_max))
    log_axis(axes.xaxis, (frame.x_min, frame.x_max), "")
    log_axis(axes.yaxis, (frame.y_min, frame.y_max), "FLOP/s")
    axes.set_xlabel("arithmetic intensity (FLOP/byte of each level)", size=LABEL, color=INK)
    axes.set_ylabel("performance", size=LABEL, color=INK)
    _parts(axes, scene.parts)
    marks = _marks(scene, size)
    # The markers of the longest kernels; the small ones of a large run may be covered.
    every_mark = [mark for members in marks.values() for mark in members][:_MOST_OBSTACLES]
    covered = draw_roofs(axes, scene.roofs, frame, size, every_mark)
    draw_points(axes, scene.points, {row.number for row in scene.rows})
    numbers = [row.number for row in scene.rows]
    number_marks(
        axes,
        numbers,
        marks,
        obstacles=[mark.box for mark in every_mark],
        texts=covered,
        size=size,
    )
    _legend(axes, scene)
    if not scene.points:
        axes.text(
            0.5,
            0.5,
            "no kernel with known FLOP, bytes and time",
            transform=axes.transAxes,
            ha="center",
            va="center",
            size=LABEL,
            color=SOFT,
        )
    table_left = right + _ROOF_LABELS + _GAP
    table_size = ((SIZE[0] - _RIGHT - table_left) * 72, size[1])
    table = axes_at(figure, table_left, bottom, SIZE[0] - _RIGHT, height - _TOP)
    key_table(table, scene.rows, size=table_size, rest=scene.rest)


def draw_roofs(
    axes: Any,
    roofs: Sequence[Roof],
    frame: Frame,
    size: tuple[float, float],
    marks: Sequence[Mark] = (),
) -> list[Box]:
    """Draw roofs and label them: slopes along their line, flat ones at the right.

    Args:
        axes: drawn on.
        roofs: the lines.
        frame: limits of the axes.
        size: width and height of the axes in points.
        marks: markers that labels should not cover.

    Returns:
        Boxes, in points, that the labels inside the axes cover.
    """
    slopes = [roof for roof in roofs if roof.kind == "bandwidth"]
    flats = [roof for roof in roofs if roof.kind == "compute"]
    for roof in roofs:
        axes.plot(
            *zip(roof.start, roof.end, strict=True),
            color=INK if roof.used else FAINT,
            linewidth=1.3 if roof.used else 0.9,
            zorder=2 if roof.used else 1.5,
        )
    _label_flats(axes, flats, frame, size)
    crossings = [
        Mark(x * size[0], y * size[1], 1.0)
        for roof in flats
        for x, y in _along(frame.fraction(*roof.start), frame.fraction(*roof.end))
    ]
    return _label_slopes(axes, slopes, frame, size, [*marks, *crossings])


def _along(
    start: tuple[float, float], end: tuple[float, float], count: int = 60
) -> list[tuple[float, float]]:
    return [
        (
            start[0] + (end[0] - start[0]) * step / count,
            start[1] + (end[1] - start[1]) * step / count,
        )
        for step in range(count + 1)
    ]


def _label_slopes(
    axes: Any,
    slopes: Sequence[Roof],
    frame: Frame,
    size: tuple[float, float],
    marks: Sequence[Mark],
) -> list[Box]:
    # All slopes are parallel: one angle, and positions measured along and across the lines.
    right, up = frame.fraction(frame.x_min * 10, frame.y_min * 10)
    angle = math.atan2(up * size[1], right * size[0])
    cosine, sine = math.cos(angle), math.sin(angle)

    def turned(x: float, y: float) -> tuple[float, float]:
        return x * cosine + y * sine, y * cosine - x * sine

    def points_of(end: tuple[float, float]) -> tuple[float, float]:
        x, y = frame.fraction(*end)
        return turned(x * size[0], y * size[1])

    lines = []
    labelled = slope_labels(slopes)
    for roof, label in labelled:
        start, across = points_of(roof.start)
        end, _ = points_of(roof.end)
        lines.append(Slope(across, start, end, len(label) * TEXT * _LETTER))
    height = TEXT * LINE
    taken = [(*turned(mark.x, mark.y), mark.radius) for mark in marks]
    covered = []
    strips = along_lines(lines, taken, height=height)
    for (_, label), strip in zip(labelled, strips, strict=True):
        axes.text(
            (strip.begin * cosine - strip.low * sine) / size[0],
            (strip.begin * sine + strip.low * cosine) / size[1],
            label,
            transform=axes.transAxes,
            rotation=math.degrees(angle),
            rotation_mode="anchor",
            size=TEXT,
            ha="left",
            va="bottom",
            color=INK,
            zorder=3,
        )
        middle = (strip.low + strip.high) / 2
        for step in range(int((strip.end - strip.begin) / height) + 1):
            along = strip.begin + (step + 0.5) * height
            x, y = along * cosine - middle * sine, along * sine + middle * cosine
            covered.append(Box(x, y, height, height))
    return covered


def _label_flats(axes: Any, flats: Sequence[Roof], frame: Frame, size: tuple[float, float]) -> None:
    heights = [frame.fraction(frame.x_max, roof.value)[1] * size[1] for roof in flats]
    places = spread(heights, TEXT * LINE, TEXT / 2, size[1] - TEXT / 2)
    for roof, height, place in zip(flats, heights, places, strict=True):
        colour = INK if roof.used else SOFT
        axes.plot(
            [1, 1 + 6 / size[0], 1 + 12 / size[0]],
            [height / size[1], place / size[1], place / size[1]],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.5,
            clip_on=False,
        )
        axes.text(
            1 + 14 / size[0],
            place / size[1],
            roof.label,
            transform=axes.transAxes,
            size=TEXT,
            va="center",
            color=colour,
        )


def draw_points(axes: Any, points: Sequence[Point], strong: Collection[int]) -> None:
    """Draw the markers, hollow, the levels of a kernel joined by a thin line.

    Args:
        axes: drawn on.
        points: the markers.
        strong: numbers of the kernels of the key; the others get thinner lines.
    """
    kernels: dict[int, list[Point]] = {}
    for point in points:
        kernels.setdefault(point.number, []).append(point)
    links = []
    for members in kernels.values():
        xs = [point.x for point in members]
        links.append(((min(xs), members[0].y), (max(xs), members[0].y)))
    draw_links(axes, links, FAINT)
    for level, (marker, colour) in LEVEL_STYLE.items():
        chosen = [point for point in points if point.level == level]
        if chosen:
            axes.scatter(
                [point.x for point in chosen],
                [point.y for point in chosen],
                s=[point.area for point in chosen],
                marker=marker,
                facecolors=[colour if point.outside else "none" for point in chosen],
                edgecolors=colour,
                linewidths=[1.0 if point.number in strong else 0.4 for point in chosen],
                clip_on=False,
                zorder=4,
            )


def _parts(axes: Any, parts: Sequence[Part]) -> None:
    """Mark what each pipe did of kernels that use both: plus for tensor, cross for vector."""
    kernels: dict[int, list[Part]] = {}
    for part in parts:
        kernels.setdefault(part.number, []).append(part)
    pairs = [members for members in kernels.values() if len(members) == len(PIPE_MARKERS)]
    links = [((one.x, one.y), (other.x, other.y)) for one, other in pairs]
    draw_links(axes, links, SOFT, "dotted")
    for pipe, marker in PIPE_MARKERS.items():
        chosen = [part for part in parts if part.pipe == pipe]
        if chosen:
            axes.scatter(
                [part.x for part in chosen],
                [part.y for part in chosen],
                s=16,
                marker=marker,
                color=SOFT,
                linewidths=0.8,
                clip_on=False,
                zorder=3.5,
            )


def _marks(scene: RooflineScene, size: tuple[float, float]) -> dict[int, list[Mark]]:
    marks: dict[int, list[Mark]] = {}
    for point in scene.points:
        x, y = scene.frame.fraction(point.x, point.y)
        mark = Mark(x * size[0], y * size[1], math.sqrt(point.area) / 2)
        marks.setdefault(point.number, []).append(mark)
    return marks


def _legend(axes: Any, scene: RooflineScene) -> None:
    """Explain the markers above the chart: shape is the level, area is the share of time."""
    handles, names = [], []
    for level in scene.levels:
        marker, colour = LEVEL_STYLE[level]
        handles.append(
            axes.scatter([], [], s=42, marker=marker, facecolors="none", edgecolors=colour)
        )
        names.append(resource_label(level))
    for pipe, marker in PIPE_MARKERS.items():
        if scene.parts:
            handles.append(axes.scatter([], [], s=16, marker=marker, color=SOFT, linewidths=0.8))
            names.append(f"{pipe} part")
    for part in (0.01, 0.1, 0.3):
        area = marker_area(part)
        handles.append(axes.scatter([], [], s=area, facecolors="none", edgecolors=SOFT))
        names.append(f"{100 * part:.0f} % of time")
    axes.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0, 1.02),
        ncols=len(handles),
        frameon=False,
        fontsize=TEXT,
        handletextpad=0.4,
        columnspacing=1.2,
        borderaxespad=0,
        borderpad=0.2,
    )
