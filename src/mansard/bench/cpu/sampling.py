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
#: Amount of the first run.
_FIRST_AMOUNT = 16
#: Rates of the warm-up that tell how much makes one sample.
_LAST_RATES = 5
#: Warm-up ends at this many times its least length, whether samples agree or not.
_WARM_UP_MOST = 3
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
        warm_up_s: shortest warm-up; it lasts at most three times as long, until samples agree.
        rounds: how often samples are taken in all, where they are not steady.
        sweep_factor: ratio of neighbouring sizes of the sweep.
    """

    sample_s: float
    samples: int
    samples_alone: int
    samples_sweep: int
    warm_up_s: float
    rounds: int
    sweep_factor: float


# Many short samples: what takes a core away (another program, the host of a virtual machine) comes
# some hundred times a second at most, so that most samples of a millisecond are free of it, and the
# median is. A millisecond is still ten thousand times the resolution of the timer.
FULL = Effort(
    sample_s=0.001,
    samples=200,
    samples_alone=50,
    samples_sweep=30,
    warm_up_s=0.2,
    rounds=3,
    sweep_factor=1.5,
)
QUICK = Effort(
    sample_s=0.0005,
    samples=40,
    samples_alone=20,
    samples_sweep=15,
    warm_up_s=0.02,
    rounds=2,
    sweep_factor=4.0,
)
#: Each size of the sweep: many sizes matter more than many samples.
SWEEP = dataclasses.replace(QUICK, warm_up_s=0.005, rounds=1)


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
    rounds: list[Series] = []
    while len(rounds) < effort.rounds:
        rounds.append(_round(workload, effort=effort, samples=samples))
        if rounds[-1].rates.spread <= STEADY_SPREAD and not rounds[-1].disturbed_kept:
            break
    best = max(rounds, key=lambda series: series.rates.median)
    return dataclasses.replace(best, rounds=len(rounds))


def warm_up(workload: Workload, effort: Effort) -> tuple[int, bool]:
    """Run a workload until its rate settles, and find how much of it makes one sample.

    A run that was interrupted looks long, and the amount right that was too small: so every run,
    not only the first ones, can raise it.

    Returns:
        The amount that takes about ``effort.sample_s``, and whether the rate has settled.
    """
    amount = _FIRST_AMOUNT
    rates: list[float] = []
    warm_s = 0.0
    per_amount = 0.0
    while (
        not rates
        or warm_s < effort.warm_up_s
        or (warm_s < _WARM_UP_MOST * effort.warm_up_s and not settled(rates))
    ):
        work, timing = workload.run(amount)
        warm_s += timing.duration_s
        if timing.duration_s < effort.sample_s / 2:
            # At most 16 times more: the first runs are slow and say little.
            amount *= max(2, min(16, int(effort.sample_s / timing.duration_s / 2)))
            continue
        per_amount = work / amount
        rates.append(work / timing.duration_s)
    rate = statistics.median(rates[-_LAST_RATES:])
    return max(1, round(effort.sample_s * rate / per_amount)), settled(rates)


def _round(workload: Workload, *, effort: Effort, samples: int) -> Series:
    amount, has_settled = warm_up(workload, effort)
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
        settled=has_settled,
        disturbed=len(disturbed) - max(0, missing),
        disturbed_kept=max(0, missing),
    )
