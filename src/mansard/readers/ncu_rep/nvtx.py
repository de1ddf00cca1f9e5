"""Named ranges around a launch, from the NVTX state that the report keeps for each launch."""

import dataclasses

from mansard.errors import FormatError
from mansard.readers.ncu_rep.vocabulary import is_library_domain
from mansard.readers.ncu_rep.wire import Message

#: Push/pop ranges hold for the whole process (ncu --nvtx-push-pop-scope process).
EVERY_THREAD = -1
#: Stands for the place of a range whose place is not known: outside of all that are.
_OUTERMOST = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Ranges:
    """The named ranges around one launch; both are None without any.

    Attributes:
        path: all of them, outermost first, joined by ``/``.
        phase: the outermost one. A range that a library opens for itself is the phase only
            where the program has none.
    """

    path: str | None = None
    phase: str | None = None


def ranges_around(state: bytes, thread: int | None) -> Ranges:
    """Read the NVTX state of a launch.

    Start/end ranges hold for the whole process; of the push/pop ranges only those of the
    launching thread count, unless ncu was told otherwise. The state does not say how the two
    kinds nest, so start/end ranges are taken as the outer ones. Push/pop ranges of several domains
    and threads are ordered by the API call that they follow.

    Args:
        state: the encoded state.
        thread: the thread that launched; ``EVERY_THREAD`` where the ranges of all count. A thread
            that the state does not know takes the only one of it.
    """
    try:
        message = Message(state)
        domains = {domain.integer(1) or 0: domain.text(2) or "" for domain in message.messages(1)}
        found = [*_start_end(message), *_push_pop(message, thread)]
    except FormatError:
        return Ranges()
    named = [(domain, name) for domain, name in found if name]
    if not named:
        return Ranges()
    own = [name for domain, name in named if not is_library_domain(domains.get(domain, ""))]
    return Ranges("/".join(name for _, name in named), own[0] if own else named[0][1])


def _start_end(state: Message) -> list[tuple[int, str]]:
    found: list[tuple[int, int, str]] = []
    for domain in state.messages(3):
        number = domain.integer(1) or 0
        found += [
            (opened.integer(1) or 0, number, opened.text(2) or "") for opened in domain.messages(3)
        ]
    # Ids are given in the order of opening.
    found.sort(key=lambda entry: entry[0])
    return [(domain, name) for _, domain, name in found]


def _push_pop(state: Message, thread: int | None) -> list[tuple[int, str]]:
    threads = list(state.messages(2))
    launching = [entry for entry in threads if thread in (EVERY_THREAD, entry.integer(1))]
    # On Windows the id in the result is of another kind than the id in the state.
    if not launching and len(threads) == 1:
        launching = threads
    found: list[tuple[int, int, str]] = []
    for entry in launching:
        for domain in entry.messages(2):
            number = domain.integer(1) or 0
            last_call = _OUTERMOST
            for pushed in domain.messages(3):
                # A stack never goes back in time, whatever the file says.
                last_call = max(last_call, pushed.integer(3) or 0)
                found.append((last_call, number, pushed.text(1) or ""))
    found.sort(key=lambda entry: entry[0])
    return [(domain, name) for _, domain, name in found]
