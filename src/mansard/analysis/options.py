"""Settings of an analysis that change its numbers."""

import dataclasses
import math
from typing import Literal

from mansard.errors import UsageError
from mansard.units import PREFIXES

# Divided by, not multiplied with 1e-6: that gives the nearest number to 5 us.
_MILLION = dict(PREFIXES)["M"]
_KIB = 1024

#: Below this a launch is over before it has begun: launching the next one takes about as long
#: (arXiv 2009.04598 gives 4.2 us for a V100).
SHORT_LAUNCH_S = 5 / _MILLION


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """How launches are counted and timed.

    Attributes:
        time_rule: ``launch`` adds up the durations. ``paper`` takes the time of a kernel as the
            authors of arXiv 2009.05257 do, total cycles over mean clock, within each kernel,
            phase and rank; the two differ by a few tenths of a percent.
        names: ``full`` keeps kernels of different template arguments apart, ``short`` takes them
            together.
        zero_flop_by: what a zero-FLOP launch is. ``name``: a launch of a kernel that did no
            floating-point work in its whole phase, as the authors count zero-AI kernels.
            ``launch``: a launch that itself did none. The second finds at least as many: a
            kernel that casts may count FLOP for some shapes or types only.
        near_zero_intensity: FLOP per byte of device memory below which work is as good as none.
            One operation for every two bytes is one pass over half-precision data; the casts and
            layout changes of the paper lie at 0.17 and 0.47, and every GPU since Volta could do
            over thirty times more in the time that the bytes take.
        short_launch_s: below this a launch is short.
        tolerance_above_roof: how much faster than its floor a launch may be before it counts as
            above the roof (noise of counters and clocks).
        tiny_launch_s: kernels with a shorter mean launch are too small to judge: start and
            end of a launch take that long.
        tiny_launch_bytes: so are those that move less through device memory: code, parameters
            and write-backs of earlier data are then not small against their own traffic.
    """

    time_rule: Literal["launch", "paper"] = "launch"
    names: Literal["full", "short"] = "full"
    zero_flop_by: Literal["name", "launch"] = "name"
    near_zero_intensity: float = 0.5
    short_launch_s: float = SHORT_LAUNCH_S
    tolerance_above_roof: float = 0.02
    tiny_launch_s: float = 2 / _MILLION
    tiny_launch_bytes: float = 64 * _KIB

    def __post_init__(self) -> None:
        """Refuse what no analysis can use."""
        for name, allowed in (
            ("time_rule", ("launch", "paper")),
            ("names", ("full", "short")),
            ("zero_flop_by", ("name", "launch")),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} is {getattr(self, name)!r}; it can be {' or '.join(allowed)}"
                )
        for field in dataclasses.fields(self)[3:]:
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{field.name} is {value}; it must be a number, 0 or more")
