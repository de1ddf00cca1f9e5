"""How a step passed on the GPU, in words: traced, and left alone.

A trace lengthens the gaps of a program whose host runs ahead of the GPU. So two times stand side
by side, and what the second one says of the gaps must be said too.
"""

from mansard.model.analysis import Timeline
from mansard.units import format_share, format_si

#: Idle time below this part of a step is within what two measurements of it differ.
_ROUNDING = 0.005


def traced_words(passed: Timeline) -> str | None:
    """Return how long the steps took and how much of it the GPU was busy; None without steps.

    From the first start to the last end; of launches that overlap, busy time is counted once.
    """
    if not passed.elapsed_s > 0:
        return None
    traced = "" if passed.host_s is None else "traced, "
    what, together = "a step takes", ""
    if passed.steps > 1:
        what, together = f"{passed.steps} steps take", " (all ranks and GPUs added up)"
    return (
        f"{traced}{what} {format_si(passed.elapsed_s, 's')}{together}, of which the GPU is busy"
        f" {format_si(passed.busy_s, 's')} ({format_share(passed.busy_s / passed.elapsed_s)})"
    )


def untraced_words(passed: Timeline) -> str | None:
    """Return how long the same takes when nothing is recorded; None where nobody knows."""
    if passed.host_s is None:
        return None
    said = f"left alone, {format_si(passed.host_s, 's')}"
    if passed.host_s - passed.busy_s <= _ROUNDING * passed.host_s:
        return f"{said}: the GPU is never idle, the gaps are the trace's"
    return f"{said}, in which the GPU idles {format_si(passed.idle_s, 's')}"
