"""Puts the report's page together: one file that loads nothing and shows text."""

import html

from mansard.analysis.advice import advise
from mansard.charts.labels import printable
from mansard.charts.page.assemble import assembled, asset, script
from mansard.charts.page.compact import embedded
from mansard.charts.page.data import page_data
from mansard.charts.page.detail import Detail
from mansard.charts.page.first import advice_sentences, ranks_text
from mansard.charts.page.sections import (
    ceilings_html,
    definitions_html,
    notices_html,
    origin_html,
    sentences_html,
    subtitle,
)
from mansard.charts.page.summary import summary
from mansard.charts.scene import totals_text
from mansard.model.analysis import Analysis

#: The script, in the order in which its parts need one another.
_SCRIPTS = (
    "format.js",
    "controls.js",
    "data.js",
    "filters.js",
    "state.js",
    "labels.js",
    "plot.js",
    "roofs.js",
    "roofline.js",
    "time.js",
    "bars.js",
    "kernel.js",
    "sorted.js",
    "table.js",
    "csv.js",
    "overview.js",
    "strip.js",
    "page.js",
)


def page_html(analysis: Analysis, detail: Detail | None = None) -> str:
    """Return the report as one HTML file that needs no network.

    The same analysis gives the same text. Lone surrogates in names become question marks, so
    that the result can always be written as UTF-8.

    Args:
        analysis: what to show.
        detail: what the run says beyond it (``read_detail``): kernels by phase and rank, spread
            of launches, operators, the time line. Without it the page lacks these.
    """
    detail = detail or Detail()
    given = advise(analysis)
    data = page_data(analysis, detail, given)
    encoding, text = embedded(data)
    ranks = ranks_text(analysis)
    warnings = [(entry["code"], entry["message"]) for entry in data["report"]["warnings"]]
    return assembled(
        "page.html",
        {"library": asset("vendor/d3.min.js"), "script": script(*_SCRIPTS)},
        title=html.escape(printable(analysis.label or "run", 120)),
        subtitle=subtitle(analysis),
        totals=html.escape(printable(totals_text(analysis), 400)),
        advice=sentences_html(advice_sentences(analysis, given)),
        advice_hidden="" if given else "hidden",
        sentences=sentences_html(summary(analysis, detail)),
        ranks=html.escape(ranks),
        ranks_hidden="" if ranks else "hidden",
        warnings=notices_html(warnings),
        warnings_count=len(warnings),
        origin=origin_html(analysis),
        definitions=definitions_html(analysis),
        ceilings=ceilings_html(analysis.machine),
        encoding=encoding,
        data=text,
    )
