"""Draws a floors scene: measured time with its floor, and every floor as a share of it."""

from collections.abc import Sequence
from typing import Any

from mansard.charts.canvas import (
    INK,
    LABEL,
    RESOURCE_STYLE,
    SMALL,
    SOFT,
    TEXT,
    axes_at,
    footing,
    heading,
    text_height,
)
from mansard.charts.floors_scene import FloorRow, FloorsScene, round_ticks
from mansard.charts.labels import printable, resource_label
from mansard.units import format_share, format_si

_WIDTH = 12.6
_TOP, _AXIS = 1.12, 0.50
_NAMES, _TIME_RIGHT, _SHARE_LEFT, _SHARE_RIGHT = 3.05, 6.35, 6.75, 11.0
_ROW = 0.36

#: Letters of a kernel name; 6.5 pt monospace fills the space left of the bars.
_LETTERS = 38


def floors_size(scene: FloorsScene) -> tuple[float, float]:
    """Return width and height in inches: taller with more kernels."""
    rows = max(3, len(scene.rows))
    return _WIDTH, _TOP + rows * _ROW + _AXIS + text_height(scene.notes, scene.origin, _WIDTH)


def draw_floors(figure: Any, scene: FloorsScene) -> None:
    """Draw the floors chart."""
    _, height = floors_size(scene)
    heading(figure, scene.title, scene.subtitle)
    bottom = footing(figure, scene.notes, scene.origin) + _AXIS
    times = axes_at(figure, _NAMES, bottom, _TIME_RIGHT, height - _TOP)
    shares = axes_at(figure, _SHARE_LEFT, bottom, _SHARE_RIGHT, height - _TOP)
    for axes in (times, shares):
        axes.set_ylim(max(3, len(scene.rows)) - 0.5, -0.5)
        axes.set_yticks([])
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(labelsize=TEXT, color=INK)
    _draw_times(times, scene.rows)
    _draw_shares(shares, scene)
    _legend(shares, scene.resources)


def _draw_times(axes: Any, rows: Sequence[FloorRow]) -> None:
    longest = max((row.duration_s or 0 for row in rows), default=0) or 1
    axes.set_xlim(0, longest * 1.14)
    ticks = round_ticks(longest)
    axes.set_xticks(ticks, [format_si(tick, "s", 2) if tick else "0" for tick in ticks])
    axes.set_xlabel("time on the GPU; filled: its floor", size=LABEL, color=INK)
    for place, row in enumerate(rows):
        colour, hatch = RESOURCE_STYLE.get(row.bound or "", ("#e8e8e8", ""))
        duration = row.duration_s or 0
        if row.floor_s is not None:
            axes.barh(
                place,
                min(row.floor_s, duration),
                height=0.62,
                color=colour,
                hatch=hatch,
                edgecolor=INK,
                linewidth=0.5,
            )
        axes.barh(place, duration, height=0.62, fill=False, edgecolor=INK, linewidth=0.9)
        axes.text(
            duration + longest * 0.012,
            place,
            format_share(row.share),
            size=SMALL,
            va="center",
            color=INK,
        )
        mark = f" ({row.remark})" if row.remark else ""
        axes.annotate(
            f"{printable(row.name, _LETTERS - len(mark))}{mark}",
            (0, place),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            size=SMALL,
            family="DejaVu Sans Mono",
            color=INK,
        )
        axes.annotate(
            str(row.number),
            (0, place),
            xytext=(-_NAMES * 72 + 26, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            size=SMALL,
            weight="bold",
            color=INK,
        )


def _draw_shares(axes: Any, scene: FloorsScene) -> None:
    beyond = [
        part for row in scene.rows for part in row.shares.values() if part is not None and part > 1
    ]
    end = min(2.0, max([1.05, *(part * 1.05 for part in beyond)]))
    axes.set_xlim(0, end)
    ticks = [0, 0.25, 0.5, 0.75, 1] + ([1.5, 2] if end > 1.5 else [])
    axes.set_xticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.set_xlabel("floor of each resource / measured time", size=LABEL, color=INK)
    axes.axvline(1, color=INK, linewidth=1.2)
    count = max(1, len(scene.resources))
    thick = 0.84 / count
    for place, row in enumerate(scene.rows):
        if place:
            axes.axhline(place - 0.5, color="#e6e6e6", linewidth=0.5, zorder=0)
        for order, resource in enumerate(scene.resources):
            part = row.shares.get(resource)
            if not part:
                continue
            colour, hatch = RESOURCE_STYLE[resource]
            axes.barh(
                place - 0.42 + (order + 0.5) * thick,
                min(part, end),
                height=thick * 0.94,
                color=colour,
                hatch=hatch,
                edgecolor=INK,
                linewidth=0.4,
            )
        words = f"{row.bound_text}  {row.efficiency}"
        recoverable = _recoverable(row)
        axes.annotate(
            words if recoverable is None else f"{words}\n{recoverable} recoverable",
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
            linespacing=1.15,
            color=INK,
        )


def _recoverable(row: FloorRow) -> str | None:
    if row.floor_s is None or row.duration_s is None:
        return None
    return format_si(max(0.0, row.duration_s - row.floor_s), "s")


def _legend(axes: Any, resources: Sequence[str]) -> None:
    handles = []
    for resource in resources:
        colour, hatch = RESOURCE_STYLE[resource]
        handles.append(axes.barh([0], [0], color=colour, hatch=hatch, edgecolor=INK, linewidth=0.5))
    if handles:
        axes.legend(
            handles,
            [resource_label(resource) for resource in resources],
            loc="lower left",
            bbox_to_anchor=(0, 1.005),
            ncols=len(handles),
            frameon=False,
            fontsize=TEXT,
            handlelength=2.2,
            handleheight=1.1,
            handletextpad=0.5,
            columnspacing=1.2,
            borderaxespad=0,
        )
    else:
        axes.text(
            0.5, 0.5, "no floors", transform=axes.transAxes, ha="center", size=LABEL, color=SOFT
        )
