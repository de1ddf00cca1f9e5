"""Change points of a short series: where its level moved by more than its noise.

Binary segmentation on medians: of the splits whose step is beyond the limit, measured in its
own uncertainty, the one that explains most is taken, and both sides are searched again. The noise
is estimated from differences of neighbours, which a few steps of the level do not move. Single
outliers change neither medians nor noise, so one bad night is no change.
"""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence

from mansard.analysis.robust import LEAST_EFFECT

#: Fewer runs than this tell too little of the noise to call anything a change.
LEAST_RUNS = 10

#: A level needs so many runs to be one; a change is reported so many runs after it came.
LEAST_LEVEL = 3

#: How often an unchanged set of series may hold a false alarm.
_FALSE_ALARMS = 0.001

# The noise is only estimated: by simulation, this keeps the rate above for 10 to 100 runs.
_WIDENING = 30

#: 1.4826 x median absolute value estimates the deviation of normal values.
_TO_SIGMA = 1.4826
#: A median is less certain than a mean by this factor (sqrt(pi / 2)).
_OF_MEDIAN = math.sqrt(math.pi / 2)
#: Values agree no better than this share, even where they seem to.
_RESOLUTION = 0.005


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A step of the level.

    Attributes:
        at: index of the first run at the new level.
        before: median of the level before.
        after: median of the new level.
        score: step in units of its uncertainty.
    """

    at: int
    before: float
    after: float
    score: float

    @property
    def ratio(self) -> float | None:
        """New level over old; None where there was nothing before."""
        return self.after / self.before if self.before else None


def change_points(values: Sequence[float], *, series: int = 1) -> tuple[Change, ...]:
    """Find the steps of a series.

    Args:
        values: one a run, in order of time.
        series: how many series are searched together; more make it stricter.

    Returns:
        The steps in order; none where there are fewer than ``LEAST_RUNS`` values.
    """
    count = len(values)
    if count < LEAST_RUNS:
        return ()
    steps = [abs(after - before) for before, after in itertools.pairwise(values)]
    sigma = _TO_SIGMA * statistics.median(steps) / math.sqrt(2)
    sigma = max(sigma, _RESOLUTION * statistics.median(map(abs, values)))
    tests = max(1, series) * count
    usual = statistics.NormalDist().inv_cdf(1 - _FALSE_ALARMS / (2 * tests))
    limit = usual * (1 + _WIDENING / count)
    cuts = sorted(_cuts(values, 0, count, sigma=sigma, limit=limit))
    ends = [0, *(cut for cut, _ in cuts), count]
    levels = [statistics.median(values[start:stop]) for start, stop in itertools.pairwise(ends)]
    return tuple(
        Change(at=cut, before=before, after=after, score=score)
        for (cut, score), before, after in zip(cuts, levels, levels[1:], strict=False)
        # Levels next to each other may turn out alike once all cuts are known.
        if _is_effect(before, after)
    )


def _cuts(
    values: Sequence[float], start: int, stop: int, *, sigma: float, limit: float
) -> list[tuple[int, float]]:
    best, best_score, least_rest = None, limit, math.inf
    for cut in range(start + LEAST_LEVEL, stop - LEAST_LEVEL + 1):
        before = statistics.median(values[start:cut])
        after = statistics.median(values[cut:stop])
        uncertain = _OF_MEDIAN * sigma * math.sqrt(1 / (cut - start) + 1 / (stop - cut))
        # Without any noise at all every step is certain.
        score = abs(after - before) / uncertain if uncertain else math.inf
        if score <= limit or not _is_effect(before, after):
            continue
        # A median takes in a run of the other level; the runs at the cut must be of their own.
        if _is_nearer(values[cut], before, after) or _is_nearer(values[cut - 1], after, before):
            continue
        # Of the certain cuts, the one that leaves least: medians alone do not place it well.
        rest = sum(abs(value - before) for value in values[start:cut])
        rest += sum(abs(value - after) for value in values[cut:stop])
        if rest < least_rest:
            best, best_score, least_rest = cut, score, rest
    if best is None:
        return []
    return [
        *_cuts(values, start, best, sigma=sigma, limit=limit),
        (best, best_score),
        *_cuts(values, best, stop, sigma=sigma, limit=limit),
    ]


def _is_nearer(value: float, one: float, other: float) -> bool:
    return abs(value - one) < abs(value - other)


def _is_effect(before: float, after: float) -> bool:
    return abs(after - before) > LEAST_EFFECT * abs(before)
