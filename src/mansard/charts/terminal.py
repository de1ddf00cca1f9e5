"""The report for a terminal: readable at 60, 80 and 160 columns, without colour, without markup.

Names from outside are put into ``Text`` objects, which Rich never parses, after control
characters were replaced.
"""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mansard.analysis.advice import advise
from mansard.charts.columns import group_lines
from mansard.charts.labels import (
    ABOVE_ROOF_CAUSES,
    RESOURCES,
    above_roof,
    bound_label,
    count_text,
    distinct,
    efficiency_label,
    facts_text,
    is_tiny,
    known,
    level_names,
    machine_facts,
    printable,
    resource_label,
    run_facts,
    unknown_paths,
)
from mansard.charts.rows import INTEGER_NOTE, ROW_TITLES, groups_of, only_integer
from mansard.charts.step_words import traced_words, untraced_words
from mansard.model.analysis import Analysis, Group, quotient
from mansard.units import format_share, format_si

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

#: Width of the words on the left of the summary.
_WORD = 11

#: Phases shown above the main table.
_MOST_PHASES = 20

#: Advice shown; the JSON report has all.
_MOST_ADVICE = 3

#: Notices shown; the JSON report has all.
_MOST_NOTICES = 20


def report_view(analysis: Analysis, *, by: str = "kernel", top: int = 20) -> "ReportView":
    """Return the report as a Rich renderable that fits the console it is printed on.

    Args:
        analysis: what to show.
        by: rows of the main table: kernel, family, phase, rank, module, layer or
            operator.
        top: rows of the main table.

    Raises:
        UsageError: ``by`` is none of these.
    """
    return ReportView(analysis, groups_of(analysis, by), by=by, top=top)


class ReportView:
    """A report that lays itself out for the width of its console."""

    def __init__(self, analysis: Analysis, groups: Sequence[Group], *, by: str, top: int) -> None:
        self._analysis = analysis
        self._groups = groups
        self._by = by
        self._top = max(1, top)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        """Yield the lines of the report."""
        from rich.text import Text  # noqa: PLC0415  (only who prints pays for it)

        analysis, width = self._analysis, max(20, options.max_width)
        yield Text(printable(analysis.label or "run", width), style="bold")
        for word, text in [*_header(analysis), *_summary(analysis)]:
            for line in _wrapped(text, width, f"{word:<{_WORD}}", " " * _WORD):
                yield Text(line)
        yield from _advice(analysis, width)
        phases = analysis.phases
        if self._by != "phase" and (len(phases) > 1 or any(phase.key for phase in phases)):
            yield from _table("Phases", phases, analysis, width=width, top=_MOST_PHASES)
        title = ROW_TITLES[self._by]
        yield from _table(title, self._groups, analysis, width=width, top=self._top)
        for note in _notes(analysis, self._groups[: self._top]):
            yield from map(Text, _wrapped(note, width))
        if analysis.notices:
            yield Text()
            yield Text("Warnings", style="bold")
            for notice in analysis.notices[:_MOST_NOTICES]:
                words = f"{printable(notice.code, 60)}: {printable(notice.message, 1000)}"
                yield from map(Text, _wrapped(words, width, "- ", "  "))
            if len(analysis.notices) > _MOST_NOTICES:
                yield Text(f"and {len(analysis.notices) - _MOST_NOTICES} more (see --json)")


def _wrapped(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return lines or [first]


def _table(
    title: str, groups: Sequence[Group], analysis: Analysis, *, width: int, top: int
) -> "Iterator[RenderableType]":
    from rich.text import Text  # noqa: PLC0415

    yield Text()
    yield Text(f"{title} (levels: FLOP/byte)", style="bold")
    if not groups:
        yield Text("none")
        return
    header, body = group_lines(groups[:top], analysis, width)
    for line in header:
        yield Text(line, style="dim", no_wrap=True, overflow="crop")
    for line in body:
        yield Text(line, no_wrap=True, overflow="crop")
    rest = groups[top:]
    if rest:
        time = sum(known(group.duration_s) or 0 for group in rest)
        part = quotient(time, known(analysis.totals.duration_s))
        yield Text(f"and {len(rest)} more, {format_share(part)} of the time")


def _advice(analysis: Analysis, width: int) -> "Iterator[RenderableType]":
    """What to do first: the sentence of each rule behind the time that it can win at most."""
    from rich.text import Text  # noqa: PLC0415

    given = advise(analysis)
    if not given:
        return
    yield Text()
    yield Text("What to do first", style="bold")
    for number, advice in enumerate(given[:_MOST_ADVICE], start=1):
        time = known(advice.recoverable_s)
        part = format_share(quotient(time, known(analysis.totals.duration_s)))
        gain = "" if time is None else f"up to {format_si(time, 's')} ({part}). "
        words = f"{gain}{printable(advice.sentence, 1000)}"
        yield from map(Text, _wrapped(words, width, f"{number}. ", "   "))
    if len(given) > _MOST_ADVICE:
        yield Text(f"and {len(given) - _MOST_ADVICE} more (see --json)")


def _header(analysis: Analysis) -> list[tuple[str, str]]:
    facts = dict(run_facts(analysis.provenance))
    sources = distinct(source for origin in analysis.provenance for source in origin.sources)
    conditions = ("clock control", "cache control", "replay", "counter table")
    recorded = facts_text((word, facts[word]) for word in conditions)
    return [
        ("GPU", f"{facts['GPU'] or '-'}, driver {facts['driver'] or '-'}"),
        ("collected", f"{facts['collector'] or '-'}, {recorded}"),
        *([("from", sources)] if sources else []),
        ("roofs", machine_facts(analysis.machine, analysis.totals)),
    ]


def _summary(analysis: Analysis) -> list[tuple[str, str]]:
    totals = analysis.totals
    time = known(totals.duration_s)
    at_least = "" if totals.flop_complete or totals.flop is None else "at least "
    work = f"{at_least}{format_si(totals.flop, 'FLOP')}, {format_si(totals.flop_per_s, 'FLOP/s')}"
    if totals.op_int:
        work += f", integer {format_si(totals.op_int, 'OP')}"
    spent = (
        f"{format_si(time, 's')} on the GPU in {count_text(totals.launches, 'launch')}"
        f" of {count_text(totals.kernels, 'kernel')}"
    )
    lines = [
        ("time", spent),
        *_step(analysis),
        ("work", work),
        ("precision", _precision_mix(analysis)),
        ("traffic", _by_level(totals)),
        ("no FLOP", _census(totals.zero_flop_launches, totals.zero_flop_duration_s, totals)),
    ]
    if totals.near_zero_flop_launches:
        near = _census(totals.near_zero_flop_launches, totals.near_zero_flop_duration_s, totals)
        limit = analysis.options.get("near_zero_intensity")
        if isinstance(limit, int | float):
            near += f", below {limit:g} FLOP/byte"
        lines.append(("near zero", near))
    if totals.short_launches:
        part = format_share(quotient(totals.short_launches, totals.launches))
        short = f"{count_text(totals.short_launches, 'launch')} ({part})"
        limit = analysis.options.get("short_launch_s")
        if isinstance(limit, int | float):
            short += f", below {format_si(limit, 's')}"
        lines.append(("short", short))
    if totals.untimed_launches:
        lines.append(("no time", f"{count_text(totals.untimed_launches, 'launch')}, so no rate"))
    if analysis.machine is not None:
        floor, above = format_si(totals.floor_s, "s"), format_si(totals.recoverable_s, "s")
        lines.append(("floors", _floors(totals)))
        lines.append(
            ("efficiency", f"{efficiency_label(totals)} (floor {floor}), recoverable {above}")
        )
    if len(analysis.ranks) > 1:
        lines.append(("ranks", str(len(analysis.ranks))))
    return lines


def _step(analysis: Analysis) -> list[tuple[str, str]]:
    passed = analysis.timeline
    said = (traced_words(passed), untraced_words(passed)) if passed else ()
    words = "; ".join(part for part in said if part)
    return [("step", words)] if words else []


def _precision_mix(analysis: Analysis) -> str:
    totals = analysis.totals
    done = [
        (path, flop)
        for path, flop in totals.flop_by_path.items()
        if "int" not in path and known(flop)
    ]
    done.sort(key=lambda entry: -(entry[1] or 0))
    parts = [f"{path} {format_share(quotient(flop, totals.flop))}" for path, flop in done]
    unknown = list(unknown_paths(analysis))
    if unknown and not totals.flop_complete:
        listed = ", ".join(printable(path, 24) for path in unknown[:4])
        parts.append(f"not collected: {listed}" + (", ..." if len(unknown) > 4 else ""))
    return ", ".join(parts) or "-"


def _by_level(totals: Group) -> str:
    parts = [
        f"{resource_label(level)} {format_si(totals.bytes_by_level.get(level), 'B')}"
        for level in level_names([totals])
    ]
    return ", ".join(parts) or "-"


def _census(launches: int | None, time: float | None, totals: Group) -> str:
    if launches is None:
        return "-"
    part = format_share(quotient(launches, totals.launches))
    spent = format_share(quotient(known(time), known(totals.duration_s)))
    return f"{count_text(launches, 'launch')} ({part}), {spent} of the time"


def _floors(totals: Group) -> str:
    parts = [
        f"{resource_label(name)} {format_si(totals.floors_s[name], 's')}"
        for name in RESOURCES
        if name in totals.floors_s
    ]
    return (", ".join(parts) or "-") + f"; bound {bound_label(totals)}"


def _notes(analysis: Analysis, shown: Sequence[Group]) -> list[str]:
    notes = []
    if any(bound_label(group) == "?" for group in shown):
        notes.append("bound ?: a resource of the machine was not collected.")
    if any(is_tiny(group) for group in shown):
        notes.append("~: launches too small to judge; starting them counts more than their work.")
    if any(map(only_integer, [*shown, *analysis.phases])):
        notes.append(INTEGER_NOTE)
    above = analysis.totals.launches_above_roof
    told = any(notice.code == "above-roof" for notice in analysis.notices)
    if not told and (above or any(above_roof(group) for group in shown)):
        what = f"{count_text(above, 'launch')} faster than the roof" if above else "> roof"
        notes.append(f"{what}: something is wrong. Look at: {ABOVE_ROOF_CAUSES}.")
    return ["", *notes] if notes else []
