"""Statistics of repeated measurements: raw samples stay, the rest is derived."""

import dataclasses
import statistics
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """Samples of one quantity, in its SI unit, higher is better.

    Attributes:
        samples: every value, in the order measured.
    """

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """The highest sample."""
        return max(self.samples)

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Robust relative spread: 1.4826 x median absolute deviation / median.

        1.4826 makes it the standard deviation for normal noise.
        """
        middle = self.median
        deviation = statistics.median(abs(sample - middle) for sample in self.samples)
        return 1.4826 * deviation / middle if middle else 0.0


def settled(samples: Sequence[float], *, window: int = 5, within: float = 0.03) -> bool:
    """Whether the last ``window`` samples agree, so that warm-up is over.

    Args:
        samples: values so far, newest last.
        window: how many must agree.
        within: largest allowed (max - min) / min.
    """
    if len(samples) < window:
        return False
    last = samples[-window:]
    lowest = min(last)
    return lowest > 0 and (max(last) - lowest) / lowest <= within
