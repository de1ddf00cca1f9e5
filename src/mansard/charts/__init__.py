"""What a user sees of an analysis, a machine or a comparison: pictures, pages, tables, JSON, CSV.

Scenes (what is drawn) are pure; only ``static`` loads matplotlib, and only when it draws.
"""

import importlib
from typing import Any

_PUBLIC = {
    "changes_figure": "static",
    "comparison_dict": "compare_files",
    "comparison_json": "compare_files",
    "comparison_markdown": "compare_files",
    "comparison_view": "compare_view",
    "comparisons_page": "page",
    "floors_figure": "static",
    "kernels_csv": "csv_report",
    "machine_figure": "static",
    "machines_figure": "static",
    "machines_page": "page",
    "page_html": "page",
    "read_detail": "page",
    "report_dict": "json_report",
    "report_json": "json_report",
    "report_view": "terminal",
    "roofline_figure": "static",
    "roofs_csv": "csv_report",
    "save_figure": "static",
    "time_figure": "static",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605  (names, built from the table)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mansard.charts' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mansard.charts.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
