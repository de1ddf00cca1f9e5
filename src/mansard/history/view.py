"""A history for the terminal and as JSON."""

import dataclasses
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mansard.analysis.names import short_name
from mansard.charts.labels import count_text, printable
from mansard.charts.plain import plain, text
from mansard.history.runs import Night
from mansard.history.trends import History, Trend
from mansard.units import format_si

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

#: Version of the JSON form.
#: 1: first.
HISTORY_FORMAT = "mansard-history/1"

#: Columns of the picture of a trend.
_SPARK = 16
_BLOCKS = "▁▂▃▄▅▆▇█"
_COMMIT = 10


def history_dict(found: History) -> dict[str, Any]:
    """The history as plain values for JSON: seconds, ISO times; ``None`` is unknown."""
    return {
        "schema": HISTORY_FORMAT,
        "label": text(found.label),
        "runs": [
            {
                "label": text(night.label),
                "created": text(night.created),
                "commit": text(night.commit),
                "commit_dirty": night.dirty,
                "gpus": [text(name) for name in night.gpus],
                "steps": night.steps,
                "total_s": plain(night.total_s),
            }
            for night in found.nights
        ],
        "trends": [
            {
                "of": trend.of,
                "key": text(trend.key),
                "values_s": plain(trend.values_s),
                "change_s": plain(trend.change_s),
                "slower": trend.slower_since is not None,
                "changes": [
                    {
                        **plain(dataclasses.asdict(change)),
                        "ratio": plain(change.ratio),
                        "run": text(found.nights[change.at].label),
                        "commit": text(found.nights[change.at].commit),
                        "commit_dirty": found.nights[change.at].dirty,
                        "commit_before": text(found.nights[change.at - 1].commit),
                    }
                    for change in trend.changes
                ],
            }
            for trend in found.trends
        ],
        "warnings": [
            {"code": n.code, "message": text(n.message), "partial": n.partial}
            for n in found.notices
        ],
    }


def history_view(found: History, *, top: int = 20) -> "HistoryView":
    """The history as a Rich renderable.

    Args:
        found: what to show.
        top: kernels shown.
    """
    return HistoryView(found, top=top)


class HistoryView:
    """A history that lays itself out for the width of its console."""

    def __init__(self, found: History, *, top: int) -> None:
        self._found = found
        self._top = max(1, top)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        """Yield the lines."""
        from rich.text import Text  # noqa: PLC0415  (only who prints pays for it)

        found, width = self._found, max(60, options.max_width)
        nights = found.nights
        yield Text(printable(found.label or "history", width), style="bold")
        words = f"{count_text(len(nights), 'run')}, {_day(nights[0].created)} to "
        words += f"{_day(nights[-1].created)}, {printable(', '.join(nights[0].gpus) or '-', 40)}; "
        words += "times of one step on one rank"
        yield from (Text(line) for line in textwrap.wrap(words, width))
        yield Text()
        yield from (Text(line, no_wrap=True, overflow="crop") for line in self._table(width))
        changed = [trend for trend in found.trends if trend.changes]
        yield Text()
        yield Text("Changes", style="bold")
        if not changed:
            yield Text("none beyond the noise")
        for line in self._changes(changed, width):
            yield Text(line)
        if found.notices:
            yield Text()
            yield Text("Warnings", style="bold")
        for notice in found.notices:
            line = f"{printable(notice.code, 60)}: {printable(notice.message, 1000)}"
            yield Text("\n".join(textwrap.wrap(line, width, initial_indent="- ")))

    def _table(self, width: int) -> Iterator[str]:
        room = width - 2 * 10 - 10 - _SPARK - 2
        yield f"{'':<{room}}{'first':>10}{'last':>10}{'change':>10}  {'over time':<{_SPARK}}"
        kernels = [trend for trend in self._found.trends if trend.of == "kernel"]
        others = [trend for trend in self._found.trends if trend.of != "kernel"]
        for trend in [*others, *kernels[: self._top]]:
            first, last = _ends(trend)
            ratio = f"{100 * (last / first - 1):+.1f} %" if first and trend.changes else "-"
            if trend.changes and not first:
                ratio = "new"
            yield (
                f"{printable(_name(trend), room - 1):<{room}}{format_si(first, 's'):>10}"
                f"{format_si(last, 's'):>10}{ratio:>10}  {_spark(trend)}"
            )
        if len(kernels) > self._top:
            yield f"and {len(kernels) - self._top} kernels more (see --json)"

    def _changes(self, changed: Sequence[Trend], width: int) -> Iterator[str]:
        nights = self._found.nights
        events = sorted(
            (
                (change.at, -abs(change.after - change.before), n, change, trend)
                for n, trend in enumerate(changed)
                for change in trend.changes
            ),
            key=lambda event: event[:3],
        )
        for at, _, _, change, trend in events[: 2 * self._top]:
            night, previous = nights[at], nights[at - 1]
            ratio = f" ({100 * (change.ratio - 1):+.1f} %)" if change.ratio is not None else ""
            commit = ""
            if night.commit:
                commit = f", commit {_commit(night)}"
                if previous.commit:
                    commit += f" (before: {_commit(previous)})"
            line = (
                f"{_day(night.created)} {printable(_name(trend), 48)}: "
                f"{format_si(change.before, 's')} to {format_si(change.after, 's')}{ratio}, "
                f"with {printable(night.label, 40)}{commit}"
            )
            yield from textwrap.wrap(
                line, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
            )
        if len(events) > 2 * self._top:
            yield f"and {len(events) - 2 * self._top} more (see --json)"


def _commit(night: Night) -> str:
    """Its first digits; ``+changes`` where what ran is in no commit."""
    shown = printable(night.commit or "", 40)[:_COMMIT]
    return f"{shown}+changes" if night.dirty else shown


def _name(trend: Trend) -> str:
    if trend.of == "kernel":
        return short_name(trend.key or "") or "(no name)"
    return f"phase {trend.key}" if trend.of == "phase" else "all launches"


def _ends(trend: Trend) -> tuple[float, float]:
    """First and last level; without a change, first and last value."""
    if trend.changes:
        return trend.changes[0].before, trend.changes[-1].after
    return trend.values_s[0], trend.values_s[-1]


def _spark(trend: Trend) -> str:
    """A line of blocks; of long histories, the largest value in each piece.

    From the least to the most where there is a change to see, else from 0, so that noise stays
    flat.
    """
    values = trend.values_s
    least, most = min(values) if trend.changes else 0.0, max(values)
    pieces = min(_SPARK, len(values))
    edges = [round(n * len(values) / pieces) for n in range(pieces + 1)]
    shown = [max(values[a:b]) for a, b in itertools.pairwise(edges)]
    if most <= least:
        return _BLOCKS[0] * pieces
    return "".join(
        _BLOCKS[round((value - least) / (most - least) * (len(_BLOCKS) - 1))] for value in shown
    )


def _day(created: str) -> str:
    return printable(created, 40)[:10] or "-"
