"""What Nsight Compute said of itself while it recorded: explained, as notices and conditions."""

import functools
import re
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Any

from mansard.model.notice import Notice

_LONGEST = 300
#: More different messages of one code than this are only counted.
_MAX_NOTICES = 8
_KIND = re.compile(r"==(ERROR|WARNING)==\s*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def notices_of(messages: Iterable[str]) -> tuple[Notice, ...]:
    """Explain messages: errors and warnings become notices, those on conditions do not.

    Args:
        messages: lines from their ``==ERROR==`` or ``==WARNING==`` on.
    """
    found: dict[str, list[str]] = {}
    advice: dict[str, str] = {}
    errors: set[str] = set()
    for message in messages:
        kind = _KIND.match(message)
        text = _KIND.sub("", message)
        text = _UNPRINTABLE.sub(" ", text)[:_LONGEST].strip()
        if kind is None or not text or _condition(text) is not None:
            continue
        is_error = kind.group(1) == "ERROR"
        known = _explained(text)
        code = known["code"] if known else ("ncu-error" if is_error else "ncu-warning")
        advice[code] = f": {known['advice']}" if known else ""
        if is_error:
            errors.add(code)
        found.setdefault(code, [])
        if text not in found[code]:
            found[code].append(text)
    return tuple(
        Notice(code, f'Nsight Compute said "{_joined(texts)}"{advice[code]}', code in errors)
        for code, texts in found.items()
    )


def conditions_of(messages: Iterable[str]) -> dict[str, str]:
    """Fields of a provenance that messages tell: ``cache_control``, ``clock_control``."""
    found = (_condition(message) for message in messages)
    return {entry["field"]: entry["value"] for entry in found if entry is not None}


def _joined(texts: list[str]) -> str:
    shown = "; ".join(texts[:_MAX_NOTICES])
    more = len(texts) - _MAX_NOTICES
    return f"{shown}; and {more} more" if more > 0 else shown


def _explained(text: str) -> dict[str, Any] | None:
    return _first(text, "message")


def _condition(text: str) -> dict[str, Any] | None:
    return _first(text, "condition")


def _first(text: str, kind: str) -> dict[str, Any] | None:
    for entry in _table()[kind]:
        if re.search(entry["pattern"], text, re.IGNORECASE):
            return entry
    return None


@functools.cache
def _table() -> dict[str, list[dict[str, Any]]]:
    path = resources.files(__package__).joinpath("messages.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))
