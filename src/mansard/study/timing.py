"""Times of undisturbed steps: device events where the framework has them, else the wall clock."""

import contextlib
import dataclasses
import gc
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from mansard.units import unit_factor
from mansard.workloads import Workload

#: At least so many steps are timed, and on a GPU at least for so long, since its energy counter
#: moves in jumps.
LEAST_STEPS = 20
LEAST_SECONDS = 2.0
#: A step that takes long is timed less often, but not below this.
MOST_SECONDS = 60.0
FEWEST_STEPS = 5
MOST_STEPS = 2000

#: Steps before the timing, so that autotuning, caches and clocks settle.
WARMUP_STEPS = 3

_MILLI = unit_factor("msecond")[0]

EVENTS = "device events between steps"
WAITING = "wall clock, waiting for the device after each step"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Times of steps that no tool disturbed.

    Attributes:
        step_s: one entry a step.
        timed_by: how.
        queued_step_s: the whole window over its steps, by the wall clock.
    """

    step_s: tuple[float, ...]
    timed_by: str
    queued_step_s: float


class Meter(Protocol):
    """What is read before and after the window of timed steps."""

    def start(self) -> None:
        """Read at the begin; the device is idle."""

    def stop(self, steps: int) -> None:
        """Read at the end; the device is idle."""


def number_of_steps(step_s: float, least_s: float = LEAST_SECONDS) -> int:
    """How many steps to time.

    Args:
        step_s: time of one.
        least_s: time that they should take together, at least.
    """
    if step_s <= 0:
        return LEAST_STEPS
    enough = max(LEAST_STEPS, math.ceil(least_s / step_s))
    bearable = max(FEWEST_STEPS, int(MOST_SECONDS / step_s))
    return min(enough, bearable, MOST_STEPS)


def time_steps(
    workload: Workload, meter: Meter, *, clock: Callable[[], float] = time.perf_counter
) -> Timed:
    """Time steps of a workload that is warm.

    Args:
        workload: the step.
        meter: read around the window.
        clock: gives seconds.
    """
    workload.synchronize()
    # One alone may be slow by chance.
    step_s = min(_waited(workload, 2, clock))
    on_gpu = workload.configuration.device.startswith("cuda")
    steps = number_of_steps(step_s, LEAST_SECONDS if on_gpu else 0.0)
    mark = _marker(workload)
    with _no_garbage():
        meter.start()
        began = clock()
        samples = (
            _waited(workload, steps, clock) if mark is None else _marked(workload, steps, mark)
        )
        elapsed = clock() - began
        meter.stop(steps)
    return Timed(
        step_s=samples,
        timed_by=WAITING if mark is None else EVENTS,
        queued_step_s=elapsed / steps,
    )


def _waited(workload: Workload, steps: int, clock: Callable[[], float]) -> tuple[float, ...]:
    samples = []
    for _ in range(steps):
        began = clock()
        workload.step()
        workload.synchronize()
        samples.append(clock() - began)
    return tuple(samples)


def _marked(workload: Workload, steps: int, mark: Callable[[], Any]) -> tuple[float, ...]:
    marks = [mark()]
    for _ in range(steps):
        workload.step()
        marks.append(mark())
    workload.synchronize()
    return tuple(before.elapsed_time(after) * _MILLI for before, after in itertools.pairwise(marks))


def _marker(workload: Workload) -> Callable[[], Any] | None:
    """What puts an event of PyTorch's behind the work so far; None for other frameworks."""
    configuration = workload.configuration
    torch = sys.modules.get("torch")
    on_gpu = configuration.device.startswith("cuda")
    if torch is None or not on_gpu or configuration.framework not in ("torch", "keras-torch"):
        return None
    # That of the cell's GPU, which need not be the current one.
    stream = torch.cuda.current_stream(configuration.device)

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    return mark


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep Python's collector from running inside a timed step."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
