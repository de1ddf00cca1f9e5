"""Counters in groups that one pass collects, and whether a run of the program for each pays.

Where all counters of a run fit one pass, Nsight Compute neither saves nor restores memory, which
takes most of the time of a launch and leaves caches in another state than the program does. So a
short program is better run once for each pass.
"""

import contextlib
from collections.abc import Callable, Sequence

from mansard.collect.cupti.host import count_passes
from mansard.collect.cupti.library import load_cupti
from mansard.counters.table import CounterTable
from mansard.errors import MansardError

#: Seconds that a launch takes longer when all is counted in one run, and that ncu adds to a run of
#: a program. On an H200 0.07 in a process with 0.5 GB, 0.13 with 20 GB
#: (docs/validation/ncu-sampled-h200.json).
_RESTORE_S, _CONNECT_S = 0.1, 1.4
#: Work of integers opens no run of its own.
_INTEGER = "op_"


def one_pass_groups(
    counters: Sequence[str], last: Sequence[str], passes: Callable[[Sequence[str]], int]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Distribute counters over groups, each to the first with which it fits one pass.

    Args:
        counters: vendor names, most wanted first.
        last: those of them that open no group of their own.
        passes: how many passes a set of counters needs.

    Returns:
        The groups, and those of ``last`` that found no place.
    """
    groups: list[list[str]] = []
    homeless: list[str] = []
    for counter in (*(c for c in counters if c not in last), *last):
        for group in groups:
            if passes((*group, counter)) == 1:
                group.append(counter)
                break
        else:
            if counter in last:
                homeless.append(counter)
            else:
                groups.append([counter])
    return [tuple(group) for group in groups], tuple(homeless)


def groups_for(
    table: CounterTable, counters: Sequence[str]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]] | None:
    """The same for the chip of a table, asked of CUPTI; None where CUPTI cannot say.

    Args:
        table: definitions for the chip.
        counters: vendor names.
    """
    if not table.chips:
        return None
    chip = table.chips[0]
    integer = [c for c in counters if c in integer_counters(table)]
    with contextlib.suppress(MansardError):
        cupti = load_cupti()
        return one_pass_groups(counters, integer, lambda names: count_passes(cupti, chip, names))
    return None


def integer_counters(table: CounterTable) -> frozenset[str]:
    """Counters that only columns of integer work are made of."""
    by_kind: dict[bool, set[str]] = {True: set(), False: set()}
    for column, alternatives in table.quantities.items():
        for each in alternatives:
            by_kind[column.startswith(_INTEGER)].update(each.formula.counters)
    return frozenset(by_kind[True] - by_kind[False])


def runs_pay(groups: int, launches: int, program_s: float) -> bool:
    """Whether a run of the program for each group takes less time than one run for all.

    Args:
        groups: how many groups of counters.
        launches: how many launches are counted.
        program_s: how long the program runs by itself.
    """
    return (groups - 1) * (program_s + _CONNECT_S) < launches * _RESTORE_S
