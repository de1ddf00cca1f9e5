"""A thing the user must know about a result: shown with it, never raised."""

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """One warning that belongs to a result.

    Attributes:
        code: stable name, also the paragraph in docs/messages.md, e.g. ``l2-not-collected``.
        message: what is the matter, where, and what to do.
        partial: whether it means that some of the input could not be read (exit code 3).
    """

    code: str
    message: str
    partial: bool = False
