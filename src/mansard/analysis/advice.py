"""Advice: what to do first about a run, one sentence a rule, with the numbers behind it.

The rules on kernels come in an order, and a kernel belongs to the first rule whose case it is, so
that their times add up to no more than the run took; what a second rule would say of it stands in
the same line. No rule speaks where a counter that it needs
was not collected: unknown is not zero.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from mansard.analysis import advice_launches, advice_run, advice_work
from mansard.analysis.advice_above import above_roof, is_above_roof
from mansard.analysis.advice_case import Case, keys_of, listed, seconds, time_of
from mansard.analysis.advice_launches import MOVEMENTS, Movement
from mansard.model.advice import Advice, SecondFault
from mansard.model.analysis import Analysis, Kernel

__all__ = ["Advice", "advise"]

#: Advice is given for at least this share of the time.
WORTH_TELLING = 0.01

#: Second faults that one sentence names; the JSON report has all.
_MOST_ALSO = 2


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    """A rule on kernels.

    Attributes:
        name: of the rule.
        matches: whether a kernel is the case.
        tell: what to do about all that are.
        fault: what it says in short of kernels that belong to another rule.
        beside: rules whose fault stays when the advice of this one was taken, so that it is said
            in the same line. What others say of such kernels follows from this fault.
    """

    name: str
    matches: Callable[[Kernel, Case], bool]
    tell: Callable[[Sequence[Kernel], Case], Advice]
    fault: str = ""
    beside: tuple[str, ...] = ()


def _movement(movement: Movement) -> _Rule:
    return _Rule(
        movement.rule,
        functools.partial(advice_launches.moves_only, movement=movement),
        functools.partial(advice_launches.move_less, movement=movement),
        movement.what[0].lower() + movement.what[1:],
    )


_MOVEMENTS = tuple(map(_movement, MOVEMENTS))

#: The order decides: a kernel belongs to the first whose case it is.
_KERNEL_RULES = (
    _Rule(
        "launch-bound",
        advice_launches.is_launch_bound,
        advice_launches.launch_bound,
        beside=(*(rule.name for rule in _MOVEMENTS), "off-tensor"),
    ),
    *_MOVEMENTS,
    _Rule(
        "idle-sms",
        advice_launches.leaves_sms_idle,
        advice_launches.idle_sms,
        beside=("off-tensor", "no-reuse"),
    ),
    _Rule("off-tensor", advice_work.is_off_tensor, advice_work.off_tensor, "no tensor work"),
    _Rule("no-reuse", advice_work.has_no_reuse, advice_work.no_reuse, "every byte used once"),
    _Rule("latency-bound", advice_work.is_latency_bound, advice_work.latency_bound),
    _Rule("below-compute-roof", advice_work.is_below_compute_roof, advice_work.below_compute_roof),
)
_BY_NAME = {rule.name: rule for rule in _KERNEL_RULES}

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
    cases: dict[str, list[Kernel]] = {rule.name: [] for rule in _KERNEL_RULES}
    for kernel in case.analysis.kernels:
        # A kernel above its roof has no floor to trust, and a collective waits for its peers.
        if kernel.family == "collective" or not kernel.duration_s or is_above_roof(kernel, case):
            continue
        for rule in _KERNEL_RULES:
            if rule.matches(kernel, case):
                cases[rule.name].append(kernel)
                break
    for rule in _KERNEL_RULES:
        if cases[rule.name]:
            yield _with_second_faults(rule, cases[rule.name], case)


def _with_second_faults(rule: _Rule, kernels: Sequence[Kernel], case: Case) -> Advice:
    """The advice, and what else is the matter with its kernels: said, and counted once."""
    advice = rule.tell(kernels, case)
    found: list[tuple[SecondFault, str]] = []
    for name in rule.beside:
        other = _BY_NAME[name]
        both = [kernel for kernel in kernels if other.matches(kernel, case)]
        won_s = other.tell(both, case).recoverable_s if both else None
        if won_s is None or won_s < WORTH_TELLING * case.total_s:
            continue
        said = f" Also {other.fault} in {listed(both)} ({seconds(time_of(both))}): "
        said += f"up to {seconds(won_s)} of the same time."
        found.append((SecondFault(rule=name, kernels=keys_of(both), recoverable_s=won_s), said))
    found.sort(key=lambda each: -each[0].recoverable_s)
    return dataclasses.replace(
        advice,
        sentence=advice.sentence + "".join(said for _, said in found[:_MOST_ALSO]),
        also=tuple(fault for fault, _ in found),
    )
