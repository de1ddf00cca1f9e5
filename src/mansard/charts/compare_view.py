"""A comparison on a terminal: readable at 60, 80 and 160 columns, without colour or markup."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mansard.charts.change_text import (
    METRIC_WORDS,
    also_text,
    conditions_text,
    headline,
    marked,
    marks_in,
    moved_text,
    noise_text,
    repeats_text,
    row_name,
    run_labels,
    shown_totals,
    speed_text,
    value_text,
)
from mansard.charts.labels import printable
from mansard.charts.rows import ROW_TITLES
from mansard.model.comparison import Comparison

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_WORD = 17
_NUMBER = 10
_CHANGE = 11
_NOISE = 9


def comparison_view(comparison: Comparison, *, top: int = 20) -> "ComparisonView":
    """Return a comparison as a Rich renderable that fits the console it is printed on.

    Args:
        comparison: what to show.
        top: rows of the table.
    """
    return ComparisonView(comparison, top=top)


class ComparisonView:
    """A comparison that lays itself out for the width of its console."""

    def __init__(self, comparison: Comparison, *, top: int) -> None:
        self._comparison = comparison
        self._top = max(1, top)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        """Yield the lines of the comparison."""
        from rich.text import Text  # noqa: PLC0415  (only who prints pays for it)

        found, width = self._comparison, max(40, options.max_width)
        labels = " -> ".join(run_labels(found))
        for line in _wrapped(labels, width):
            yield Text(line, style="bold")
        for line in _wrapped(headline(found), width):
            yield Text(line)
        for word, said in conditions_text(found):
            yield from map(Text, _wrapped(said, width, f"{word:<{_WORD}}", " " * _WORD))
        for sentence in found.unlike:
            unlike = f"{'UNLIKE':<{_WORD}}"
            yield from map(Text, _wrapped(printable(sentence), width, unlike, " " * _WORD))
        yield Text()
        yield Text(f"In all, {repeats_text(found)}", style="bold")
        for line in _totals(found):
            yield Text(line, no_wrap=True, overflow="crop")
        yield Text()
        yield Text(f"{ROW_TITLES[found.by]}, by difference in time", style="bold")
        for line in _rows(found, self._top, width):
            yield Text(line, no_wrap=True, overflow="crop")
        legend = marks_in([found.totals, *found.rows[: self._top]])
        if legend:
            yield Text()
            yield from map(Text, (line for said in legend for line in _wrapped(said, width)))
        if found.notices:
            yield Text()
            yield Text("Warnings", style="bold")
        for notice in found.notices:
            words = f"{printable(notice.code, 60)}: {printable(notice.message, 1000)}"
            yield from map(Text, _wrapped(words, width, "- ", "  "))


def _totals(comparison: Comparison) -> Iterator[str]:
    yield _line("", "before", "after", "change", "noise")
    for change in shown_totals(comparison):
        yield _line(
            METRIC_WORDS[change.metric],
            value_text(change.metric, change.a),
            value_text(change.metric, change.b),
            marked(change),
            noise_text(change),
        )


def _line(word: str, before: str, after: str, change: str, noise: str) -> str:
    cells = f"{before:>{_NUMBER}} {after:>{_NUMBER}} {change:>{_CHANGE}} {noise:>{_NOISE}}"
    return f"{word:<{_WORD}}{cells}".rstrip()


def _rows(comparison: Comparison, top: int, width: int) -> Iterator[str]:
    """Two lines a row: name, times and change; then the difference and what else changed."""
    shown, rest = comparison.rows[:top], comparison.rows[top:]
    place = len(str(len(shown)))
    name = max(8, width - place - 1 - 2 * (_NUMBER + 1) - (_CHANGE + 1))
    numbers = f"{'before':>{_NUMBER}} {'after':>{_NUMBER}} {'change':>{_CHANGE}}"
    yield f"{'':{place + 1 + name}} {numbers}"
    for number, row in enumerate(shown, start=1):
        time = row.changes["gpu_time"]
        before, after = (value_text("gpu_time", value) for value in (time.a, time.b))
        cells = f"{before:>{_NUMBER}} {after:>{_NUMBER}} {marked(time):>{_CHANGE}}"
        yield f"{number:>{place}} {row_name(row, name):<{name}} {cells}".rstrip()
        speed = speed_text(time)
        said = f"{moved_text(row)}{', ' if speed else ''}{speed}: {also_text(row)}"
        indent = " " * (place + 3)
        yield from _wrapped(said, width, indent, indent)
    if rest:
        moved = [row.moved_s for row in rest]
        time_s = sum(abs(value) for value in moved if value is not None)
        yield f"and {len(rest)} more, which moved {value_text('gpu_time', time_s)} in all"


def _wrapped(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return lines or [first]
