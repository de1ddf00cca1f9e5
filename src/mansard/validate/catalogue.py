"""All cases for one chip, in the order in which they run."""

import fnmatch
from collections.abc import Iterable

from mansard.bench.messages import Opened
from mansard.counters.table import CounterTable
from mansard.errors import UsageError
from mansard.validate.cases import Case, Lacking
from mansard.validate.compute_cases import compute_cases
from mansard.validate.library_cases import library_cases
from mansard.validate.memory_cases import memory_cases


def all_cases(opened: Opened, table: CounterTable) -> tuple[Case | Lacking, ...]:
    """The cases of a chip; those that it cannot run say why.

    Args:
        opened: the GPU.
        table: its counter table.
    """
    facts = opened.facts
    sms = facts.sm_count or 1
    found: list[Case | Lacking] = [
        *compute_cases(opened.capability, sms, table),
        *library_cases(table),
        *memory_cases(
            opened.capability,
            sms,
            l2_bytes=facts.l2_bytes or 0,
            free_bytes=int(opened.numbers.get("free_bytes", 0)),
        ),
    ]
    return tuple({each.name: each for each in found}.values())


def chosen(cases: Iterable[Case | Lacking], only: tuple[str, ...]) -> tuple[Case | Lacking, ...]:
    """The cases whose name or group contains one of the texts, or matches it as a pattern.

    Raises:
        UsageError: there is none.
    """
    cases = tuple(cases)
    if not only:
        return cases
    kept = tuple(case for case in cases if any(_matches(case, text) for text in only))
    if not kept:
        names = ", ".join(sorted(case.name for case in cases))
        raise UsageError(f"no case matches {', '.join(only)[:80]}; there are: {names}")
    return kept


def batches(cases: Iterable[Case | Lacking]) -> tuple[tuple[Case, ...], ...]:
    """Cases that are counted together, by group."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if isinstance(case, Case):
            found.setdefault(case.group, []).append(case)
    return tuple(tuple(group) for group in found.values())


def _matches(case: Case | Lacking, text: str) -> bool:
    wanted = text.casefold()
    names = [case.name.casefold()]
    if isinstance(case, Case):
        names.append(case.group.casefold())
    return any(wanted in name or fnmatch.fnmatchcase(name, wanted) for name in names)
