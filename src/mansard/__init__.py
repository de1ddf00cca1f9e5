"""Mansard: hierarchical Roofline analysis for NVIDIA GPUs and deep learning.

Importing this package loads nothing heavy and changes nothing; each public name loads what it
needs when it is first used.
"""

import importlib
import sys
import types
from typing import Any

from mansard.version import __version__

_PUBLIC = {
    "Analysis": "mansard.model.analysis",
    "Machine": "mansard.model.machine",
    "Part": "mansard.analysis.parts",
    "MansardError": "mansard.errors",
    "Run": "mansard.model.run",
    "advise": "mansard.analysis.advice",
    "analyze": "mansard.analysis",
    "bench": "mansard.bench",
    "compare": "mansard.analysis.compare",
    "doctor": "mansard.doctor",
    "machine": "mansard.store",
    "open": "mansard.readers",
    "phase": "mansard.collect",
    "profile": "mansard.collect",
    "profile_callable": "mansard.collect",
    "validate": "mansard.validate",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604  (names, built from the table)


class _Package(types.ModuleType):
    """Keeps a public function whose module has the same word, such as ``mansard.bench``.

    Importing ``mansard.bench`` would otherwise bind that name to the module.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mansard' has no attribute {name!r}")
    if "IPython" in sys.modules:
        # In a notebook, analyses, machines and comparisons show themselves.
        importlib.import_module("mansard.charts.notebook").install()
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
