"""Values as JSON and CSV can hold them: whole numbers exact, no NaN, no broken characters."""

import math
from collections.abc import Mapping
from typing import Any

#: Whole numbers beyond this are left as floats: no counter is wider than 64 bits.
_LARGEST_COUNT = 2**64


def number(value: float | None) -> int | float | None:
    """Keep integers, make whole floats integers, and NaN or infinity unknown."""
    if value is None or isinstance(value, bool | int):
        return value
    value = float(value)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _LARGEST_COUNT else value


def text(value: str | None) -> str | None:
    """Make text that every JSON reader takes: a lone surrogate is no character."""
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")


def plain(value: object) -> Any:
    """Return nested plain values; what JSON cannot hold becomes its text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {str(text(str(key))): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return text(str(value))
