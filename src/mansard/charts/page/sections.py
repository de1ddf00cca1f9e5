"""The parts of the page that stand there as text, without a script: summary, warnings, origin.

Everything that comes from outside goes through ``_safe``; nothing else makes HTML of it.
"""

import html
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from mansard.charts.labels import (
    distinct,
    facts_text,
    machine_facts,
    printable,
    resource_label,
    run_facts,
)
from mansard.charts.page.summary import Sentence
from mansard.model.analysis import Analysis
from mansard.model.machine import Ceiling, Machine, printed_unit
from mansard.model.provenance import Definition
from mansard.units import format_share, format_si

#: Rows of a table, and letters of a text from outside.
_MOST_ROWS = 200
_TEXT_LIMIT = 1000


def _safe(text: str | None, limit: int = _TEXT_LIMIT) -> str:
    return html.escape(printable(text, limit))


def sentences_html(sentences: Iterable[Sentence]) -> str:
    """Return sentences as list items; a filtered phrase links to its filter."""
    items = []
    for sentence in sentences:
        parts = []
        for phrase in sentence:
            words = _safe(phrase.text)
            if phrase.filter is not None:
                target = html.escape(f"#{urlencode([phrase.filter])}")
                words = f'<a class="filter" href="{target}">{words}</a>'
            parts.append(words)
        items.append(f"<li>{''.join(parts)}</li>")
    return "\n".join(items)


def notices_html(notices: Sequence[tuple[str, str]]) -> str:
    """Return (code, message) pairs as list items."""
    return "\n".join(f"<li>{_code(name)} {_safe(message)}</li>" for name, message in notices)


def subtitle(analysis: Analysis) -> str:
    """Return the line below the title: GPU, collector, roofs."""
    facts = dict(run_facts(analysis.provenance))
    parts = [facts["GPU"] or "GPU not recorded", facts["collector"] or "collector not recorded"]
    if analysis.machine is not None:
        parts.append(f"roofs: {machine_facts(analysis.machine, analysis.totals)}")
    return " \N{MIDDLE DOT} ".join(_safe(part) for part in parts)


def origin_html(analysis: Analysis) -> str:
    """Return how the run was recorded, as a list of terms."""
    sources = distinct((s for o in analysis.provenance for s in o.sources), most=12)
    created = distinct(origin.created for origin in analysis.provenance)
    facts = [
        *run_facts(analysis.provenance),
        ("files", sources),
        ("recorded or read", created),
        ("roofs", machine_facts(analysis.machine, analysis.totals)),
        ("options", facts_text((key, str(value)) for key, value in analysis.options.items())),
    ]
    return "\n".join(
        f"<dt>{_safe(word)}</dt><dd>{_safe(value) if value else 'not recorded'}</dd>"
        for word, value in facts
    )


def definitions_html(analysis: Analysis) -> str:
    """Return what each column of the run counts, as table rows."""
    found: dict[str, Definition] = {}
    missing: dict[str, tuple[str, ...]] = {}
    for origin in analysis.provenance:
        found.update(origin.definitions)
        missing.update(origin.missing)
    rows = [
        (
            _code(column),
            _code(definition.formula),
            _safe(definition.meaning),
            _safe(definition.source),
        )
        for column, definition in found.items()
    ]
    rows += [
        (_code(column), "", _safe(f"not collected; needs {', '.join(counters)}"), "")
        for column, counters in missing.items()
        if column not in found and counters
    ]
    return _rows(rows)


def _code(text: str) -> str:
    """Return text as code."""
    return f"<code>{_safe(text)}</code>"


def ceilings_html(machine: Machine | None) -> str:
    """Return every ceiling of the machine, refused ones with their reason, as table rows."""
    return _rows(map(_ceiling, machine.ceilings)) if machine else ""


def _ceiling(ceiling: Ceiling) -> tuple[str, ...]:
    name = ceiling.path or resource_label(ceiling.level or ceiling.access or ceiling.kind)
    how = ", ".join(part for part in (ceiling.instruction, ceiling.access, ceiling.arm) if part)
    refused = ceiling.status == "refused"
    remarks = [ceiling.reason, ceiling.source]
    return (
        _safe(name, 60),
        _safe(how, 60) if how else "",
        "refused"
        if refused
        else _safe(format_si(ceiling.value, printed_unit(ceiling.unit, ceiling.path))),
        _safe(ceiling.status),
        _safe(format_share(ceiling.share_of_limit)) if ceiling.share_of_limit else "",
        _safe(format_si(ceiling.sm_clock_hz, "Hz")) if ceiling.sm_clock_hz else "",
        _safe("; ".join(remark for remark in remarks if remark), 400) if any(remarks) else "",
    )


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
        for row in list(rows)[:_MOST_ROWS]
    )
