"""Horizontal bars as SVG: text stays text, nothing is loaded, one grey reads in print."""

import dataclasses
import html
from collections.abc import Sequence

from mansard.charts.labels import printable

_LABELS, _BARS, _VALUES, _ROW, _TOP = 330, 380, 90, 22, 38
_MOST = 120
_INK, _FILL = "#1a1a1a", "#5b6f86"


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: on its left.
        value: its length, 0 or more.
        text: the value as it is printed.
    """

    label: str
    value: float
    text: str


def bars_svg(title: str, bars: Sequence[Bar]) -> str:
    """Return an SVG picture of bars from 0, in the order given.

    Raises:
        ValueError: a value is negative.
    """
    if any(bar.value < 0 for bar in bars):
        raise ValueError("a bar has a negative length")
    longest = max((bar.value for bar in bars), default=0.0)
    width, height = _LABELS + _BARS + _VALUES, _TOP + _ROW * len(bars) + 8
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
    for number, bar in enumerate(bars):
        top = _TOP + _ROW * number
        length = _BARS * bar.value / longest if longest else 0.0
        box = f'y="{top + 3}" width="{length:.1f}" height="{_ROW - 7}"'
        lines += [
            _text(_LABELS - 8, top + 14, bar.label, 'text-anchor="end"'),
            f'<rect x="{_LABELS}" {box} fill="{_FILL}"/>',
            _text(_LABELS + length + 6, top + 14, bar.text),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, how: str = "") -> str:
    shown = html.escape(printable(words, _MOST))
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" {how}>{shown}</text>'
