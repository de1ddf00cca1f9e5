"""Rules of the advice on launches that should not be, or be fewer or larger.

Each rule tells whether a kernel is its case, and what to do about all that are. What the rules
mean stands in docs/advice.md.
"""

import dataclasses
import re
from collections.abc import Sequence

from mansard.analysis.advice_case import (
    OPTIMIZER,
    Case,
    count,
    floor_of,
    keys_of,
    launches_of,
    listed,
    mean_launch_s,
    recoverable_of,
    seconds,
    time_of,
)
from mansard.model.advice import Advice
from mansard.model.analysis import Group, Kernel, quotient
from mansard.units import format_share, format_si

#: With this share of the SMs without a block, it is the grid that holds a kernel up.
_IDLE_SMS = 0.3


@dataclasses.dataclass(frozen=True, slots=True)
class Movement:
    """A kind of kernel that moves data and computes nothing."""

    rule: str
    what: str
    remedy: str
    names: re.Pattern[str]


def _names(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


#: Tried in this order; the last also takes plain copies.
MOVEMENTS = (
    Movement(
        "transfers",
        "Copies between host and GPU",
        "Pin the host memory, copy ahead on a stream of its own (non_blocking=True), and keep on "
        "the GPU what is used again",
        _names(r"^mem(cpy|ory)(?!.*\b([DA]to[DA]|PtoP)\b)"),
    ),
    Movement(
        "layout-changes",
        "Layout changes and padding",
        "Keep one layout from end to end (channels-last for tensor cores), with sizes that need "
        "no padding",
        _names(
            r"nchw|nhwc|transpose|permut|SwapDimension|ShuffleInTensor|im2col|vol2col|reshape"
            r"|reorder|tensorTransform|space_?to|\bS2B\b|batch_?to_?space|(\b|_)pad|padding"
        ),
    ),
    Movement(
        "fills",
        "Fills with a constant",
        "Write results instead of adding to zeros: zero_grad(set_to_none=True), empty() for "
        "zeros(), beta=0 in products",
        _names(r"fill|memset|zero|set_value"),
    ),
    Movement(
        "joins",
        "Concatenations and slices",
        "Let the producers write into slices of one buffer, and the consumers read views",
        _names(r"\bCat|concat|slic(e|ing)|split_kernel"),
    ),
    Movement(
        "casts-and-copies",
        "Casts and copies",
        "Keep one precision between kernels (weights cast once a step, not once an operator) and "
        "fuse the casts that stay with their neighbours",
        _names(r"conver(t|sion)|cast|copy|clone|^memcpy"),
    ),
)


def is_launch_bound(kernel: Kernel, case: Case) -> bool:
    """Whether its launches are over in the time that starting one takes."""
    mean_s = mean_launch_s(kernel)
    return mean_s is not None and mean_s < case.option("short_launch_s")


def launch_bound(kernels: Sequence[Kernel], case: Case) -> Advice:
    """Many short launches: take them together."""
    launches, time_s, cost_s = launches_of(kernels), time_of(kernels), case.launch_cost_s
    evidence: dict[str, float | str] = {"launches": launches, "duration_s": time_s}
    floor_s = floor_of(kernels)
    text = (
        f"Short launches: {launches:,} of {count(len(kernels), 'kernel')} ({listed(kernels)}), "
        f"{seconds(quotient(time_s, launches))} each, {seconds(time_s)} in all"
    )
    if floor_s is not None:
        text += f"; their work needs {seconds(floor_s)}"
        evidence["floor_s"] = floor_s
    if cost_s is not None:
        text += f", and starting them takes the host {seconds(launches * cost_s)}"
        evidence["launch_cost_s"] = launches * cost_s
    phase = max(case.analysis.phases, key=_short, default=None)
    if phase is not None and phase.key is not None and len(case.analysis.phases) > 1:
        text += f" (most in phase '{phase.key}')"
        evidence["phase"] = phase.key
    optimizer = any(OPTIMIZER.search(kernel.key or "") for kernel in kernels)
    fused = "a fused optimizer, " if optimizer else ""
    return Advice(
        rule="launch-bound",
        sentence=f"{text}. Take them together: {fused}torch.compile, or a CUDA graph.",
        recoverable_s=recoverable_of(kernels),
        kernels=keys_of(kernels),
        evidence=evidence,
    )


def _short(group: Group) -> int:
    return group.short_launches or 0


def moves_only(kernel: Kernel, case: Case, *, movement: Movement) -> bool:
    """Whether a kernel moves data in this way, and its counters show next to no work."""
    if kernel.family != "copy" or kernel.zero_flop_launches is None:
        return False
    own = next((m for m in MOVEMENTS if m.names.search(_described(kernel))), None)
    if own is not movement:
        return False
    idle = kernel.zero_flop_launches + (kernel.near_zero_flop_launches or 0)
    # What L2 serves does not reach device memory, so small launches seem to work: count L2 too.
    at_l2 = kernel.intensity.get("l2")
    near = at_l2 is not None and at_l2 < case.option("near_zero_intensity")
    return idle == kernel.launches or near


def _described(kernel: Kernel) -> str:
    return f"{kernel.short_name} {(kernel.key or '')[:4096]}"


def move_less(kernels: Sequence[Kernel], case: Case, *, movement: Movement) -> Advice:
    """Launches that compute nothing: leave them out, all of their time can go."""
    time_s, launches = time_of(kernels), launches_of(kernels)
    share = quotient(time_s, case.total_s)
    moved = [kernel.bytes_by_level.get("dram") for kernel in kernels]
    known = [amount for amount in moved if amount is not None]
    text = (
        f"{movement.what} take {seconds(time_s)} ({format_share(share)} of the time): "
        f"{count(launches, 'launch')} ({listed(kernels)}), next to no FLOP"
    )
    evidence: dict[str, float | str] = {"launches": launches, "duration_s": time_s}
    if known and len(known) == len(moved):
        text += f", {format_si(sum(known), 'B')} through DRAM"
        evidence["bytes_dram"] = sum(known)
    return Advice(
        rule=movement.rule,
        sentence=f"{text}. {movement.remedy}.",
        recoverable_s=time_s,
        kernels=keys_of(kernels),
        evidence=evidence,
    )


def leaves_sms_idle(kernel: Kernel, case: Case) -> bool:
    """Whether its grids are smaller than the GPU."""
    share = quotient(kernel.idle_sm_s, kernel.duration_s)
    return case.sm_count is not None and share is not None and share >= _IDLE_SMS


def idle_sms(kernels: Sequence[Kernel], case: Case) -> Advice:
    """Fewer blocks than SMs: cut the work into more."""
    time_s = time_of(kernels)
    idle_s = sum(kernel.idle_sm_s or 0.0 for kernel in kernels)
    won = sum(
        min(kernel.idle_sm_s or 0.0, kernel.recoverable_s)
        if kernel.recoverable_s is not None
        else kernel.idle_sm_s or 0.0
        for kernel in kernels
    )
    share = idle_s / time_s
    return Advice(
        rule="idle-sms",
        sentence=f"Fewer blocks than SMs in {listed(kernels)} ({seconds(time_s)}): "
        f"{format_share(share)} of the {case.sm_count} SMs got none. Cut the work into more "
        "blocks (split-K, smaller tiles, a larger batch), or run other work beside it on a "
        "second stream.",
        recoverable_s=won,
        kernels=keys_of(kernels),
        evidence={"duration_s": time_s, "idle_sm_share": share, "sm_count": case.sm_count or 0},
    )
