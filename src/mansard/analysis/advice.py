"""Advice: what to do first about a run, one sentence a rule, with the numbers behind it.

The rules on kernels come in an order, and a kernel belongs to the first rule whose case it is, so
that their times add up to no more than the run took. No rule speaks where a counter that it needs
was not collected: unknown is not zero.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from mansard.analysis import advice_launches, advice_run, advice_work
from mansard.analysis.advice_above import above_roof, is_above_roof
from mansard.analysis.advice_case import Case
from mansard.model.advice import Advice
from mansard.model.analysis import Analysis, Kernel

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
    found = [*_of_kernels(case), *(advice for rule in _RUN_RULES for advice in rule(case))]
    given = [advice for advice in found if _worth_telling(advice, case)]
    given.sort(key=lambda advice: -(advice.recoverable_s or 0.0))
    contradictions = [advice for advice in above_roof(wrong, case) if _worth_telling(advice, case)]
    return (*contradictions, *given)


def _worth_telling(advice: Advice, case: Case) -> bool:
    """Whether enough time can be won, or is spent where that is not known."""
    time_s = advice.recoverable_s
    if time_s is None:
        spent_s = advice.evidence.get("duration_s", 0.0)
        time_s = spent_s if isinstance(spent_s, float) else 0.0
    return time_s >= WORTH_TELLING * case.total_s


def _of_kernels(case: Case) -> Iterator[Advice]:
    cases: list[list[Kernel]] = [[] for _ in _KERNEL_RULES]
    for kernel in case.analysis.kernels:
        # A kernel above its roof has no floor to trust, and a collective waits for its peers.
        if kernel.family == "collective" or not kernel.duration_s or is_above_roof(kernel, case):
            continue
        for (matches, _), mine in zip(_KERNEL_RULES, cases, strict=True):
            if matches(kernel, case):
                mine.append(kernel)
                break
    for (_, tell), mine in zip(_KERNEL_RULES, cases, strict=True):
        if mine:
            yield tell(mine, case)
