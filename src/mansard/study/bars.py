"""Horizontal bars as SVG: text stays text, nothing is loaded, two greys read in print."""

import dataclasses
import html
import itertools
from collections.abc import Sequence

from mansard.charts.labels import printable

_BARS, _VALUES, _ROW, _TOP, _GAP = 380, 90, 22, 38, 12
_MOST = 120
#: Room for a letter of a label: wide ones of a wide font still fit.
_LETTER, _LEAST_LABELS = 7.0, 60.0
_INK, _FILL, _LIGHT = "#1a1a1a", "#5b6f86", "#d9e0e8"


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: on its left.
        value: its length, 0 or more.
        text: the value as it is printed.
        dark: which part of it is dark, 0 to 1; None where that is not known: dashed.
        group: a gap stands where it differs from that of the bar above.
    """

    label: str
    value: float
    text: str
    dark: float | None = 1.0
    group: str = ""


def bars_svg(title: str, bars: Sequence[Bar], remark: str = "") -> str:
    """Return an SVG picture of bars from 0, in the order given.

    Args:
        title: in bold above them.
        bars: from the top.
        remark: a line under the title, how the bars are read.

    Raises:
        ValueError: a value is negative.
    """
    if any(bar.value < 0 for bar in bars):
        raise ValueError("a bar has a negative length")
    longest = max((bar.value for bar in bars), default=0.0)
    letters = max((len(printable(bar.label, _MOST)) for bar in bars), default=0)
    labels = max(_LEAST_LABELS, _LETTER * letters + 16)
    first = _TOP + (_ROW if remark else 0)
    gaps = [one.group != other.group for one, other in itertools.pairwise(bars)]
    width = round(labels + _BARS + _VALUES)
    height = first + _ROW * len(bars) + _GAP * sum(gaps) + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">'
    )
    lines = [
        head,
        f"<title>{html.escape(printable(title, _MOST))}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(8, 20, title, 'font-size="14" font-weight="bold"'),
    ]
    if remark:
        lines.append(_text(8, 40, remark))
    for number, bar in enumerate(bars):
        top = first + _ROW * number + _GAP * sum(gaps[:number])
        length = _BARS * bar.value / longest if longest else 0.0
        lines += [
            _text(labels - 8, top + 14, bar.label, 'text-anchor="end"'),
            *_box(labels, top + 3, length, bar.dark),
            _text(labels + length + 6, top + 14, bar.text),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _box(x: float, y: float, length: float, dark: float | None) -> list[str]:
    """A bar whose left part is dark; an outline where that part is not known."""
    place = f'x="{x:.1f}" y="{y:.1f}" height="{_ROW - 7}"'
    edge = f'stroke="{_FILL}"'
    if dark is None:
        return [f'<rect {place} width="{length:.1f}" fill="none" {edge} stroke-dasharray="3 2"/>']
    filled = f'<rect {place} width="{length * min(1.0, dark):.1f}" fill="{_FILL}"/>'
    if dark >= 1:
        return [filled]
    return [f'<rect {place} width="{length:.1f}" fill="{_LIGHT}" {edge}/>', filled]


def _text(x: float, y: float, words: str, how: str = "") -> str:
    shown = html.escape(printable(words, _MOST))
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" {how}>{shown}</text>'
