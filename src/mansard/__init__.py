"""Mansard: hierarchical Roofline analysis for NVIDIA GPUs and deep learning.

Importing this package loads nothing heavy and changes nothing; each public name loads what it
needs when it is first used.
"""

import importlib
from typing import Any

from mansard.version import __version__

_PUBLIC = {
    "Analysis": "mansard.model.analysis",
    "Machine": "mansard.model.machine",
    "MansardError": "mansard.errors",
    "Run": "mansard.model.run",
    "analyze": "mansard.analysis",
    "bench": "mansard.bench",
    "machine": "mansard.store",
    "open": "mansard.readers",
    "profile": "mansard.collect",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604  (names, built from the table)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mansard' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
