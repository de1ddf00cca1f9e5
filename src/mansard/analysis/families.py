"""Families of kernels by name: gemm, conv, attention, norm, elementwise, reduction, copy, ...

The rules stand in ``families.toml``, in the order in which they are tried.
"""

import functools
import importlib.resources
import re
import tomllib

from mansard.analysis.names import short_name

#: Every family, in the order of the charts.
FAMILIES = (
    "gemm",
    "conv",
    "attention",
    "norm",
    "elementwise",
    "reduction",
    "copy",
    "collective",
    "other",
)

_MAX_READ = 4096


def family(full_name: str) -> str:
    """The family of a kernel by its full name; ``other`` where no rule speaks."""
    for text in (short_name(full_name), full_name):
        for name, pattern in _rules():
            if pattern.search(text, 0, _MAX_READ):
                return name
    return "other"


@functools.cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    text = (importlib.resources.files("mansard.analysis") / "families.toml").read_text("utf-8")
    return tuple(
        (rule["family"], re.compile("|".join(rule["patterns"]), re.IGNORECASE))
        for rule in tomllib.loads(text)["rule"]
    )
