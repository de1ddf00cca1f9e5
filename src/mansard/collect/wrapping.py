"""Puts a function in the place of another for a while."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

_Function = Callable[..., Any]


@contextlib.contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[_Function], _Function]) -> Iterator[None]:
    """Replace ``owner.name`` by ``wrap(owner.name)`` in the block.

    Args:
        owner: module or class.
        name: of the function in it.
        wrap: makes the new function from the old one.
    """
    original = getattr(owner, name)
    replacement = wrap(original)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        # Someone else may have wrapped it after us; then ours stays, and only passes on.
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)
