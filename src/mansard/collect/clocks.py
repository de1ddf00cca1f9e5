"""SM clocks that no SM can have had. Pure.

A clock is cycles over time, and the two may come from passes in which a launch took different
times: one that waits for other ranks by thousands of times, one of a microsecond by a tenth. On an
H200 of at most 1.98 GHz a collective read 63 GHz. Its other launches scatter by a tenth around the
true clock, which means bear.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from mansard.collect.plan import Counted
from mansard.collect.recording import StepRecording
from mansard.counters.plan import counters_for
from mansard.counters.table import CounterTable
from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice
from mansard.units import format_si

#: Times the clock that the driver names, which GPUs of desktops do exceed.
_MOST = 1.25
_RATE = ".per_second"


def without_impossible(
    steps: Sequence[StepRecording], table: CounterTable, devices: Mapping[int, DeviceFacts]
) -> tuple[list[StepRecording], list[Notice]]:
    """Make clocks far above the highest of the GPU unknown.

    Args:
        steps: the recorded steps.
        table: says which counter is the clock.
        devices: the GPUs, by index.
    """
    clocks = {each for each in counters_for(table, ("sm_clock_hz",)) if each.endswith(_RATE)}
    highest = {at: facts.sm_clock_max_hz for at, facts in devices.items() if facts.sm_clock_max_hz}
    cleared: list[float] = []

    def possible(counters: Sequence[str], row: tuple[float, ...], device: int) -> tuple[float, ...]:
        most = _MOST * highest.get(device, math.inf)
        wrong = {
            place
            for place, (counter, value) in enumerate(zip(counters, row, strict=True))
            if counter in clocks and value > most
        }
        cleared.extend(row[place] for place in wrong)
        return tuple(math.nan if at in wrong else v for at, v in enumerate(row)) if wrong else row

    found = [_step(step, possible) for step in steps]
    if not cleared:
        return list(steps), []
    return found, [
        Notice(
            "clock-above-highest",
            f"the SM clock of {_launches(len(cleared))} is unknown: cycles over time gave up to "
            f"{format_si(max(cleared), 'Hz')}, and the GPU's highest is "
            f"{format_si(max(highest.values()), 'Hz')}. Cycles and time come from different passes",
        )
    ]


def _launches(number: int) -> str:
    return "1 launch" if number == 1 else f"{number:,} launches"


def _step(
    step: StepRecording,
    possible: Callable[[Sequence[str], tuple[float, ...], int], tuple[float, ...]],
) -> StepRecording:
    kernels, segments = step.kernels, step.segments
    if kernels is not None:
        ran = [launch.device for launch in step.trace.launches if launch.kind == "kernel"]
        rows = zip(kernels.rows, ran, strict=True)
        kernels = Counted(
            kernels.counters, tuple(possible(kernels.counters, row, device) for row, device in rows)
        )
    if segments:
        segments = {
            device: Counted(
                counted.counters,
                tuple(possible(counted.counters, row, device) for row in counted.rows),
            )
            for device, counted in segments.items()
        }
    return dataclasses.replace(step, kernels=kernels, segments=segments)
