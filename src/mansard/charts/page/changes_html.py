"""The parts of a comparison's page that stand there as text and bars, without a script."""

import html
from collections.abc import Iterable, Sequence

from mansard.charts.change_text import (
    METRIC_WORDS,
    also_text,
    headline,
    marked,
    marks_in,
    moved_text,
    noise_text,
    repeats_text,
    row_name,
    shown_totals,
    speed_text,
    value_text,
)
from mansard.charts.changes_scene import Bar, ChangesScene, changes_scene
from mansard.charts.labels import distinct, printable, run_facts
from mansard.charts.page.sections import notices_html
from mansard.charts.rows import ROW_TITLES
from mansard.model.comparison import Change, Comparison, Difference

#: Size of a bar in its own units; it is stretched to its cell.
_WIDTH, _HEIGHT = 200, 16

#: Rows of a table that stands there without a script.
_MOST_ROWS = 60
_NAME = 90

#: What a verdict means to a reader.
VERDICT_WORDS = {
    "changed": "changed",
    "same": "the same",
    "within noise": "within the noise",
    "noise unknown": "noise unknown",
    "unknown": "unknown",
}

_ARROW = "\N{RIGHTWARDS ARROW}"


def safe(words: str | None, limit: int = 1000) -> str:
    """Return text as HTML: one visible line."""
    return html.escape(printable(words, limit))


def title(comparison: Comparison) -> str:
    """Return the names of the two runs."""
    return f"{safe(comparison.label_a, 120)} {_ARROW} {safe(comparison.label_b, 120)}"


def headline_html(comparison: Comparison) -> str:
    """Return the one line that says it all."""
    return safe(headline(comparison).replace("->", _ARROW))


def conditions_html(comparison: Comparison) -> str:
    """Return how both runs were recorded, as rows: condition, first, second, whether alike."""
    sides = []
    for origins, repeats in (
        (comparison.provenance_a, comparison.repeats_a),
        (comparison.provenance_b, comparison.repeats_b),
    ):
        files = distinct((source for origin in origins for source in origin.sources), most=2)
        created = distinct(origin.created for origin in origins)
        own = [("files", files), ("recorded or read", created), ("steps x ranks", str(repeats))]
        sides.append([*run_facts(origins), *own])
    rows = []
    for (word, one), (_, other) in zip(*sides, strict=True):
        if word in ("files", "recorded or read", "steps x ranks"):
            alike = ""
        elif one is None or other is None:
            alike = "not known"
        else:
            alike = "alike" if one == other else "<strong>unlike</strong>"
        cells = [safe(value, 300) if value else "not recorded" for value in (one, other)]
        rows.append(_row([safe(word), *cells, alike]))
    return "\n".join(rows)


def totals_html(comparison: Comparison) -> str:
    """Return what moved in all, as rows: metric, values, change, noise, repeats, verdict."""
    return "\n".join(
        _row(_total(change), numbers=(1, 2, 3, 4, 5)) for change in shown_totals(comparison)
    )


def _total(change: Change) -> list[str]:
    counted = f"{change.repeats_a} and {change.repeats_b} {change.repeats}"
    exact = change.verdict == "changed" and change.noise is None
    return [
        safe(METRIC_WORDS[change.metric]),
        safe(value_text(change.metric, change.a)),
        safe(value_text(change.metric, change.b)),
        safe(marked(change)),
        safe(noise_text(change)),
        safe(counted) if change.repeats else "-",
        "changed (exact)" if exact else VERDICT_WORDS[change.verdict],
    ]


def groups_html(comparison: Comparison) -> str:
    """Return families, phases, ... as a whole section; nothing where no row has a name."""
    if len(comparison.rows) < 2 and all(row.key is None for row in comparison.rows):
        return ""
    rows = "\n".join(
        _row(_group(row), numbers=(1, 2, 3, 4, 5)) for row in comparison.rows[:_MOST_ROWS]
    )
    rest = len(comparison.rows) - _MOST_ROWS
    more = f'<p class="soft">and {rest} more</p>' if rest > 0 else ""
    heads = "".join(
        f"<th{kind}>{head}</th>"
        for head, kind in (
            (comparison.by, ""),
            *((head, ' class="n"') for head in ("before", "after", "change", "noise", "moved")),
            ("also", ""),
        )
    )
    return (
        f"<section><h3>{ROW_TITLES[comparison.by]}, by difference in time</h3>"
        '<div class="scroll"><table class="plain groups">'
        f"<thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>{more}"
        "</section>"
    )


def _group(row: Difference) -> list[str]:
    time = row.changes["gpu_time"]
    return [
        safe(row_name(row, _NAME)),
        safe(value_text("gpu_time", time.a)),
        safe(value_text("gpu_time", time.b)),
        safe(marked(time)),
        safe(noise_text(time)),
        safe(moved_text(row)),
        safe(
            "; ".join(part for part in (speed_text(time), also_text(row)) if part).replace(
                "->", _ARROW
            )
        ),
    ]


def legend_html(comparison: Comparison) -> str:
    """Return what the marks after the changes mean."""
    return safe(
        "; ".join([repeats_text(comparison), *marks_in([comparison.totals, *comparison.rows])])
    )


def warnings_html(comparison: Comparison) -> str:
    """Return the warnings; nothing where there is none."""
    if not comparison.notices:
        return ""
    listed = notices_html([(notice.code, notice.message) for notice in comparison.notices])
    return (
        f'<details class="box warnings" open><summary>Warnings: {len(comparison.notices)}</summary>'
        f"<ul>\n{listed}\n</ul></details>"
    )


def unlike_html(comparison: Comparison) -> str:
    """Return in what the runs differ beside the program; nothing where they do not."""
    if not comparison.unlike:
        return ""
    said = "; ".join(safe(sentence, 300) for sentence in comparison.unlike)
    return (
        '<p class="box unlike" role="note"><strong>Not recorded alike</strong>, so part or all of '
        f"a change may come from that: {said}.</p>"
    )


def bars_html(comparison: Comparison) -> str:
    """Return the chart: for each row the times before and after, and the difference."""
    scene = changes_scene(comparison)
    if not scene.bars:
        return '<p class="soft">No row has a known difference in time.</p>'
    rows = "\n".join(_bar(bar, scene) for bar in scene.bars)
    heads = (
        '<th>#</th><th>name</th><th class="wide">before, after</th><th>before</th><th>after</th>'
    )
    heads += '<th class="wide">shorter | longer</th><th>moved</th><th>change</th>'
    notes = "".join(f"<li>{safe(note)}</li>" for note in scene.notes)
    return (
        f'<table class="bars moves"><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody>'
        "</table>"
        f'<ul class="notes soft">{notes}</ul>'
    )


def _bar(bar: Bar, scene: ChangesScene) -> str:
    cells = [
        f"<td>{bar.number}</td>",
        f'<th scope="row" title="{safe(bar.name)}">{safe(bar.name)}</th>',
        f'<td class="wide">{_times(bar, scene.longest_s)}</td>',
        f"<td>{safe(bar.before)}</td>",
        f"<td>{safe(bar.after)}</td>",
        f'<td class="wide">{_difference(bar, scene.reach_s)}</td>',
        f"<td>{safe(bar.moved)}</td>",
        f"<td>{safe(bar.change)}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _svg(*parts: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def _times(bar: Bar, longest_s: float) -> str:
    def rectangle(kind: str, top: int, time_s: float) -> str:
        width = (_WIDTH - 2) * time_s / longest_s
        return f'<rect class="{kind}" x="1" y="{top}" width="{width:.2f}" height="6"/>'

    return _svg(rectangle("frame", 1, bar.before_s), rectangle("fill", 9, bar.after_s))


def _difference(bar: Bar, reach_s: tuple[float, float]) -> str:
    low, high = reach_s
    scale = (_WIDTH - 8) / (low + high)
    zero = 4 + low * scale
    length = abs(bar.moved_s) * scale
    left = zero if bar.moved_s > 0 else zero - length
    kind = "longer" if bar.moved_s > 0 else "shorter"
    edge = "" if bar.sure else " unsure"
    parts = [
        f'<rect class="{kind}{edge}" x="{left:.2f}" y="3" width="{length:.2f}" height="10"/>',
        f'<line class="zero" x1="{zero:.2f}" x2="{zero:.2f}" y1="0" y2="{_HEIGHT}"/>',
    ]
    if bar.noise_s:
        end = zero + bar.moved_s * scale
        reach = bar.noise_s * scale
        parts.append(
            f'<path class="whisker" d="M{end - reach:.2f} 8H{end + reach:.2f}'
            f'M{end - reach:.2f} 4v8M{end + reach:.2f} 4v8"/>'
        )
    return _svg(*parts)


def _row(cells: Iterable[str], *, numbers: Sequence[int] = ()) -> str:
    first, *others = cells
    made = "".join(
        f"<td{' class=n' if place in numbers else ''}>{cell}</td>"
        for place, cell in enumerate(others, start=1)
    )
    return f'<tr><th scope="row">{first}</th>{made}</tr>'
