"""Draws a time scene: byte time against FLOP time, lines of equal run time, launch box."""

import math
from typing import Any

from mansard.charts.canvas import (
    FAINT,
    INK,
    LABEL,
    LEVEL_STYLE,
    LINE,
    SMALL,
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
from mansard.charts.labels import resource_label
from mansard.charts.placement import Box, Mark
from mansard.charts.time_scene import TimeScene
from mansard.units import format_si

SIZE = (12.6, 7.2)

#: Kernels whose markers the numbers keep clear of.
_MOST_OBSTACLES = 200

_LEFT, _RIGHT_EDGE, _TOP, _STRIP = 0.90, 7.3, 1.25, 0.32
_TABLE_LEFT, _TABLE_RIGHT = 8.1, 12.35


def draw_time(figure: Any, scene: TimeScene) -> None:
    """Draw the time chart with its key."""
    heading(figure, scene.title, scene.subtitle)
    foot = footing(figure, scene.notes, scene.origin) + 0.52
    bottom = foot + _STRIP + 0.06
    top = SIZE[1] - _TOP
    axes = axes_at(figure, _LEFT, bottom, _RIGHT_EDGE, top)
    size = ((_RIGHT_EDGE - _LEFT) * 72, (top - bottom) * 72)
    frame = scene.frame
    log_frame(axes, (frame.x_min, frame.x_max), (frame.y_min, frame.y_max))
    log_axis(axes.xaxis, (frame.x_min, frame.x_max), "s")
    log_axis(axes.yaxis, (frame.y_min, frame.y_max), "s")
    axes.tick_params(axis="x", which="both", labelbottom=False)
    axes.set_ylabel("FLOP time per launch", size=LABEL, color=INK)
    texts = _lines(axes, scene, size)
    strip = axes_at(figure, _LEFT, foot, _RIGHT_EDGE, foot + _STRIP)
    _strip(strip, scene)
    _bytes_axis(axes, scene)
    _points(axes, strip, scene)
    marks: dict[int, list[Mark]] = {}
    obstacles = []
    for point in scene.points[:_MOST_OBSTACLES]:
        if point.flop_s > 0:
            for place in reversed(point.ends(frame)):
                x, y = frame.fraction(*place)
                mark = Mark(x * size[0], y * size[1], math.sqrt(point.area) / 2)
                marks.setdefault(point.number, []).append(mark)
                obstacles.append(mark.box)
    numbers = [row.number for row in scene.rows if row.number in marks]
    number_marks(axes, numbers, marks, obstacles=obstacles, texts=texts, size=size)
    table = axes_at(figure, _TABLE_LEFT, foot, _TABLE_RIGHT, top)
    key_table(
        table,
        scene.rows,
        size=((_TABLE_RIGHT - _TABLE_LEFT) * 72, (top - foot) * 72),
        rest=scene.rest,
    )


def _lines(axes: Any, scene: TimeScene, size: tuple[float, float]) -> list[Box]:
    """Draw balance, lines of equal time and the launch box; return where their texts are."""
    frame = scene.frame
    texts: list[Box] = []

    def write(x: float, y: float, words: str, *, side: str, colour: str) -> None:
        """Write with the lower left (or right) corner at a place given in seconds."""
        across, up = frame.fraction(x, y)
        axes.text(
            across,
            up,
            words,
            transform=axes.transAxes,
            size=SMALL,
            ha=side,
            va="bottom",
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
        width, height = len(words) * SMALL * 0.62, SMALL * LINE
        middle = across * size[0] + (width if side == "left" else -width) / 2
        texts.append(Box(middle, up * size[1] + height / 2, width, height))

    low = max(frame.x_min, frame.y_min)
    axes.plot([low, frame.x_max], [low, frame.x_max], color=INK, linewidth=1.3, zorder=2)
    # Left of the line, at the height where the line is at 0.6 of the axis.
    write(frame.x_max * 0.5, frame.x_max * 0.6, "machine balance", side="right", colour=INK)
    for time in scene.iso_times:
        if time <= frame.y_min:
            continue
        axes.plot(
            [frame.x_min, time, time],
            [time, time, frame.y_min],
            color=SOFT,
            linewidth=0.6,
            linestyle=(0, (4, 3)),
            zorder=1,
        )
        words = f"{format_si(time, 's', 1)} per launch"
        write(frame.x_min * 1.15, time * 1.08, words, side="left", colour=SOFT)
    if scene.launch_s and scene.launch_s > low:
        axes.fill(
            [frame.x_min, scene.launch_s, scene.launch_s, frame.x_min],
            [frame.y_min, frame.y_min, scene.launch_s, scene.launch_s],
            facecolor="none",
            edgecolor=FAINT,
            hatch="////",
            linewidth=0,
            zorder=0.5,
        )
        words = f"one launch: {format_si(scene.launch_s, 's')}"
        write(scene.launch_s / 1.1, frame.y_min * 1.2, words, side="right", colour=INK)
    return texts


def _strip(strip: Any, scene: TimeScene) -> None:
    log_frame(strip, (scene.frame.x_min, scene.frame.x_max), (1, 10))
    log_axis(strip.xaxis, (scene.frame.x_min, scene.frame.x_max), "s")
    strip.yaxis.set_ticks([])
    strip.yaxis.set_ticks([], minor=True)
    strip.set_facecolor("#f6f6f6")
    strip.set_ylabel("no\nFLOP", size=SMALL, rotation=0, ha="right", va="center", color=INK)
    strip.set_xlabel(f"{resource_label(scene.level)} byte time per launch", size=LABEL, color=INK)


def _bytes_axis(axes: Any, scene: TimeScene) -> None:
    if scene.bandwidth is None:
        return
    upper = axes.twiny()
    low, high = (edge * scene.bandwidth for edge in (scene.frame.x_min, scene.frame.x_max))
    upper.set_xscale("log")
    upper.set_xlim(low, high)
    first = math.ceil(math.log10(low))
    decades = [float(f"1e{power}") for power in range(first, math.floor(math.log10(high)) + 1)]
    upper.xaxis.set_ticks(decades, [format_si(decade, "B", 1) for decade in decades], size=TEXT)
    upper.xaxis.set_ticks([], minor=True)
    upper.set_xlabel(
        f"{resource_label(scene.level)} bytes per launch at {format_si(scene.bandwidth, 'B/s')}",
        size=TEXT,
        color=SOFT,
    )
    upper.tick_params(color=SOFT, labelcolor=SOFT, length=3)


def _points(axes: Any, strip: Any, scene: TimeScene) -> None:
    marker, colour = LEVEL_STYLE[scene.level]
    for on_strip, panel in ((False, axes), (True, strip)):
        chosen = [point for point in scene.points if (point.flop_s == 0) == on_strip]
        if not chosen:
            continue
        if on_strip:
            # On the strip height has no meaning: all stand at its middle.
            low, middle = scene.frame.x_min, 10**0.5
            best = [(max(point.byte_s, low), middle) for point in chosen]
            real = [(max(point.measured_s, low), middle) for point in chosen]
        else:
            best = [point.ends(scene.frame)[0] for point in chosen]
            real = [point.ends(scene.frame)[1] for point in chosen]
        draw_links(panel, list(zip(best, real, strict=True)), SOFT)
        areas = [min(point.area, 250) if on_strip else point.area for point in chosen]
        panel.scatter(
            *zip(*best, strict=True),
            s=16,
            marker=marker,
            facecolors=colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=5,
            clip_on=False,
        )
        panel.scatter(
            *zip(*real, strict=True),
            s=areas,
            marker="o",
            facecolors="none",
            edgecolors=INK,
            linewidths=0.9,
            zorder=4,
            clip_on=False,
        )
