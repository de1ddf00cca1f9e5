"""Puts the page together: one file that loads nothing, runs only its own script, and shows text.

The content security policy allows the two scripts and the style by their hashes and nothing
else: no network, no image, no plug-in, no script in an attribute, no markup made from text.
"""

import base64
import functools
import hashlib
import html
from importlib.resources import files
from string import Template

from mansard.analysis.advice import advise
from mansard.charts.labels import printable
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
from mansard.version import __version__

#: The script, in the order in which its parts need one another.
_SCRIPTS = (
    "format.js",
    "data.js",
    "state.js",
    "labels.js",
    "plot.js",
    "roofs.js",
    "roofline.js",
    "time.js",
    "bars.js",
    "kernel.js",
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
    library, style, script = _asset("vendor/d3.min.js"), _asset("style.css"), _script()
    ranks = ranks_text(analysis)
    warnings = [(entry["code"], entry["message"]) for entry in data["report"]["warnings"]]
    page = Template(_asset("page.html")).substitute(
        policy=_policy((library, script), style),
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
        version=html.escape(__version__),
        style=style,
        encoding=encoding,
        data=text,
        library=library,
        script=script,
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _policy(scripts: tuple[str, ...], style: str) -> str:
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@functools.cache
def _script() -> str:
    parts = "\n".join(_asset(f"script/{name}") for name in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{parts}\n}})();\n'


@functools.cache
def _asset(name: str) -> str:
    return files("mansard.charts.page").joinpath(name).read_text(encoding="utf-8")
