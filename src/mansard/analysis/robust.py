"""Which values of many stand out: median and median absolute deviation, with a calibrated limit.

A mean and a standard deviation would be moved by the very outliers that are looked for. Median
and MAD are not, up to half of the values (Rousseeuw and Croux, JASA 88, 1993).
"""

import statistics
from collections.abc import Sequence

from mansard.model.fleet import Spread

#: Fewer values than this say too little of their spread to call one an outlier.
LEAST_VALUES = 8

#: Smaller differences than this share of the median are never called one.
LEAST_EFFECT = 0.03

#: How often a set of usual (normal) values may hold a false alarm.
FALSE_ALARMS = 0.001

#: 1.4826 MAD estimates the standard deviation of normal values.
_TO_SIGMA = 1.4826

#: Values agree no better than this share of the median, even where they seem to.
_RESOLUTION = 0.005

# The limit for normal values with a known spread, wider since the spread is only estimated. By
# simulation the largest robust score exceeds it in about 1 of 1000 sets of 8 to 4096 values.
_WIDENING = 20


def spread(values: Sequence[float]) -> Spread:
    """Median and robust deviation of at least one value."""
    median = statistics.median(values)
    deviation = _TO_SIGMA * statistics.median(abs(value - median) for value in values)
    return Spread(
        count=len(values), least=min(values), median=median, most=max(values), deviation=deviation
    )


def score(value: float, among: Spread) -> float | None:
    """Robust z-score: distance from the median in deviations; None with too few values."""
    sigma = max(among.deviation, _RESOLUTION * abs(among.median))
    if among.count < LEAST_VALUES or sigma <= 0:
        return None
    return (value - among.median) / sigma


def limit(count: int, *, series: int = 1) -> float:
    """The score beyond which one of ``count`` values is an outlier.

    Args:
        count: values that are compared with each other.
        series: how many sets of as many values are searched together.
    """
    usual = statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / (count * series))
    return usual * (1 + _WIDENING / count)


def stands_out(value: float, among: Spread) -> bool:
    """Whether a value is larger than chance and a small effect explain."""
    found = score(value, among)
    return (
        found is not None
        and found > limit(among.count)
        and value > among.median * (1 + LEAST_EFFECT)
    )
