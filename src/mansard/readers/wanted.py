"""Which counters of a file are read: those that can make a column, and those asked for.

A report can hold ten thousand, of which a run uses some dozens; each costs the engine a third of
a megabyte for every thread while it fills a table.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

from mansard.counters.useful import is_useful

#: More are not read, whatever is asked for. Every metric of every section is about 3000.
MOST_COUNTERS = 5_000
#: Patterns of vendor names: all of them.
EVERYTHING = ("*",)


def counter_filter(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Make the test of a counter: it matches a pattern, or some counter table has a use for it.

    Args:
        patterns: of vendor names, e.g. ``("launch__*",)``.
    """
    asked = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")

    def is_wanted(counter: str) -> bool:
        return is_useful(counter) or asked.match(counter) is not None

    return is_wanted


def first_counters(counters: Sequence[str]) -> list[str]:
    """As many as are read; those that a counter table has a use for stay rather than others."""
    if len(counters) <= MOST_COUNTERS:
        return list(counters)
    chosen = set(sorted(counters, key=lambda counter: not is_useful(counter))[:MOST_COUNTERS])
    return [counter for counter in counters if counter in chosen]
