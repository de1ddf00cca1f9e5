"""A comparison to keep: Markdown for a pull request, JSON for programs.

What each key of the JSON means stands in docs/compare.md.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

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
    shown_totals,
    value_text,
)
from mansard.charts.labels import printable
from mansard.charts.plain import number, text
from mansard.model.comparison import COMPARISON_FORMAT, Change, Comparison, Difference

_NAME = 70
#: What Markdown or HTML would take for more than text.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&@:])")


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain values that JSON can hold.

    Seconds, bytes and FLOP for each rank and step; ``None`` is unknown, 0 is zero.
    """
    return {
        "schema": COMPARISON_FORMAT,
        "a": {"label": text(comparison.label_a), "repeats": comparison.repeats_a},
        "b": {"label": text(comparison.label_b), "repeats": comparison.repeats_b},
        "by": comparison.by,
        "totals": _changes(comparison.totals),
        "rows": [
            {
                "key": text(row.key),
                "short_name": text(row.short_name),
                "family": row.family,
                "matched_by": row.matched_by,
                "names_a": [text(name) for name in row.names_a],
                "names_b": [text(name) for name in row.names_b],
                "moved_s": number(row.moved_s),
                "changes": _changes(row),
            }
            for row in comparison.rows
        ],
        "unlike": [text(sentence) for sentence in comparison.unlike],
        "warnings": [
            {"code": text(n.code), "message": text(n.message), "partial": n.partial}
            for n in comparison.notices
        ],
    }


def comparison_json(comparisons: Sequence[Comparison]) -> str:
    """Return JSON text: one object, or a list where several runs were compared with the first."""
    found = [comparison_dict(comparison) for comparison in comparisons]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2, allow_nan=False) + "\n"


def _changes(row: Difference) -> dict[str, Any]:
    return {metric: _change(change) for metric, change in row.changes.items()}


def _change(change: Change) -> dict[str, Any]:
    relative = change.relative
    return {
        "a": number(change.a),
        "b": number(change.b),
        "relative": None if relative is None or math.isinf(relative) else number(relative),
        "noise": number(change.noise),
        "verdict": change.verdict,
        "repeats": change.repeats or None,
        "repeats_a": change.repeats_a,
        "repeats_b": change.repeats_b,
    }


def comparison_markdown(comparisons: Sequence[Comparison], *, top: int = 10) -> str:
    """Return Markdown for a pull request: the headline, the totals, and the rows to open.

    Args:
        comparisons: one, or several with the same first run.
        top: rows of the table.
    """
    return "\n".join(line for one in comparisons for line in _markdown(one, top))


def _markdown(comparison: Comparison, top: int) -> Iterable[str]:
    label_a, label_b = (_code(label) for label in (comparison.label_a, comparison.label_b))
    yield f"### {label_a} → {label_b}"
    yield ""
    yield f"**{_escaped(headline(comparison).replace('->', '→'))}**"
    yield ""
    for sentence in comparison.unlike:
        yield f"⚠ not recorded alike: {_escaped(sentence)}"
        yield ""
    yield f"| {repeats_text(comparison)} | before | after | change | noise |"
    yield "|---|--:|--:|--:|--:|"
    for change in shown_totals(comparison):
        yield _cells(
            METRIC_WORDS[change.metric],
            value_text(change.metric, change.a),
            value_text(change.metric, change.b),
            _escaped(marked(change)),
            noise_text(change),
        )
    shown, rest = comparison.rows[:top], comparison.rows[top:]
    yield ""
    yield f"<details><summary>by {comparison.by}, largest difference first</summary>"
    yield ""
    yield f"| {comparison.by} | before | after | change | moved | also |"
    yield "|---|--:|--:|--:|--:|---|"
    for row in shown:
        time = row.changes["gpu_time"]
        yield _cells(
            _code(row_name(row, _NAME)),
            value_text("gpu_time", time.a),
            value_text("gpu_time", time.b),
            _escaped(marked(time)),
            moved_text(row),
            _escaped(also_text(row).replace("->", "→")),
        )
    yield ""
    if rest:
        yield f"and {len(rest)} more"
        yield ""
    yield "</details>"
    yield ""
    facts = "; ".join(f"{word} {said}" for word, said in conditions_text(comparison))
    for line in (facts, *marks_in([comparison.totals, *shown])):
        if line:
            yield _escaped(line)
            yield ""
    for notice in comparison.notices:
        yield f"- {_escaped(notice.code)}: {_escaped(printable(notice.message, 1000))}"
    if comparison.notices:
        yield ""


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    """A name as code, in which nothing is markup but the backtick and, in a table, the bar."""
    shown = printable(name, 200).replace("`", "'").replace("|", "\\|")
    return f"`{shown.strip() or ' '}`"


def _escaped(words: str) -> str:
    """Text that no Markdown reader takes for markup, a link, a mention or HTML."""
    return _SPECIAL.sub(_escape, printable(words, 1000))


def _escape(found: re.Match[str]) -> str:
    letter = found[1]
    # A backslash does not stop HTML, mentions or autolinks everywhere; an entity does.
    if letter in "<>&@:#":
        return f"&#{ord(letter)};"
    return f"\\{letter}"
