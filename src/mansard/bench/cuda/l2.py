"""Bandwidth of L2: every warp passes over its own part until a time is over."""

import dataclasses
from collections.abc import Callable

import numpy as np

from mansard.bench.cuda.device import Memory
from mansard.bench.cuda.memory import (
    NULL,
    WARM_S,
    difference,
    fill,
    filled,
    part_bytes,
    total_of,
    word_sum,
)
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task
from mansard.bench.steady import Run, Timing
from mansard.units import unit_factor

#: An iteration of the measuring loop is a microsecond here.
_MICRO = unit_factor("usecond")[0]
_TRIAL_US = 1000
_TRIALS = 3
#: Bytes that a microsecond is taken to stand for; only scales, and cancels.
_NOMINAL = float(1 << 20)


def measure_l2(session: Session, task: Task) -> Outcome:
    """Read, write or copy of a set that L2 holds."""
    gpu = session.gpu
    usable = [variant for variant in task.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    size = max(part_bytes(variant) * variant.blocks for variant in usable) * gpu.sms
    data, target = gpu.allocate(size), None
    running: list[_Bounded] = []
    try:
        fill(gpu, data, task.arm)
        target = gpu.allocate(size) if task.access != "read" else None
        running = [_Bounded(session, variant, data, target) for variant in usable]
        key = (task.level, task.access)
        if key not in session.chosen:
            rates = [run.rate() for run in running]
            session.chosen[key] = usable[rates.index(max(rates))]
        bounded = running[usable.index(session.chosen[key])]
        problem = session.once(task, lambda: bounded.problem(str(task.access)))
        if problem:
            return Outcome(refusal=problem)
        variant = bounded.variant
        part = part_bytes(variant) * variant.blocks
        evidence = {
            "geometry": f"{variant.blocks} x {variant.threads} threads per SM",
            "variant": task.variants.index(variant),
            "working_set_bytes": part * gpu.sms * (2 if task.access == "copy" else 1),
            "bytes_per_sm": part,
            "result": "equals the CPU's: sum or content of two blocks",
        }
        return session.measured(
            bounded,
            _NOMINAL,
            warm_s=WARM_S,
            iterations=round(session.settings.sample_s / _MICRO),
            evidence=evidence,
        )
    finally:
        gpu.free(data, target, *(run.counts for run in running))


class _Bounded:
    """One variant as ``steady.Run``: an iteration is a microsecond and _NOMINAL bytes."""

    def __init__(
        self, session: Session, variant: Variant, data: Memory, target: Memory | None
    ) -> None:
        self.variant = variant
        self._gpu = session.gpu
        self._data = data
        self._target = target
        self._warps = variant.blocks * self._gpu.sms * variant.threads // 32
        # The launch before the first sample is not timed, but counts too.
        self._slots = session.settings.repeats + 1
        self._slot = 0
        self.counts = self._gpu.allocate(self._slots * self._warps * 4)
        self._run: Run = session.runner(self._start)

    def __call__(self, iterations: int, repeats: int) -> list[Timing]:
        timings = self._run(iterations, repeats)
        counts = self._gpu.download(self.counts, np.uint32, self._slots * self._warps)
        passes = counts.reshape(self._slots, -1).sum(axis=1, dtype=np.uint64)
        done = [int(passes[(self._slot - repeats + i) % self._slots]) for i in range(repeats)]
        per_pass = self.variant.work / (self.variant.threads // 32)
        return [
            dataclasses.replace(
                timing, seconds=timing.seconds * _NOMINAL * iterations / (count * per_pass)
            )
            for timing, count in zip(timings, done, strict=True)
        ]

    def rate(self) -> float:
        """Bytes per second in a short trial."""
        timings = self(_TRIAL_US, _TRIALS)
        return max(_NOMINAL * _TRIAL_US / timing.seconds for timing in timings)

    def problem(self, access: str) -> str | None:
        """Compare one pass of two blocks with the CPU; None if they agree."""
        words = 2 * part_bytes(self.variant) // 8
        if self._target is not None:
            self._gpu.zero(self._target)
        found = total_of(self._gpu, self._one_pass())
        if access == "read":
            return difference(found, word_sum(filled(words)))
        if self._target is None:
            return "there is no target"
        stored = self._gpu.download(self._target, np.uint64, words)
        if access == "copy":
            expected = filled(words)
        else:
            one = filled(4 * self.variant.threads).reshape(2, 1, -1)
            expected = np.broadcast_to(one, (2, self.variant.rows, one.shape[2])).reshape(-1)
        wrong = int(np.count_nonzero(stored != expected))
        return f"wrong result: {wrong} of {words} words differ" if wrong else None

    def _one_pass(self) -> Callable[[Memory], None]:
        return lambda total: self._launch(0, total, blocks=2)

    def _start(self, microseconds: int) -> None:
        self._launch(microseconds, None)
        self._slot = (self._slot + 1) % self._slots

    def _launch(self, microseconds: int, total: Memory | None, blocks: int | None = None) -> None:
        self._gpu.start(
            self.variant,
            self._data,
            self._target or NULL,
            total or NULL,
            self.counts.address + self._slot * self._warps * 4,
            np.int32(self.variant.rows),
            np.uint64(round(microseconds * 1000)),
            blocks=blocks,
        )
