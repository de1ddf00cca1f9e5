"""Compute ceilings: tune the launch geometry, check the result on the CPU, then measure."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mansard.bench import arrange
from mansard.bench.arrange import Inputs
from mansard.bench.cuda.device import Gpu, Memory
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task
from mansard.bench.steady import Steady

_LOW_TOGGLE_WARM_S = 0.06
_ONE_CLOCK = Steady(most_spread=0.001)


def measure_compute(session: Session, task: Task) -> Outcome:
    """One compute ceiling on one kind of data."""
    gpu = session.gpu
    usable = [variant for variant in task.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    variant = _choose(session, task, usable)
    checked = _check(session, task, variant)
    if checked.refusal:
        return checked
    arm = task.arm or "random"
    blocks = variant.blocks * gpu.sms
    run = _Launcher(gpu, variant, arrange.inputs(task, variant, arm, session.rng()))
    try:
        outcome = session.sample(
            run.start,
            variant.work * blocks,
            warm_s=session.settings.warm_s if arm == "random" else _LOW_TOGGLE_WARM_S,
            until=_ONE_CLOCK,
            evidence={
                **checked.evidence,
                "geometry": f"{variant.blocks} x {variant.threads} threads per SM",
                "variant": task.variants.index(variant),
                "bytes_per_sample": variant.operand_bytes * blocks,
            },
        )
    finally:
        run.close()
    return outcome


class _Launcher:
    """One variant with one set of inputs in device memory."""

    def __init__(self, gpu: Gpu, variant: Variant, inputs: Inputs) -> None:
        self._gpu = gpu
        self._variant = variant
        self._arrays = [gpu.upload(array) for array in inputs.arrays]
        dtype, count = arrange.output_words(variant, variant.blocks * gpu.sms)
        self.dtype = dtype
        self.count = count
        self.out: Memory = gpu.allocate(count * np.dtype(dtype).itemsize)
        self._mask = () if inputs.mask is None else (np.uint32(inputs.mask),)

    def start(self, iterations: int) -> None:
        """Queue one launch."""
        arguments: tuple[Any, ...] = (*self._arrays, self.out, *self._mask)
        self._gpu.start(self._variant, *arguments, np.int32(iterations))

    def close(self) -> None:
        """Free its memory."""
        self._gpu.free(*self._arrays, self.out)


def _choose(session: Session, task: Task, usable: list[Variant]) -> Variant:
    """The fastest geometry, found once for all arms of a kernel."""
    running: list[_Launcher] = []

    def starter(variant: Variant) -> tuple[Callable[[int], None], float]:
        run = _Launcher(
            session.gpu, variant, arrange.inputs(task, variant, "low-toggle", session.rng())
        )
        running.append(run)
        return run.start, variant.work * variant.blocks

    try:
        return session.choose((task.path, task.instruction), usable, starter)
    finally:
        for run in running:
            run.close()


def _check(session: Session, task: Task, variant: Variant) -> Outcome:
    """Compare a run of one iteration with the CPU; once for all arms of a kernel."""
    key = (task.path, task.instruction)
    if key in session.checked:
        return session.checked[key]
    gpu = session.gpu
    blocks = variant.blocks * gpu.sms
    case = arrange.check_case(task, variant, blocks, session.rng())
    run = _Launcher(gpu, variant, case.inputs)
    try:
        gpu.zero(run.out)
        run.start(1)
        stored = gpu.download(run.out, run.dtype, run.count)
    finally:
        run.close()
    wrong = int(np.count_nonzero(stored[case.threads] != case.expected))
    if wrong:
        result = Outcome(
            refusal=f"wrong result: {wrong} of {len(case.expected)} words differ from the CPU's "
            f"({case.what})"
        )
    else:
        result = Outcome(evidence={"result": f"equals the CPU's: {case.what}"})
    session.checked[key] = result
    return result
