"""Draws machines: roofs with the measured sweep, and the table of all ceilings."""

from collections.abc import Sequence
from typing import Any

from mansard.charts.canvas import (
    INK,
    LABEL,
    LINE,
    SMALL,
    SOFT,
    TEXT,
    axes_at,
    footing,
    heading,
    log_axis,
    log_frame,
    text_height,
)
from mansard.charts.labels import printable
from mansard.charts.machine_scene import CeilingRow, MachineScene, Sweep
from mansard.charts.placement import Mark
from mansard.charts.roofline_chart import draw_roofs

SIZE = (12.6, 7.2)
_LEFT, _TOP, _WIDTH, _LABELS = 0.80, 1.02, 5.9, 1.65

#: One panel of several machines side by side, in inches.
_PANEL, _PANEL_HEIGHT = 4.6, 6.2

#: Dots of the sweeps: shape and colour, in order.
_DOTS = (
    ("o", "#0072B2"),
    ("s", "#D55E00"),
    ("^", "#009E73"),
    ("D", "#CC79A7"),
    ("v", "#E69F00"),
    ("P", "#56B4E9"),
)


def draw_machine(figure: Any, scene: MachineScene) -> None:
    """Draw one machine: roofs and sweeps on the left, all ceilings on the right."""
    heading(figure, scene.title, scene.subtitle)
    bottom = footing(figure, scene.notes, scene.origin) + 0.52
    top = SIZE[1] - _TOP
    axes = axes_at(figure, _LEFT, bottom, _LEFT + _WIDTH, top)
    _panel(axes, scene, (_WIDTH * 72, (top - bottom) * 72))
    left = _LEFT + _WIDTH + _LABELS
    table = axes_at(figure, left, bottom, SIZE[0] - 0.25, top)
    _table(table, scene.rows, ((SIZE[0] - 0.25 - left) * 72, (top - bottom) * 72))


def machines_size(count: int) -> tuple[float, float]:
    """Return width and height in inches of several machines side by side."""
    return 0.1 + count * (_LEFT + _PANEL + _LABELS), _PANEL_HEIGHT


def draw_machines(figure: Any, scenes: Sequence[MachineScene]) -> None:
    """Draw several machines side by side; give them one frame to make them comparable."""
    width, height = machines_size(len(scenes))
    names = " \N{MIDDLE DOT} ".join(scene.title for scene in scenes)
    heading(figure, names, "the same axes for all")
    notes = [f"{scene.title}. {scene.origin}" for scene in scenes]
    bottom = footing(figure, notes[:-1], notes[-1]) + 0.52
    top = height - _TOP
    if text_height(notes[:-1], notes[-1], width) > height / 2:
        bottom = height / 2
    for place, scene in enumerate(scenes):
        left = _LEFT + place * (_LEFT + _PANEL + _LABELS)
        axes = axes_at(figure, left, bottom, left + _PANEL, top)
        _panel(axes, scene, (_PANEL * 72, (top - bottom) * 72))
        axes.set_title(scene.title, size=LABEL, loc="right", color=INK)


def _panel(axes: Any, scene: MachineScene, size: tuple[float, float]) -> None:
    frame = scene.frame
    log_frame(axes, (frame.x_min, frame.x_max), (frame.y_min, frame.y_max))
    log_axis(axes.xaxis, (frame.x_min, frame.x_max), "")
    log_axis(axes.yaxis, (frame.y_min, frame.y_max), "FLOP/s")
    axes.set_xlabel("arithmetic intensity (FLOP/byte)", size=LABEL, color=INK)
    marks = []
    for sweep in scene.sweeps:
        for dot in sweep.dots:
            x, y = frame.fraction(*dot)
            marks.append(Mark(x * size[0], y * size[1], 2.0))
    draw_roofs(axes, scene.roofs, frame, size, marks)
    _sweeps(axes, scene.sweeps)
    if not scene.roofs:
        axes.text(
            0.5,
            0.5,
            "no ceiling that can be drawn",
            transform=axes.transAxes,
            ha="center",
            size=LABEL,
            color=SOFT,
        )


def _sweeps(axes: Any, sweeps: Sequence[Sweep]) -> None:
    handles = []
    for sweep, (marker, colour) in zip(sweeps, _DOTS, strict=False):
        handles.append(
            axes.scatter(
                *zip(*sweep.dots, strict=True),
                s=14,
                marker=marker,
                facecolors="none",
                edgecolors=colour,
                linewidths=0.8,
                zorder=4,
            )
        )
    if handles:
        axes.legend(
            handles,
            [f"measured: {sweep.name}" for sweep in sweeps],
            loc="lower right",
            frameon=True,
            framealpha=0.9,
            edgecolor="none",
            fontsize=SMALL,
        )


def _table(axes: Any, rows: Sequence[CeilingRow], size: tuple[float, float]) -> None:
    width, height = size
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    step = min(12.0, height / max(1, len(rows) + 1))
    font = min(SMALL, step / LINE)
    # name and how from the left; value, share of the limit and clock right-aligned.
    left, right = (0.0, 70.0), (width - 78, width - 43, width)
    places = [*((x, "left") for x in left), *((x, "right") for x in right)]
    letters = int((width - 78 - 52 - 70) / (font * 0.58))

    def write(y: float, cells: Sequence[str], colour: str, weight: str = "normal") -> None:
        for cell, (x, side) in zip(cells, places, strict=True):
            axes.text(x, y, cell, size=font, ha=side, va="center", color=colour, weight=weight)

    y = height - step / 2
    write(y, ("ceiling", "how", "value", "of limit", "clock"), INK, "bold")
    axes.plot([0, width], [height - step] * 2, color=INK, linewidth=0.6)
    for row in rows:
        y -= step
        cells = (
            printable(row.name, 16),
            printable(row.how, letters),
            row.value,
            row.share_of_limit,
            row.clock,
        )
        write(y, cells, SOFT if row.refused else INK)
    if not rows:
        axes.text(0, y - step, "no ceilings", size=TEXT, color=SOFT)
