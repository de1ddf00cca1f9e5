"""How a workload is repeated: length of a sample, warm-up, samples, and what disturbed them."""

import dataclasses
import statistics
from typing import Any, Protocol

from mansard.bench.cpu.team import Timing
from mansard.bench.samples import Summary, settled

#: A sample in which a thread had its core for less than this was disturbed by other programs.
UNDISTURBED_SHARE = 0.98
#: Samples that spread more than this are not steady: something outside changed meanwhile.
STEADY_SPREAD = 0.1
#: Disturbed samples are taken again, up to this many times the wanted number in all.
_ATTEMPTS = 4


class Workload(Protocol):
    """Something that can be run in chosen amounts."""

    def run(self, amount: int) -> tuple[float, Timing]:
        """Do about ``amount`` iterations; returns the work really done, and the times."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How much measuring is done.

    Attributes:
        sample_s: wished length of one sample.
        samples: on all threads.
        samples_alone: on one thread.
        samples_sweep: at each size of the sweep.
        warm_up: most samples spent until they agree.
        rounds: how often samples are taken in all, where they are not steady.
        sweep_factor: ratio of neighbouring sizes of the sweep.
    """

    sample_s: float
    samples: int
    samples_alone: int
    samples_sweep: int
    warm_up: int
    rounds: int
    sweep_factor: float


# Samples are about as long as a time slice of the system: shorter than most disturbances are apart,
# and a hundred thousand times the resolution of the timer.
FULL = Effort(
    sample_s=0.005,
    samples=60,
    samples_alone=20,
    samples_sweep=9,
    warm_up=30,
    rounds=3,
    sweep_factor=1.5,
)
QUICK = Effort(
    sample_s=0.002,
    samples=25,
    samples_alone=9,
    samples_sweep=5,
    warm_up=12,
    rounds=2,
    sweep_factor=4.0,
)
#: Each size of the sweep: many sizes matter more than many samples.
SWEEP = dataclasses.replace(QUICK, warm_up=5, rounds=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """Samples of one workload.

    Attributes:
        rates: work per second, in the order measured.
        clock_hz: median core clock around the samples.
        core_share: median over the samples of the least served thread's share of its core.
        work_per_call: work of one sample.
        rounds: how often the samples were taken.
        settled: whether the warm-up ended because samples agreed.
        disturbed: samples thrown away because other programs took a core.
        disturbed_kept: disturbed samples among the rates, kept for want of better ones.
    """

    rates: Summary
    clock_hz: float
    core_share: float
    work_per_call: float
    rounds: int
    settled: bool
    disturbed: int
    disturbed_kept: int

    def evidence(self) -> dict[str, Any]:
        """What belongs beside the median."""
        return {
            "best": self.rates.best,
            "spread": self.rates.spread,
            "samples": len(self.rates.samples),
            "rounds": self.rounds,
            "settled": self.settled,
            "disturbed_discarded": self.disturbed,
            "disturbed_kept": self.disturbed_kept,
            "core_share": self.core_share,
        }


def measure(workload: Workload, *, effort: Effort, samples: int) -> Series:
    """Warm a workload up until its samples agree, then take samples.

    Samples that are not steady are taken once more, after a new warm-up, as often as the effort
    allows. The round with the highest median counts: what comes from outside can only slow down.

    A sample during which the system gave a core to another program measures that program too: it
    is taken again, whatever its value was. After four times the wanted number disturbed samples
    are kept, and counted.

    Args:
        workload: what to run.
        effort: lengths and limits.
        samples: how many to keep.
    """
    amount = calibrate(workload, effort.sample_s)
    rounds: list[Series] = []
    while len(rounds) < effort.rounds:
        rounds.append(_round(workload, amount, effort=effort, samples=samples))
        if rounds[-1].rates.spread <= STEADY_SPREAD and not rounds[-1].disturbed_kept:
            break
    best = max(rounds, key=lambda series: series.rates.median)
    return dataclasses.replace(best, rounds=len(rounds))


def calibrate(workload: Workload, sample_s: float) -> int:
    """The amount that takes about ``sample_s``."""
    amount = 16
    while True:
        _, timing = workload.run(amount)
        if timing.duration_s >= sample_s / 4:
            return max(1, round(amount * sample_s / timing.duration_s))
        # At most 16 times more: the first runs are slow and say little.
        amount *= max(2, min(16, int(sample_s / timing.duration_s / 2)))


def _round(workload: Workload, amount: int, *, effort: Effort, samples: int) -> Series:
    warming: list[float] = []
    while len(warming) < effort.warm_up and not settled(warming):
        work, timing = workload.run(amount)
        warming.append(work / timing.duration_s)
    clean: list[tuple[float, Timing]] = []
    disturbed: list[tuple[float, Timing]] = []
    while len(clean) < samples and len(clean) + len(disturbed) < _ATTEMPTS * samples:
        sample = workload.run(amount)
        (clean if sample[1].core_share >= UNDISTURBED_SHARE else disturbed).append(sample)
    missing = samples - len(clean)
    kept = clean + disturbed[:missing] if missing > 0 else clean
    return Series(
        rates=Summary(tuple(work / timing.duration_s for work, timing in kept)),
        clock_hz=statistics.median(timing.clock_hz for _, timing in kept),
        core_share=statistics.median(timing.core_share for _, timing in kept),
        work_per_call=kept[0][0],
        rounds=1,
        settled=settled(warming),
        disturbed=len(disturbed) - max(0, missing),
        disturbed_kept=max(0, missing),
    )
