"""Named ranges around a launch, from the two NVTX columns."""

import re

from mansard.readers.ncu_rep.vocabulary import is_library_domain

#: Ranges stand in quotes; a quote that belongs to a name is followed by something else.
_RANGE = re.compile(r'"((?:[^"]|"(?!\s|$))*)"(?=\s|$)')
#: After the name: payload type and value, colour type and colour, message type, message.
_DETAILS = 6


def ranges_of(push_pop: str, start_stop: str) -> tuple[str | None, str | None]:
    """All ranges of a launch joined by ``/``, outermost first, and its phase.

    The columns do not say how the two kinds nest: start/end ranges hold for the whole process and
    are taken as the outer ones. A range that a library opens for itself is the phase only where
    the program has none.

    Args:
        push_pop: text of the column of push/pop ranges.
        start_stop: text of the column of start/end ranges.
    """
    found = [_domain_and_name(entry) for entry in _RANGE.findall(f"{start_stop} {push_pop}")]
    named = [(domain, name) for domain, name in found if name]
    if not named:
        return None, None
    own = [name for domain, name in named if not is_library_domain(domain)]
    return "/".join(name for _, name in named), own[0] if own else named[0][1]


def _domain_and_name(entry: str) -> tuple[str, str]:
    domain, _, rest = entry.partition(":")
    parts = rest.split(":")
    # A registered name stands there again as the message, and each may hold colons.
    length, odd = divmod(len(parts) - _DETAILS + 1, 2)
    if length > 0 and not odd and parts[:length] == parts[-length:]:
        return domain, ":".join(parts[:length])
    return domain, ":".join(parts[:-_DETAILS] or parts[:1])
