"""The measuring loop: how many iterations make a sample, when warm-up is over, which samples count.

Pure but for the function that runs the kernel, so that a scripted clock can drive it in tasks.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from mansard.bench.messages import Settings
from mansard.bench.samples import settled

#: A calibration run must last this share of a sample before it is scaled up.
_CALIBRATED = 0.1
_MOST_ITERATIONS = 1 << 30
_GROWTH = 4

#: Launches between two looks at whether the warm-up is over.
_BATCH = 5

#: SMs that run at different clocks are waited for while they come nearer to each other. On some
#: H200 one part of the chip stays 0.2 to 0.5 % slower: not nearer by a tenth in this many batches.
_BATCHES = 5
_NEARER = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class Steady:
    """When a warm-up is over.

    Attributes:
        window: so many samples in a row must agree.
        within: largest (slowest - fastest) / fastest of these.
        most_spread: of the clocks of the SMs, relative: parts of a chip change their clock one
            after the other. A larger one that stays ends the warm-up, too.
        patience: longest warm-up, as a multiple of the settings'.
    """

    window: int = _BATCH
    within: float = 0.01
    most_spread: float = math.inf
    patience: float = 1.0


#: A chip that starts a kernel beyond its power limit keeps its clock for tens of milliseconds,
#: falls below what the limit allows, and comes back: only a long window is past that.
POWER_HELD = Steady(window=30, within=0.03, patience=1.3)


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """One timed launch.

    Attributes:
        seconds: on the device.
        clock_hz: median over the SMs of their clock while it ran; None if it could not be read.
        clock_spread: (fastest - slowest SM) / clock_hz.
        slowest_hz: clock of the slowest SM. Where each SM does the same work, all wait for it.
    """

    seconds: float
    clock_hz: float | None = None
    clock_spread: float | None = None
    slowest_hz: float | None = None


#: Runs a kernel with so many iterations, so many times in a row.
Run = Callable[[int, int], Sequence[Timing]]


@dataclasses.dataclass(frozen=True, slots=True)
class Measurement:
    """Samples of one kernel.

    Attributes:
        iterations: of each sample.
        timings: the samples.
        warm_s: time the device worked before the first sample.
        settled: whether the warm-up ended because samples agreed.
    """

    iterations: int
    timings: tuple[Timing, ...]
    warm_s: float
    settled: bool


def calibrate(run: Run, sample_s: float) -> int:
    """Iterations that make one launch last about ``sample_s``."""
    iterations = 1
    while True:
        seconds = min(timing.seconds for timing in run(iterations, 2))
        if seconds >= _CALIBRATED * sample_s or iterations >= _MOST_ITERATIONS:
            scale = sample_s / seconds if seconds > 0 else 1.0
            return max(1, min(_MOST_ITERATIONS, round(iterations * scale)))
        iterations *= _GROWTH


def measure(
    run: Run,
    settings: Settings,
    *,
    warm_s: float,
    iterations: int = 0,
    until: Steady | None = None,
) -> Measurement:
    """Warm up until samples agree, then take the samples.

    Args:
        run: runs the kernel.
        settings: how long.
        warm_s: least time of work before the first sample.
        iterations: of a sample; 0 finds them.
        until: when the warm-up is over.
    """
    iterations = iterations or calibrate(run, settings.sample_s)
    until = until or Steady()
    seen: list[float] = []
    spreads: list[float] = []
    worked = 0.0
    while True:
        batch = run(iterations, _BATCH)
        seen += [timing.seconds for timing in batch]
        spreads.append(max(timing.clock_spread or 0.0 for timing in batch))
        worked += sum(timing.seconds for timing in batch)
        steady = settled(seen, window=until.window, within=until.within) and (
            spreads[-1] <= until.most_spread or _stays(spreads)
        )
        if (steady and worked >= warm_s) or worked >= max(
            warm_s, until.patience * settings.patience_s
        ):
            break
    timings = tuple(run(iterations, settings.repeats))
    return Measurement(iterations, timings, worked, steady)


def _stays(spreads: Sequence[float]) -> bool:
    """Whether the last spread is hardly below the least of those before the last few."""
    before = spreads[:-_BATCHES]
    return bool(before) and spreads[-1] >= _NEARER * min(before)


def fastest(candidates: Sequence[Sequence[Timing]], work: Sequence[float]) -> int:
    """Index of the candidate with the highest rate at equal clock.

    The first candidate runs on a cooler, faster chip than the last; rates are therefore compared
    per clock cycle where every clock is known, and per second else.

    Args:
        candidates: timings of each candidate; an empty one cannot win.
        work: work of one launch of each candidate.
    """
    known = all(timing.clock_hz for timings in candidates for timing in timings)

    def rate(index: int) -> float:
        return max(
            (
                work[index] / timing.seconds / ((timing.clock_hz or 1.0) if known else 1.0)
                for timing in candidates[index]
                if timing.seconds > 0
            ),
            default=0.0,
        )

    return max(range(len(candidates)), key=rate)
