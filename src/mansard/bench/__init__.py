"""What a machine can do: measured ceilings of a GPU or CPU, with evidence."""

import sys
import types
from typing import Any

from mansard.bench.entry import Options, Progress, bench

__all__ = ["Options", "Progress", "bench"]


class _Callable(types.ModuleType):
    """``mansard.bench`` is the package, and, called, its function of the same name.

    Importing this package sets the attribute ``bench`` of ``mansard`` to the package, so that name
    must serve as both.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return bench(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
