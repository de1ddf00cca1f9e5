"""Which counters to ask for, and how many are worth the dear way. Pure."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

#: Counting each kernel costs about a second a pass; a survey of the whole step costs one step a
#: pass. It pays as soon as it can spare one pass, so not below the two that always remain.
SURVEY_FROM_PASSES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """Counters of launches.

    Attributes:
        counters: vendor names.
        rows: per launch, in order, the values of the counters.
    """

    counters: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def column(self, counter: str) -> list[float | None]:
        """The values of one counter; NaN, which CUPTI gives for 0/0, is unknown."""
        index = self.counters.index(counter)
        return [value if math.isfinite(value) else None for value in (r[index] for r in self.rows)]


def available(wanted: Sequence[str], base_counters: frozenset[str]) -> tuple[str, ...]:
    """Those of the counters that a chip has.

    Args:
        wanted: vendor names with roll-up, e.g. ``dram__bytes.sum``.
        base_counters: names without roll-up that the chip's library lists.
    """
    return tuple(dict.fromkeys(c for c in wanted if c.split(".", 1)[0] in base_counters))


def never_counted(counters: Sequence[str], totals: Mapping[str, float | None]) -> tuple[str, ...]:
    """Counters whose total over the whole step is exactly 0: each launch's share is 0 too.

    Counters count up, so a total of zero proves it, where instruction names or kernel names
    would be a guess.
    """
    return tuple(counter for counter in counters if totals.get(counter) == 0)


def groups_that_fit(
    counters: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> tuple[tuple[str, ...], ...]:
    """Cut the counters into as few groups as the memory for their images allows.

    Args:
        counters: all that are wanted.
        fits: whether the image of a group is small enough; a single counter is never cut.
    """
    whole = tuple(counters)
    if len(whole) <= 1 or fits(whole):
        return (whole,) if whole else ()
    middle = len(whole) // 2
    return (*groups_that_fit(whole[:middle], fits), *groups_that_fit(whole[middle:], fits))


def merged(parts: Sequence[Counted]) -> Counted:
    """Counters of the same launches from several configurations, side by side."""
    if not parts:
        return Counted((), ())
    counters = tuple(counter for part in parts for counter in part.counters)
    rows = tuple(
        tuple(value for row in rows for value in row)
        for rows in zip(*(part.rows for part in parts), strict=True)
    )
    return Counted(counters, rows)


def with_zeros(counted: Counted, zeros: Sequence[str]) -> Counted:
    """Add counters that are 0 for every launch."""
    tail = (0.0,) * len(zeros)
    return Counted((*counted.counters, *zeros), tuple((*row, *tail) for row in counted.rows))
