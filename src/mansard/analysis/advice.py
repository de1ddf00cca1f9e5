"""Advice: what to do first about a run, one sentence a rule, with the numbers behind it.

The rules on kernels come in an order, and a kernel belongs to the first rule whose case it is, so
that their times add up to no more than the run took. No rule speaks where a counter that it needs
was not collected: unknown is not zero.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from mansard.analysis import advice_launches, advice_run, advice_work
from mansard.analysis.advice_above import above_roof, is_above_roof
from mansard.analysis.advice_case import Case, time_of
from mansard.model.advice import Advice
from mansard.model.analysis import Analysis, Kernel, quotient

__all__ = ["Advice", "advise"]

#: Advice is given for at least this share of the time.
WORTH_TELLING = 0.01

_Matches = Callable[[Kernel, Case], bool]
_Tell = Callable[[Sequence[Kernel], Case], Advice]

#: Whether a kernel is the case, and what to do about all that are; the order decides.
_KERNEL_RULES: tuple[tuple[_Matches, _Tell], ...] = (
    (advice_launches.is_launch_bound, advice_launches.launch_bound),
    *(
        (
            functools.partial(advice_launches.moves_only, movement=movement),
            functools.partial(advice_launches.move_less, movement=movement),
        )
        for movement in advice_launches.MOVEMENTS
    ),
    (advice_launches.leaves_sms_idle, advice_launches.idle_sms),
    (advice_work.is_off_tensor, advice_work.off_tensor),
    (advice_work.has_no_reuse, advice_work.no_reuse),
    (advice_work.is_latency_bound, advice_work.latency_bound),
    (advice_work.is_below_compute_roof, advice_work.below_compute_roof),
)

_RUN_RULES: tuple[Callable[[Case], Iterable[Advice]], ...] = (
    advice_run.idle_gpu,
    advice_run.exposed_collectives,
    advice_run.low_clock,
)


def advise(analysis: Analysis) -> tuple[Advice, ...]:
    """Say what to do first about a run.

    Args:
        analysis: the run under its roofs; without roofs only what needs none can be said.

    Returns:
        Contradictions (kernels above their roof) first, then what can win the most time. Each
        ``recoverable_s`` is a bound from the counters, not a promise.
    """
    case = Case(analysis)
    if not case.total_s:
        return ()
    wrong = [kernel for kernel in analysis.kernels if is_above_roof(kernel, case)]
    given = [
        advice
        for advice in (*_of_kernels(case), *(a for rule in _RUN_RULES for a in rule(case)))
        if (advice.recoverable_s or 0.0) >= WORTH_TELLING * case.total_s
    ]
    given.sort(key=lambda advice: -(advice.recoverable_s or 0.0))
    worth = (quotient(time_of(wrong), case.total_s) or 0.0) >= WORTH_TELLING
    return (*(above_roof(wrong, case) if worth else ()), *given)


def _of_kernels(case: Case) -> Iterator[Advice]:
    # A kernel above its roof has no floor to trust, and the time of a collective is its peers'.
    left = [
        kernel
        for kernel in case.analysis.kernels
        if kernel.family != "collective" and kernel.duration_s and not is_above_roof(kernel, case)
    ]
    for matches, tell in _KERNEL_RULES:
        mine = [kernel for kernel in left if matches(kernel, case)]
        left = [kernel for kernel in left if kernel not in mine]
        if mine:
            yield tell(mine, case)
