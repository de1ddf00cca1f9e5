"""Drawing that all figures share: palette, key table, notes, origin line. No matplotlib import.

Colours are Okabe and Ito's set, safe for the colour-blind; every distinction is also made by
shape, hatching or line style, so that a black-and-white print reads the same.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from mansard.charts.labels import printable
from mansard.charts.placement import Box, Mark, place_labels
from mansard.charts.scene import KeyRow
from mansard.units import format_share, format_si

#: Marker and colour of each memory level (blue, red and green as in arXiv 2009.05257).
LEVEL_STYLE = {
    "shared": ("D", "#CC79A7"),
    "l1": ("o", "#0072B2"),
    "l2": ("s", "#D55E00"),
    "dram": ("^", "#009E73"),
    "link": ("v", "#000000"),
}

#: Markers of the parts of a kernel that uses both pipes.
PIPE_MARKERS = {"tensor": "+", "vector": "x"}

#: Colour and hatching of each resource in bars.
RESOURCE_STYLE = {
    "tensor": ("#56B4E9", "//"),
    "vector": ("#F0E442", "xx"),
    "shared": ("#CC79A7", ".."),
    "l1": ("#0072B2", "\\\\"),
    "l2": ("#D55E00", "--"),
    "dram": ("#009E73", "||"),
    "link": ("#999999", "++"),
    "launch": ("#FFFFFF", "oo"),
}

INK = "#1a1a1a"
SOFT = "#6b6b6b"
FAINT = "#c8c8c8"

#: Font sizes in points.
TITLE, LABEL, TEXT, SMALL = 11.0, 9.0, 7.5, 6.5

#: Width of one character of the monospace font, in parts of its size.
MONO = 0.602

#: Height of a text line, in parts of its size.
LINE = 1.32


def heading(figure: Any, title: str, subtitle: str) -> None:
    """Write title and subtitle at the top left."""
    width, height = figure.get_size_inches()
    left = 0.35 / width
    figure.text(left, 1 - 0.30 / height, title, size=TITLE, weight="bold", color=INK)
    figure.text(left, 1 - 0.50 / height, subtitle, size=TEXT, color=SOFT)


def _wrapped(notes: Sequence[str], origin: str, width: float) -> list[tuple[str, str]]:
    # 0.56: mean width of a DejaVu Sans character in parts of its size.
    letters = int((width - 0.7) * 72 / (SMALL * 0.56))
    lines = [(line, INK) for note in notes for line in textwrap.wrap(note, letters, max_lines=3)]
    return lines + [(line, SOFT) for line in textwrap.wrap(origin, letters, max_lines=3)]


def text_height(notes: Sequence[str], origin: str, width: float) -> float:
    """Return the height in inches that ``footing`` uses on a figure of this width."""
    return 0.16 + len(_wrapped(notes, origin, width)) * SMALL * LINE / 72


def footing(figure: Any, notes: Sequence[str], origin: str) -> float:
    """Write notes and the origin line at the bottom; return the height used, in inches."""
    width, height = figure.get_size_inches()
    lines = _wrapped(notes, origin, width)
    for place, (line, colour) in enumerate(reversed(lines)):
        y = (0.16 + place * SMALL * LINE / 72) / height
        figure.text(0.35 / width, y, line, size=SMALL, color=colour)
    return text_height(notes, origin, width)


def axes_at(figure: Any, left: float, bottom: float, right: float, top: float) -> Any:
    """Add axes whose edges are given in inches from the lower left corner of the figure."""
    width, height = figure.get_size_inches()
    return figure.add_axes(
        (left / width, bottom / height, (right - left) / width, (top - bottom) / height)
    )


def log_axis(axis: Any, limits: tuple[float, float], unit: str) -> None:
    """Give one axis whole decades with plain labels (``1 T``, ``0.01``), no mathematical text."""
    low, high = limits
    decades = []
    value = low
    while value < high * 1.001:
        decades.append(value)
        value = float(f"{value * 10:.3g}")
    # At most ten labels, evenly spaced.
    step = -(-len(decades) // 10)
    labels = [
        (format_si(decade, unit, 1) if unit else f"{decade:g}") if place % step == 0 else ""
        for place, decade in enumerate(decades)
    ]
    minor = [decade * digit for decade in decades[:-1] for digit in range(2, 10)]
    axis.set_ticks(decades, labels, size=TEXT, color=INK)
    minor = [] if step > 1 else minor
    # Empty labels, or matplotlib writes its own where an axis is short.
    axis.set_ticks(minor, [""] * len(minor), minor=True)


def log_frame(axes: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Make both axes logarithmic with fixed limits and a faint grid on the decades."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    axes.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(which="major", length=3.5, width=0.6, color=INK)
    axes.tick_params(which="minor", length=1.8, width=0.4, color=INK)
    for spine in axes.spines.values():
        spine.set(linewidth=0.7, color=INK)


def draw_links(
    axes: Any,
    links: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    colour: str,
    style: str = "solid",
) -> None:
    """Draw thin lines between pairs of points: one artist, with gaps, for any number of them."""
    gap = float("nan")
    xs = [x for start, end in links for x in (start[0], end[0], gap)]
    ys = [y for start, end in links for y in (start[1], end[1], gap)]
    axes.plot(xs, ys, color=colour, linewidth=0.7, linestyle=style, zorder=3)


def key_table(
    axes: Any, rows: Sequence[KeyRow], *, size: tuple[float, float], rest: tuple[int, float]
) -> None:
    """Write the key of the numbered kernels: number, name, share of the time, bound.

    Args:
        axes: drawn on from its top; its frame is hidden.
        rows: the key.
        size: width and height of the axes in points.
        rest: number of further kernels and their share of the time.
    """
    width, height = size
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    count = len(rows) + 1 + (1 if rest[0] else 0)
    step = min(11.5, height / max(1, count))
    font = min(SMALL, step / LINE)
    places = ((18.0, "left"), (width - 61, "right"), (width - 31, "right"), (width, "right"))
    letters = int((width - 61 - 18 - 29) / (MONO * font))

    def write(line: int, cells: Sequence[str], weight: str = "normal") -> None:
        for cell, (x, side) in zip(cells, places, strict=True):
            axes.text(
                x,
                height - (line + 0.5) * step,
                cell,
                size=font,
                ha=side,
                va="center",
                family="DejaVu Sans Mono" if side == "left" else "DejaVu Sans",
                weight=weight,
                color=INK,
            )

    write(0, ("kernel", "time", "bound", "eff."), "bold")
    axes.plot([0, width], [height - step] * 2, color=INK, linewidth=0.6)
    for line, row in enumerate(rows, start=1):
        axes.text(
            14.0,
            height - (line + 0.5) * step,
            str(row.number),
            size=font,
            ha="right",
            va="center",
            weight="bold",
            color=INK,
        )
        share = format_share(row.share)
        write(line, (printable(row.name, letters), share, row.bound, row.efficiency))
    if rest[0]:
        write(len(rows) + 1, (f"and {rest[0]} more", format_share(rest[1]), "", ""))


def number_marks(
    axes: Any,
    numbers: Sequence[int],
    marks: dict[int, list[Mark]],
    *,
    obstacles: Sequence[Box],
    texts: Sequence[Box],
    size: tuple[float, float],
) -> None:
    """Write the number of each kernel near one of its markers; no two numbers overlap.

    Args:
        axes: drawn on.
        numbers: kernels to number, most important first.
        marks: the markers of each number, in points from the lower left corner of the axes.
        obstacles: what a number should not cover.
        texts: what a number must not cover.
        size: width and height of the axes in points.
    """
    wanted = [
        ((len(str(number)) * SMALL * 0.70 + 1, SMALL * 1.1), marks[number][::-1])
        for number in numbers
    ]
    placed = place_labels(wanted, obstacles, size, texts=texts)
    for number, place in zip(numbers, placed, strict=True):
        if place is None:
            continue
        if place.far:
            axes.plot(
                [place.mark.x / size[0], place.box.x / size[0]],
                [place.mark.y / size[1], place.box.y / size[1]],
                transform=axes.transAxes,
                color=SOFT,
                linewidth=0.4,
                zorder=4.5,
            )
        axes.text(
            place.box.x / size[0],
            place.box.y / size[1],
            str(number),
            transform=axes.transAxes,
            size=SMALL,
            weight="bold",
            ha="center",
            va="center_baseline",
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.75},
            gid=f"number-{number}",
            zorder=5,
        )
