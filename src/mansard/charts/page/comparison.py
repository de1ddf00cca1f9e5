"""Puts the page of a comparison together: one offline file, as the report's page is."""

from collections.abc import Sequence

from mansard.charts.page.assemble import assembled, filled, script
from mansard.charts.page.changes_data import comparisons_data
from mansard.charts.page.changes_html import (
    bars_html,
    conditions_html,
    groups_html,
    headline_html,
    legend_html,
    title,
    totals_html,
    unlike_html,
    warnings_html,
)
from mansard.charts.page.compact import embedded
from mansard.errors import UsageError
from mansard.model.comparison import Comparison

#: The script, in the order in which its parts need one another.
_SCRIPTS = (
    "format.js",
    "controls.js",
    "data.js",
    "change_filters.js",
    "state.js",
    "sorted.js",
    "changes.js",
    "comparison.js",
)


#: What stands there without a script. Modules and operators are many, and layers sum them up.
_SECTIONS = ("family", "phase", "layer")


def comparisons_page(pairs: Sequence[Sequence[Comparison]]) -> str:
    """Return comparisons as one HTML file that needs no network.

    The same comparisons give the same text.

    Args:
        pairs: for each two runs their comparisons by kernel, family, phase, module, layer or
            operator, in any order. The first of each gives the totals and the chart; two runs or
            more may share a baseline.

    Raises:
        UsageError: there is nothing to show.
    """
    if not pairs or not all(pairs):
        raise UsageError("there is no comparison to show")
    encoding, text = embedded(comparisons_data(pairs))
    names = [title(pair[0]) for pair in pairs]
    return assembled(
        "comparison.html",
        {"script": script(*_SCRIPTS)},
        title=names[0] if len(pairs) == 1 else f"{len(pairs)} comparisons",
        subtitle="" if len(pairs) == 1 else "; ".join(names),
        pairs="\n".join(
            _pair(pair, place, alone=len(pairs) == 1) for place, pair in enumerate(pairs)
        ),
        tables="\n".join(
            filled(
                "pair_rows.html",
                place=place,
                title=name,
                title_class="unseen" if len(pairs) == 1 else "",
            )
            for place, name in enumerate(names)
        ),
        encoding=encoding,
        data=text,
    )


def _pair(pair: Sequence[Comparison], place: int, *, alone: bool) -> str:
    first = pair[0]
    shown = {*_SECTIONS, first.by} - {"kernel"}
    groups = [groups_html(comparison) for comparison in pair if comparison.by in shown]
    return filled(
        "pair.html",
        place=place,
        title=title(first),
        # The head of the page says it already.
        title_class="unseen" if alone else "",
        headline=headline_html(first),
        unlike=unlike_html(first),
        totals=totals_html(first),
        conditions=conditions_html(first),
        warnings=warnings_html(first),
        legend=legend_html(first),
        bars=bars_html(first),
        groups="\n".join(groups),
    )
