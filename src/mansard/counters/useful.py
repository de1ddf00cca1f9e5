"""Which of the counters of a file can make a column of a run, whatever the chip."""

import functools

from mansard.counters.derive import origins
from mansard.counters.table import tables


def is_useful(counter: str) -> bool:
    """Whether some counter table asks for a counter, or can make one that it asks for from it.

    It says yes too often rather than too seldom: all forms of a counter (``.sum``, ``.avg``,
    ``.sum.per_second``, ...) are taken together.

    Args:
        counter: vendor name, as in the file.
    """
    return counter.partition(".")[0] in _bases()


@functools.cache
def _bases() -> frozenset[str]:
    asked: set[str] = set()
    for table in tables():
        asked.update(table.evidence)
        for alternatives in table.quantities.values():
            for alternative in alternatives:
                asked.update(alternative.formula.counters)
    return frozenset(name.partition(".")[0] for counter in asked for name in origins(counter))
