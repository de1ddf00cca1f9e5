"""In a notebook: small HTML tables of results, and their rows as a frame.

``install()`` gives ``Analysis``, ``Machine`` and ``Comparison`` their ``_repr_html_``; nothing
happens at import. Every text is escaped, and there is no script and no style sheet.
"""

import html
import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mansard.analysis.advice import advise
from mansard.charts.change_text import (
    METRIC_WORDS,
    also_text,
    headline,
    marked,
    marks_in,
    moved_text,
    noise_text,
    row_name,
    run_labels,
    shown_totals,
    value_text,
)
from mansard.charts.columns import intensity_text
from mansard.charts.csv_report import Cell, group_table
from mansard.charts.labels import (
    bound_label,
    efficiency_label,
    intensity_names,
    known,
    level_names,
    machine_facts,
    main_path,
    origin_line,
    printable,
    resource_label,
)
from mansard.charts.plain import text
from mansard.charts.rows import INTEGER_NOTE, intensity, only_integer, rate_text, share
from mansard.errors import UsageError
from mansard.model.analysis import Analysis
from mansard.model.comparison import Comparison
from mansard.model.machine import Machine, printed_unit
from mansard.units import format_share, format_si

#: Rows of a table in a notebook; the frame has all.
MOST_ROWS = 15
_MOST_ADVICE = 3
_NAME = 48

FRAMES = ("pandas", "polars", "duckdb")


def install() -> None:
    """Show results as HTML where a notebook displays them; calling it again changes nothing."""
    Analysis._repr_html_ = analysis_html  # type: ignore[attr-defined]
    Machine._repr_html_ = machine_html  # type: ignore[attr-defined]
    Comparison._repr_html_ = comparison_html  # type: ignore[attr-defined]


def analysis_html(analysis: Analysis) -> str:
    """Return the report in short: totals, what to do first, the longest kernels, the origin."""
    totals = analysis.totals
    facts = [
        ("time", format_si(known(totals.duration_s), "s")),
        ("launches", f"{totals.launches:,}"),
        ("kernels", f"{totals.kernels:,}"),
        ("work", format_si(totals.flop, "FLOP")),
        ("rate", format_si(totals.flop_per_s, "FLOP/s")),
        *(
            (resource_label(lv), format_si(totals.bytes_by_level.get(lv), "B"))
            for lv in level_names([totals])
        ),
        ("efficiency", efficiency_label(totals)),
        ("recoverable", format_si(totals.recoverable_s, "s")),
    ]
    levels = intensity_names([totals], analysis.kernels)
    header = ["", "kernel", "main path", "launches", "time", "share", "FLOP/s"]
    header += [f"{resource_label(level)} FLOP/B" for level in levels]
    header += ["bound", "eff.", "recov."]
    rows = [
        [
            str(number),
            printable(kernel.short_name or kernel.key, _NAME),
            main_path(kernel) or "-",
            str(kernel.launches),
            format_si(known(kernel.duration_s), "s"),
            format_share(share(kernel, analysis)),
            rate_text(kernel),
            *(intensity_text(intensity(kernel, level)) for level in levels),
            bound_label(kernel),
            efficiency_label(kernel),
            format_si(known(kernel.recoverable_s), "s"),
        ]
        for number, kernel in enumerate(analysis.kernels[:MOST_ROWS], start=1)
    ]
    first = [printable(advice.sentence, 1000) for advice in advise(analysis)[:_MOST_ADVICE]]
    return _block(
        _title(analysis.label or "run"),
        _line(facts),
        _list("What to do first", first),
        _table(header, rows, words=(0, 1, 2)),
        _more(len(analysis.kernels) - MOST_ROWS, "kernels"),
        _small(INTEGER_NOTE) if any(map(only_integer, analysis.kernels[:MOST_ROWS])) else "",
        _small(origin_line(analysis)),
        _list(
            "Warnings",
            [f"{printable(n.code)}: {printable(n.message, 500)}" for n in analysis.notices],
        ),
    )


def machine_html(machine: Machine) -> str:
    """Return the ceilings of a machine; refused ones with their reason."""
    rows = []
    for ceiling in machine.ceilings:
        refused = ceiling.status == "refused"
        rows.append(
            [
                printable(ceiling.path or resource_label(ceiling.level or ceiling.kind), 40),
                printable(ceiling.instruction or ceiling.access or "", 40),
                printable(ceiling.arm or "", 20),
                "refused"
                if refused
                else format_si(ceiling.value, printed_unit(ceiling.unit, ceiling.path)),
                format_share(ceiling.share_of_limit),
                format_si(ceiling.sm_clock_hz, "Hz"),
                ceiling.status,
                printable(ceiling.reason or "", 200),
            ]
        )
    header = ["ceiling", "how", "data", "value", "of limit", "SM clock", "status", "remark"]
    return _block(
        _title(machine_facts(machine)),
        _table(header, rows, words=(0, 1, 2, 6, 7)),
        _list("Caveats", [printable(caveat, 500) for caveat in machine.caveats]),
    )


def comparison_html(comparison: Comparison) -> str:
    """Return what changed: totals, then the rows with the largest difference in time."""
    totals = [
        [
            METRIC_WORDS[change.metric],
            value_text(change.metric, change.a),
            value_text(change.metric, change.b),
            marked(change),
            noise_text(change),
        ]
        for change in shown_totals(comparison)
    ]
    shown = comparison.rows[:MOST_ROWS]
    rows = []
    for row in shown:
        time = row.changes["gpu_time"]
        before, after = (value_text("gpu_time", value) for value in (time.a, time.b))
        also = also_text(row).replace("->", "→")
        rows.append([row_name(row, _NAME), before, after, marked(time), moved_text(row), also])
    header = [comparison.by, "before", "after", "change", "moved", "also"]
    labels = " → ".join(run_labels(comparison))
    return _block(
        _title(labels),
        _small(headline(comparison).replace("->", "→")),
        _list("Not recorded alike", [printable(words, 500) for words in comparison.unlike]),
        _table(["per rank and step", "before", "after", "change", "noise"], totals),
        _table(header, rows, words=(0, 5)),
        _more(len(comparison.rows) - MOST_ROWS, "rows"),
        _small("; ".join(marks_in([comparison.totals, *shown]))),
        _list(
            "Warnings",
            [f"{printable(n.code)}: {printable(n.message, 500)}" for n in comparison.notices],
        ),
    )


def kernels_frame(analysis: Analysis, kind: str = "pandas", *, by: str = "kernel") -> Any:
    """Return the rows of a report as a frame: the columns and values of the CSV.

    Args:
        analysis: what to show.
        kind: ``pandas``, ``polars`` or ``duckdb`` (a relation).
        by: rows: kernel, family, phase or rank.

    Raises:
        UsageError: ``kind`` or ``by`` is none of these, or the library is not installed.
    """
    if kind not in FRAMES:
        raise UsageError(f"no frame '{kind}': choose one of {', '.join(FRAMES)}")
    header, rows = group_table(analysis, by)
    columns = {name: [_cell(row[place]) for row in rows] for place, name in enumerate(header)}
    if kind == "duckdb":
        from mansard.engine import relation  # noqa: PLC0415  (the one owner of DuckDB)

        return relation(columns)
    try:
        library = importlib.import_module(kind)
    except ImportError as error:
        raise UsageError(f"{kind} is not installed: pip install {kind}") from error
    return library.DataFrame(columns)


def _cell(value: Cell) -> Cell:
    return text(value) if isinstance(value, str) else value


def _block(*parts: str) -> str:
    return f"<div>{''.join(part for part in parts if part)}</div>"


def _safe(words: str) -> str:
    return html.escape(words, quote=True)


def _title(words: str) -> str:
    return f"<p><b>{_safe(printable(words))}</b></p>"


def _small(words: str) -> str:
    return f"<p><small>{_safe(words)}</small></p>" if words else ""


def _line(facts: Iterable[tuple[str, str]]) -> str:
    said = ", ".join(f"{word} {value}" for word, value in facts if value != "-")
    return f"<p>{_safe(said)}</p>"


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    listed = "".join(f"<li>{_safe(item)}</li>" for item in items)
    return f"<p><b>{_safe(title)}</b></p><ul>{listed}</ul>"


def _more(count: int, what: str) -> str:
    return _small(f"and {count:,} more {what}") if count > 0 else ""


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, words: Collection[int] = (0,)
) -> str:
    """A table; the columns at ``words`` are words, the others numbers."""
    last = len(header) - 1
    styles = [
        f"text-align:{'left' if place in words else 'right'};padding:0 .6em"
        # Only remarks at the end may take several lines.
        + ("" if place == last and place in words else ";white-space:nowrap")
        for place in range(len(header))
    ]

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} style="{style}">{_safe(cell)}</{tag}>'
            for style, cell in zip(styles, row, strict=True)
        )

    head = f"<thead><tr>{cells(header, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    table = f'<table style="font-size:12px">{head}<tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'
