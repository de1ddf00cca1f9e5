"""What a user sees: pictures, terminal report, JSON and CSV of an analysis.

Scenes (what is drawn) are pure; only ``static`` loads matplotlib, and only when it draws.
"""

import importlib
from typing import Any

_PUBLIC = {
    "floors_figure": "static",
    "kernels_csv": "csv_report",
    "machine_figure": "static",
    "machines_figure": "static",
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
