"""Whether two means differ by more than their repeats do.

The interval is that of Welch (Biometrika 34, 1947): variances of both sides add, and the degrees
of freedom follow Satterthwaite. Two-sided, 99 %: a comparison has many rows, and at 95 % one row
in twenty would be called a change by chance.
"""

import dataclasses
import math
from collections.abc import Iterable

#: Fewer repeats than this say nothing of the noise.
LEAST_REPEATS = 3

# Student's t, two-sided 99 %, for 1 to 30 degrees of freedom and some beyond (standard tables,
# e.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
_T = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
)  # fmt: skip
_T_BEYOND = ((40, 2.704), (60, 2.660), (120, 2.617))


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What one set of repeats adds to the variance of a mean.

    Attributes:
        variance: of the mean, that is the variance of the values over their number.
        freedom: number of values less one.
    """

    variance: float
    freedom: int


def student(freedom: float) -> float:
    """Student's t for a two-sided 99 % interval; never less than the exact value."""
    if freedom < 1:
        return math.inf
    whole = int(freedom * (1 + 2**-30))  # 4 stays 4, however it was rounded
    if whole <= len(_T):
        return _T[whole - 1]
    return next((t for least, t in reversed(_T_BEYOND) if whole >= least), _T[-1])


def half_interval(parts: Iterable[Part]) -> float:
    """Half of the 99 % interval of a sum of independent means; 0 where nothing varies."""
    listed = list(parts)
    variance = sum(part.variance for part in listed)
    if variance <= 0:
        return 0.0
    freedom = variance**2 / sum(part.variance**2 / part.freedom for part in listed)
    return student(freedom) * math.sqrt(variance)
