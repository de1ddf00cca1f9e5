"""Counts from what a file has instead of them: another unit's total, or a rate.

Nsight Compute's own sections store ``X.sum.per_cycle_elapsed`` and ``X.sum.per_second`` where a
table asks for ``X.sum``. On the same launch the count is the rate times the unit's mean elapsed
cycles, or times the time; both hold to all digits in a report that has counts and rates
(NVIDIA H200, Nsight Compute 2025.3.1).
"""

import dataclasses
from collections.abc import Collection

from mansard.counters.formula import Formula

# A total over the parts of an SM is the total over SMs, for counts of instructions.
_TWINS = {"sm": "smsp", "smsp": "sm"}
_TWIN_COUNTS = ("sass_thread_inst_executed", "inst_executed")
# Units that run on the SM clock, in the order in which they stand in for each other.
_SM_CLOCK_UNITS = ("sm", "smsp", "l1tex")


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
    """A counter as an expression over what a file has.

    Attributes:
        formula: the counter itself, or what stands for it.
        from_rates: made from a rate and cycles or time, not from counts.
    """

    formula: Formula
    from_rates: bool


def derive(
    counter: str, available: Collection[str], duration: Formula | None = None
) -> Derived | None:
    """Express a counter over the counters of a file.

    Args:
        counter: vendor name, e.g. ``sm__sass_thread_inst_executed_op_ffma_pred_on.sum``.
        available: vendor names of the counters that the file has.
        duration: how the file gives the time in s; None where it does not.

    Returns:
        The expression, or None where the file does not determine the counter.
    """
    names = (counter, *_twin(counter))
    for name in names:
        if name in available:
            return Derived(Formula.counter(name), from_rates=False)
    for name in names:
        if not name.endswith(".sum"):
            continue
        per_cycle, per_second = f"{name}.per_cycle_elapsed", f"{name}.per_second"
        cycles = _elapsed_cycles(name.partition("__")[0], available, duration)
        if per_cycle in available and cycles is not None:
            return Derived(Formula.counter(per_cycle) * cycles, from_rates=True)
        if per_second in available and duration is not None:
            return Derived(Formula.counter(per_second) * duration, from_rates=True)
    return None


def origins(counter: str) -> tuple[str, ...]:
    """Counters that ``derive`` may take for one, itself first, without the rates of each."""
    unit = counter.partition("__")[0]
    clocks = dict.fromkeys((unit, *_SM_CLOCK_UNITS))
    return (counter, *_twin(counter), *(f"{each}__cycles_elapsed.avg" for each in clocks))


def _twin(counter: str) -> tuple[str, ...]:
    unit, _, rest = counter.partition("__")
    if unit in _TWINS and rest.endswith(".sum") and rest.startswith(_TWIN_COUNTS):
        return (f"{_TWINS[unit]}__{rest}",)
    return ()


def _elapsed_cycles(
    unit: str, available: Collection[str], duration: Formula | None
) -> Formula | None:
    units = (
        (unit, *(u for u in _SM_CLOCK_UNITS if u != unit)) if unit in _SM_CLOCK_UNITS else (unit,)
    )
    for each in units:
        cycles = f"{each}__cycles_elapsed.avg"
        if cycles in available:
            return Formula.counter(cycles)
    for each in units:
        clock = f"{each}__cycles_elapsed.avg.per_second"
        if clock in available and duration is not None:
            return duration * Formula.counter(clock)
    return None
