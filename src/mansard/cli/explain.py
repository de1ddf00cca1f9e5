"""The paragraphs of docs/messages.md, which come along with the package."""

import difflib
import importlib.resources
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from mansard.errors import UsageError

_PAGE = "messages.md"
_LONGEST = 60
_WIDTH = 80


def explained(code: str) -> str:
    """What a message means and what to do.

    Args:
        code: of a warning, or behind ``--explain`` in a message.

    Raises:
        UsageError: no message has this code.
    """
    page = dict(_paragraphs())
    found = page.get(code.strip().lower())
    if found is None:
        near = difflib.get_close_matches(code[:_LONGEST].lower(), page, n=3)
        meant = f" (is it {' or '.join(near)}?)" if near else ""
        raise UsageError(
            f"no message has the code {code[:_LONGEST]!r}{meant}: a code stands before a warning "
            "of a report, and behind --explain where an error says more"
        )
    parts = (" ".join(part.split()) for part in found.split("\n\n"))
    return "\n\n".join(textwrap.fill(part, _WIDTH, break_on_hyphens=False) for part in parts)


def _paragraphs() -> Iterator[tuple[str, str]]:
    """Each code with its text; the same code may stand in two parts."""
    texts: dict[str, list[str]] = {}
    for part in re.split(r"^## ", _text(), flags=re.MULTILINE)[1:]:
        code, _, text = part.partition("\n")
        # The title of the next part of the page is none of this paragraph.
        text = re.sub(r"^# .*", "", text, flags=re.MULTILINE).strip()
        texts.setdefault(code.strip(), []).append(text)
    yield from ((code, "\n\n".join(each)) for code, each in texts.items())


def _text() -> str:
    """The page in the installed package, or of the source that an editable install points to."""
    places = (
        importlib.resources.files("mansard") / _PAGE,
        Path(__file__).parents[3] / "docs" / _PAGE,
    )
    return next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
