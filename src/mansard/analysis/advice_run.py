"""Rules of the advice that speak of a whole run: its clock, its gaps, its communication.

Their times overlap with those of the rules on kernels, or lie outside the kernels altogether.
"""

from collections.abc import Iterator

from mansard.analysis.advice_case import Case, count, keys_of, listed, seconds, time_of
from mansard.analysis.file_statistics import LARGEST
from mansard.model.advice import Advice
from mansard.model.analysis import Kernel
from mansard.units import format_share, format_si

#: Clocks wander by a few percent; below that the highest is out of reach for a reason.
_CLOCK_LOW = 0.05
#: A GPU that idles less than this is busy enough.
_IDLE = 0.05
#: Gaps this many times longer than a launch costs are not the cost of launching ...
_LONG_GAPS = 10
#: ... but up to this many what an eager framework needs from one operator to the next.
_WAITING_GAPS = 70


def low_clock(case: Case) -> Iterator[Advice]:
    """Compute-bound work below the highest clock of the part."""
    highest = _highest_clock_hz(case)
    bound = [
        kernel
        for kernel in case.analysis.kernels
        if kernel.bound in ("vector", "tensor") and kernel.sm_clock_hz and kernel.duration_s
    ]
    if highest is None or not bound:
        return
    time_s = time_of(bound)
    clock = sum((kernel.sm_clock_hz or 0) * (kernel.duration_s or 0) for kernel in bound) / time_s
    lost = 1 - clock / highest
    if lost < _CLOCK_LOW:
        return
    won: float | None = None
    controls = {origin.clock_control for origin in case.analysis.provenance}
    if controls == {"none"}:
        won = time_s * lost
        why = (
            "nobody locked it, so power or temperature holds it down; fewer bytes moved and lower "
            "precision cost less power, a higher power limit gives more. The time is part of "
            "what other advice counts"
        )
    elif "base" in controls:
        why = "the profiler locked it to base; record with --clock-control none"
    else:
        why = (
            "profilers lock it unless told not to (--clock-control none), and power limits hold "
            "it down; this run does not say which it was"
        )
    yield Advice(
        rule="low-clock",
        sentence=f"Compute-bound kernels ({listed(bound)}; {seconds(time_s)}) ran at "
        f"{format_si(clock, 'Hz')}, {format_share(lost)} below the highest clock of "
        f"{format_si(highest, 'Hz')}: {why}.",
        recoverable_s=won,
        kernels=keys_of(bound),
        evidence={
            "sm_clock_hz": clock,
            "sm_clock_max_hz": highest,
            "duration_s": time_s,
            "clock_control": ", ".join(sorted(control or "not recorded" for control in controls)),
        },
    )


def _highest_clock_hz(case: Case) -> float | None:
    devices = [device for origin in case.analysis.provenance for device in origin.devices]
    if not devices and case.machine is not None:
        devices = [case.machine.device]
    clocks = {device.sm_clock_max_hz for device in devices}
    highest = clocks.pop() if len(clocks) == 1 else None
    return highest if highest and 0 < highest < LARGEST else None


def idle_gpu(case: Case) -> Iterator[Advice]:
    """Gaps between launches: the host does not keep up, or waits."""
    timeline = case.analysis.timeline
    if timeline is None or not timeline.gaps:
        return
    idle_s = timeline.idle_s
    elapsed_s = timeline.busy_s + idle_s
    share = idle_s / elapsed_s if elapsed_s > 0 else 0.0
    if share < _IDLE:
        return
    mean_s = idle_s / timeline.gaps
    launch_s = case.launch_cost_s or case.option("short_launch_s")
    longest = (
        f"the longest, {seconds(timeline.longest_gap_s)}, ends with "
        f"{_short_name(case, timeline.longest_gap_before)}"
    )
    if mean_s < _LONG_GAPS * launch_s:
        remedy = (
            "They are as short as launching takes: the host cannot launch faster. CUDA graphs, "
            "torch.compile and larger kernels need fewer launches"
        )
    elif mean_s < _WAITING_GAPS * launch_s:
        remedy = (
            "They are longer than launching takes, and as long as a framework in Python may need "
            "from one operator to the next: CUDA graphs and torch.compile need fewer; or the host "
            "waits (.item(), .cpu(), a data loader)"
        )
    else:
        remedy = (
            "They are much longer than launching takes: look there for a data loader, a "
            "synchronisation (.item(), .cpu(), printing a loss) or other work of the host"
        )
    traced_s = timeline.elapsed_s - timeline.busy_s
    lengthened = (
        f" (without a trace, which lengthens them to {seconds(traced_s)})"
        if idle_s < (1 - _IDLE) * traced_s
        else ""
    )
    yield Advice(
        rule="idle-gpu",
        sentence=f"The GPU has nothing to do for {format_share(share)} of "
        f"{count(timeline.steps, 'step')}: {seconds(idle_s)} in {count(timeline.gaps, 'gap')} of "
        f"{seconds(mean_s)} on average{lengthened}; {longest}. {remedy}.",
        recoverable_s=idle_s,
        evidence={
            "elapsed_s": elapsed_s,
            "idle_s": idle_s,
            "traced_idle_s": traced_s,
            "gaps": timeline.gaps,
            "longest_gap_s": timeline.longest_gap_s,
            "longest_gap_before": timeline.longest_gap_before or "",
        },
    )


def exposed_collectives(case: Case) -> Iterator[Advice]:
    """Communication that no computation hides."""
    timeline = case.analysis.timeline
    if timeline is None or timeline.collective_only_s <= 0:
        return
    kernels = [kernel for kernel in case.analysis.kernels if kernel.family == "collective"]
    exposed_s, time_s = timeline.collective_only_s, time_of(kernels)
    yield Advice(
        rule="exposed-collectives",
        sentence=f"For {seconds(exposed_s)} of {seconds(timeline.elapsed_s)} "
        f"({format_share(exposed_s / timeline.elapsed_s)}) the GPU does nothing but communicate "
        f"({listed(kernels)}, {seconds(time_s)} in all). Overlap it with the backward pass "
        "(bucketed gradients), send less (16-bit gradients, sharding), and look for the rank that "
        "the others wait for.",
        recoverable_s=exposed_s,
        kernels=keys_of(kernels),
        evidence={
            "collective_only_s": exposed_s,
            "elapsed_s": timeline.elapsed_s,
            "duration_s": time_s,
        },
    )


def _short_name(case: Case, key: str | None) -> str:
    found: Kernel | None = next((k for k in case.analysis.kernels if k.key == key), None)
    return "a kernel without a name" if found is None else listed([found])
