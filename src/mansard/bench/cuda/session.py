"""What the recipes of a measuring child share: the GPU, its sensors, and what was found before."""

import dataclasses
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mansard.bench.cuda.device import Gpu, Memory
from mansard.bench.cuda.sensors import Conditions, Sensors
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Settings, Task
from mansard.bench.steady import Run, Steady, Timing, calibrate, fastest, measure

_SEED = 20090525
#: Length of a sample of a curve, and of a trial of a geometry.
_POINT_S = 0.001
_TRIALS = 6


@dataclasses.dataclass(slots=True)
class Arrays:
    """Three equal arrays in device memory.

    Attributes:
        memory: a, b, c.
        size: bytes of each.
        arm: data in them.
    """

    memory: tuple[Memory, Memory, Memory]
    size: int
    arm: str | None = None


@dataclasses.dataclass(slots=True)
class Session:
    """One open GPU and the state of its measurement.

    Attributes:
        gpu: the device.
        sensors: its power, temperature, clocks.
        settings: how long to measure.
        chosen: launch geometry found fastest, by path and instruction (or another key).
        checked: result of the check of a compute kernel, by path and instruction.
        problems: result of the check of other kernels, by what they are.
        numbers: attributes of the device.
        conditions: what the sensors showed during the last samples.
        arrays: the large arrays of the device-memory tasks, while they are in use.
    """

    gpu: Gpu
    sensors: Sensors
    settings: Settings = dataclasses.field(default_factory=Settings)
    chosen: dict[Any, Variant] = dataclasses.field(default_factory=dict)
    checked: dict[Any, Outcome] = dataclasses.field(default_factory=dict)
    problems: dict[Any, str | None] = dataclasses.field(default_factory=dict)
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)
    conditions: Conditions = dataclasses.field(default_factory=Conditions)
    arrays: Arrays | None = None

    def rng(self) -> np.random.Generator:
        """The same random numbers every time, so that samples can be repeated."""
        return np.random.default_rng(_SEED)

    def runner(self, start: Callable[[int], None]) -> Run:
        """Make ``steady.Run`` of a function that queues one launch of so many iterations.

        The sensors are read while the samples run (not during calibration and warm-up).
        """

        def meanwhile(event: Any) -> None:
            self.conditions = self.sensors.watch(lambda: bool(event.is_done))

        def run(iterations: int, repeats: int) -> list[Timing]:
            if repeats != self.settings.repeats:
                return self.gpu.timed(lambda: start(iterations), repeats)
            start(iterations)  # not timed: the first launch after a pause is slower
            return self.gpu.timed(lambda: start(iterations), repeats, meanwhile=meanwhile)

        return run

    def sample(
        self,
        start: Callable[[int], None],
        work: float,
        *,
        warm_s: float,
        iterations: int = 0,
        until: Steady | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> Outcome:
        """Measure the rate of something.

        Args:
            start: queues one launch of so many iterations.
            work: FLOP or bytes of one iteration of the whole launch.
            warm_s: least warm-up.
            iterations: of a launch; 0 finds how many make a sample.
            until: when the warm-up is over.
            evidence: what else is known of the number.
        """
        return self.measured(
            self.runner(start),
            work,
            warm_s=warm_s,
            iterations=iterations,
            until=until,
            evidence=evidence,
        )

    def measured(
        self,
        run: Run,
        work: float,
        *,
        warm_s: float,
        iterations: int = 0,
        until: Steady | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> Outcome:
        """As ``sample``, for something that already is a ``steady.Run``."""
        found = measure(
            run,
            self.settings,
            warm_s=warm_s,
            iterations=iterations,
            until=until,
        )
        total = work * found.iterations
        return Outcome(
            values=tuple(total / timing.seconds for timing in found.timings),
            clocks_hz=tuple(timing.clock_hz for timing in found.timings),
            evidence={
                **(evidence or {}),
                **self.conditions.evidence(),
                "iterations": found.iterations,
                "warm_s": round(found.warm_s, 4),
                "settled": found.settled,
                "sm_clock_spread": _median(t.clock_spread for t in found.timings),
                "sm_clock_samples_hz": [_whole(t.clock_hz) for t in found.timings],
                "sm_clock_slowest_hz": [_whole(t.slowest_hz) for t in found.timings],
                "work_per_sample": total,
            },
        )

    def rate(self, start: Callable[[int], None], work: float) -> tuple[float, float | None]:
        """A quick rate, for a point of a curve: median of a few short samples, and its clock."""
        run = self.runner(start)
        iterations = calibrate(run, _POINT_S)
        timings = run(iterations, self.settings.curve_repeats)
        middle = sorted(timings, key=lambda timing: timing.seconds)[len(timings) // 2]
        return work * iterations / middle.seconds, middle.clock_hz

    def once(self, task: Task, problem: Callable[[], str | None]) -> str | None:
        """The answer of a check, made for the first arm of a kernel and kept for the others."""
        key = (task.recipe, task.level, task.access, task.instruction)
        if key not in self.problems:
            self.problems[key] = problem()
        return self.problems[key]

    def choose(
        self,
        key: Any,
        candidates: list[Variant],
        starter: Callable[[Variant], tuple[Callable[[int], None], float]],
        *,
        iterations: int = 0,
    ) -> Variant:
        """The fastest of several variants at equal clock, found once for a key.

        Args:
            key: for what; the same key gives the same answer without a run.
            candidates: at least one.
            starter: gives, for a variant, what queues a launch, and the work of an iteration.
            iterations: of a trial; 0 finds them.
        """
        if key not in self.chosen:
            trials, work = [], []
            for variant in candidates if len(candidates) > 1 else []:
                start, amount = starter(variant)
                run = self.runner(start)
                count = iterations or calibrate(run, _POINT_S)
                trials.append(run(count, _TRIALS))
                work.append(amount * count)
            self.chosen[key] = candidates[fastest(trials, work)] if trials else candidates[0]
        return self.chosen[key]


def _whole(hertz: float | None) -> int | None:
    return None if hertz is None else round(hertz)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(f"{statistics.median(known):.4g}") if known else None
