"""What the page of a comparison holds as data: rows as columns, numbers beside their words.

The words are made here, by the rules of the terminal, so that the page needs none of its own.
"""

from collections.abc import Sequence
from typing import Any

from mansard.charts.change_text import (
    METRIC_WORDS,
    also_text,
    change_text,
    marked,
    moved_text,
    noise_text,
    row_name,
    value_text,
)
from mansard.charts.compare_files import comparison_dict
from mansard.charts.page.compact import table
from mansard.model.comparison import Change, Comparison

#: Version of what stands in the page, for who reads it with a script.
#: 1: first.
COMPARISON_PAGE_FORMAT = "mansard-comparison-page/1"

#: Rows of a table that the page holds.
MOST_ROWS = 5_000

_NAME = 200


def comparisons_data(pairs: Sequence[Sequence[Comparison]]) -> dict[str, Any]:
    """Return all that the page shows by script, as plain values.

    Args:
        pairs: for each two runs their comparisons by kernel, family, phase, ...
    """
    return {
        "format": COMPARISON_PAGE_FORMAT,
        "words": METRIC_WORDS,
        "pairs": [
            {comparison.by: _comparison(comparison) for comparison in pair} for pair in pairs
        ],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    report = comparison_dict(comparison)
    rows = report.pop("rows")[:MOST_ROWS]
    # Names are long, and most rows are of one name on both sides.
    names = [
        None
        if row["names_a"] == row["names_b"] == [row["key"]]
        else [row["names_a"], row["names_b"]]
        for row in rows
    ]
    return {
        # As `mansard compare --json` has it, less its rows.
        "report": report,
        "metrics": _metrics(comparison),
        "left_out": len(comparison.rows) - len(rows),
        "names": names,
        "rows": table(
            [
                {
                    "key": row["key"],
                    "short_name": row["short_name"],
                    "family": row["family"],
                    "matched_by": row["matched_by"],
                    "moved_s": row["moved_s"],
                    "name": row_name(difference, _NAME),
                    "moved": moved_text(difference),
                    "also": also_text(difference).replace("->", "\N{RIGHTWARDS ARROW}"),
                    **{
                        metric: numbers | _words(difference.changes[metric])
                        for metric, numbers in row["changes"].items()
                    },
                }
                for row, difference in zip(rows, comparison.rows, strict=False)
            ]
        ),
    }


def _metrics(comparison: Comparison) -> list[str]:
    """What is known of some row, and is not zero everywhere."""
    found = dict.fromkeys(
        metric
        for row in comparison.rows
        for metric, change in row.changes.items()
        if change.a or change.b
    )
    return [metric for metric in METRIC_WORDS if metric in found]


def _words(change: Change) -> dict[str, str]:
    return {
        "before": value_text(change.metric, change.a),
        "after": value_text(change.metric, change.b),
        "change": change_text(change),
        "marked": marked(change),
        "error": noise_text(change),
    }
