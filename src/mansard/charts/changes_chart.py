"""Draws a comparison: times before and after, and the difference with its noise."""

from collections.abc import Sequence
from typing import Any

from mansard.charts.canvas import (
    INK,
    LABEL,
    SMALL,
    SOFT,
    TEXT,
    axes_at,
    footing,
    heading,
    text_height,
)
from mansard.charts.changes_scene import Bar, ChangesScene
from mansard.charts.floors_scene import round_ticks
from mansard.charts.labels import printable
from mansard.units import format_si

_WIDTH = 12.6
_TOP, _AXIS = 0.95, 0.50
_NAMES, _TIMES_RIGHT, _MOVED_LEFT, _MOVED_RIGHT = 3.25, 6.75, 8.15, 12.2
_ROW = 0.36
_LETTERS = 38

#: Grey, so that filled and hollow differ on any paper.
_FILL = "#5f86ad"


def changes_size(scene: ChangesScene) -> tuple[float, float]:
    """Return width and height in inches: taller with more rows."""
    rows = max(3, len(scene.bars))
    return _WIDTH, _TOP + rows * _ROW + _AXIS + text_height(scene.notes, scene.origin, _WIDTH)


def draw_changes(figure: Any, scene: ChangesScene) -> None:
    """Draw the chart of a comparison."""
    _, height = changes_size(scene)
    heading(figure, scene.title, scene.subtitle)
    bottom = footing(figure, scene.notes, scene.origin) + _AXIS
    times = axes_at(figure, _NAMES, bottom, _TIMES_RIGHT, height - _TOP)
    moved = axes_at(figure, _MOVED_LEFT, bottom, _MOVED_RIGHT, height - _TOP)
    for axes in (times, moved):
        axes.set_ylim(max(3, len(scene.bars)) - 0.5, -0.5)
        axes.set_yticks([])
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(labelsize=TEXT, color=INK)
    if not scene.bars:
        for axes in (times, moved):
            axes.set_xticks([])
            axes.spines["bottom"].set_visible(False)
        words = "no row has a known difference in time"
        figure.text(0.5, 0.5, words, ha="center", size=LABEL, color=SOFT)
        return
    _draw_times(times, scene)
    _draw_moved(moved, scene)


def _draw_times(axes: Any, scene: ChangesScene) -> None:
    longest = scene.longest_s
    axes.set_xlim(0, longest * 1.02)
    ticks = round_ticks(longest)
    axes.set_xticks(ticks, _tick_texts(ticks))
    axes.set_xlabel(
        "time for each step and rank; hollow: before, filled: after", size=LABEL, color=INK
    )
    for place, bar in enumerate(scene.bars):
        shape = {"height": 0.34, "edgecolor": INK}
        axes.barh(place - 0.19, bar.before_s, facecolor="white", linewidth=0.9, **shape)
        axes.barh(place + 0.19, bar.after_s, facecolor=_FILL, linewidth=0.5, **shape)
        texts = (
            (printable(bar.name, _LETTERS), -6, "DejaVu Sans Mono", "normal"),
            (str(bar.number), -_NAMES * 72 + 26, "DejaVu Sans", "bold"),
        )
        for text, left, family, weight in texts:
            axes.annotate(
                text,
                (0, place),
                xytext=(left, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                size=SMALL,
                family=family,
                weight=weight,
                color=INK,
            )
        axes.annotate(
            f"{bar.before}\n{bar.after}",
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            size=SMALL,
            linespacing=1.15,
            color=INK,
        )


def _draw_moved(axes: Any, scene: ChangesScene) -> None:
    low, high = scene.reach_s
    # Room for the words beside each bar, on the side to which it goes.
    room = 0.42 * (low + high)
    axes.set_xlim(-low - room * bool(low), high + room * bool(high))
    steps = round_ticks(low + high)
    ticks = [-tick for tick in steps[:0:-1] if tick <= low] + [t for t in steps if t <= high]
    axes.set_xticks(ticks, _tick_texts(ticks))
    axes.set_xlabel("shorter  |  longer", size=LABEL, color=INK)
    axes.axvline(0, color=INK, linewidth=1.0)
    for place, bar in enumerate(scene.bars):
        axes.barh(
            place,
            bar.moved_s,
            height=0.5,
            facecolor=_FILL if bar.moved_s > 0 else "white",
            edgecolor=INK,
            linewidth=0.9,
            linestyle="solid" if bar.sure else (0, (3, 2)),
        )
        if bar.noise_s:
            axes.errorbar(
                bar.moved_s, place, xerr=bar.noise_s, color=INK, linewidth=0.9, capsize=2.2
            )
        _words(axes, bar, place)


def _words(axes: Any, bar: Bar, place: int) -> None:
    """The difference in words, beyond the bar and its whisker."""
    sign = 1 if bar.moved_s > 0 else -1
    end = bar.moved_s + sign * (bar.noise_s or 0.0)
    end = max(end, 0.0) if sign > 0 else min(end, 0.0)
    axes.annotate(
        f"{bar.moved}, {bar.change}" if bar.change not in ("-", "=") else bar.moved,
        (end, place),
        xytext=(5 * sign, 0),
        textcoords="offset points",
        ha="left" if sign > 0 else "right",
        va="center",
        size=SMALL,
        color=INK,
    )


def _tick_texts(ticks: Sequence[float]) -> list[str]:
    return [
        ("-" if tick < 0 else "") + format_si(abs(tick), "s", 2) if tick else "0" for tick in ticks
    ]
