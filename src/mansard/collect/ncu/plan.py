"""Which launches to count, so that all others can be told from them. Pure."""

import bisect
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from mansard.collect.ncu.options import Selection
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.collect.ncu.vocabulary import is_collective

#: Launches of one kernel and shape whose times lie within this factor do the same work. In five
#: steps of DeepLabv3 (PyTorch in bf16 and fp32, JAX) one launch of each such group gave the
#: floating-point work within 0.1 %; the first of each kernel and shape was 5 to 11 % off.
TIME_RATIO = 1.15
#: The same for launches so short that their times scatter more than that.
TIME_SCATTER_NS = 1000
#: Groups of which none is counted may take this part of the time; and numbers enough for that.
UNREACHED = 0.01
MOST_NUMBERS = 64

Group = Sequence[int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is counted.

    Attributes:
        groups: kernels that are taken to be alike, by their positions among the launches.
        picked: positions of the launches that are counted.
    """

    groups: Sequence[Group]
    picked: frozenset[int]


def plan_all(launches: Sequence[TracedLaunch]) -> Plan:
    """Every kernel is counted; those of one kernel and shape are alike."""
    groups = _configurations(launches)
    return Plan(groups=groups, picked=frozenset(at for group in groups for at in group))


def plan_by_number(
    launches: Sequence[TracedLaunch], selection: Selection, name_of: Callable[[TracedLaunch], str]
) -> tuple[Plan, tuple[int, ...]]:
    """Launches that ncu can choose by itself: the same numbers of every kernel and shape.

    These are the first, and as many more as it takes to have one of nearly each group of
    ``plan_by_time``: those numbers first that bring most time of groups for a launch counted.

    Args:
        launches: traced launches that passed the filters.
        selection: how many of the first, and whether collectives are counted.
        name_of: the name by which ncu numbers a kernel.

    Returns:
        The plan, and the numbers, from 1.
    """
    numbered = _configurations(launches, name_of)
    number = {at: place for group in numbered for place, at in enumerate(group, start=1)}
    groups = [part for group in _configurations(launches) for part in _by_time(launches, group)]
    counted = [group for group in groups if not _left_out(launches[group[0]], selection)]
    first = range(1, (selection.sample or 1) + 1)
    spent = [sum(_time_ns(launches[at]) for at in group) for group in counted]
    reached = [{number[at] for at in group} for group in counted]
    chosen = _numbers(first, reached, spent, [len(group) for group in numbered])
    picked = frozenset(at for group in counted for at in group if number[at] in chosen)
    return Plan(groups=groups, picked=picked), tuple(sorted(chosen))


def plan_by_time(launches: Sequence[TracedLaunch], selection: Selection) -> Plan:
    """Some launches of each kernel, shape and time.

    One kernel and shape may do different work: a GEMM over another depth, a convolution of more
    channels. That takes another time. So launches of the same kernel, grid, block and shared
    memory are put in order of their times and cut where these have grown by ``TIME_RATIO``. Of
    each group the launch in the middle is counted, or those that cut it into even parts.

    Args:
        launches: traced launches that passed the filters.
        selection: how many of each, and whether collectives are counted.
    """
    groups = [part for group in _configurations(launches) for part in _by_time(launches, group)]
    return _plan(launches, selection, groups, _evenly)


def _plan(
    launches: Sequence[TracedLaunch],
    selection: Selection,
    groups: Sequence[Group],
    choose: Callable[[Group, int], Group],
) -> Plan:
    count = selection.sample or 1
    return Plan(
        groups=groups,
        picked=frozenset(
            at
            for group in groups
            if not _left_out(launches[group[0]], selection)
            for at in choose(group, count)
        ),
    )


def _numbers(
    first: Iterable[int],
    reached: Sequence[set[int]],
    spent: Sequence[int],
    sizes: Sequence[int],
) -> set[int]:
    """The first numbers, and more until the groups that hold none of them take little time.

    Args:
        first: numbers that are chosen anyway.
        reached: by group, the numbers of its launches.
        spent: by group, its time.
        sizes: by kernel and shape, its launches: so many of these a number counts.
    """
    chosen = set(first)
    ordered = sorted(sizes)
    left = {at for at, numbers in enumerate(reached) if not numbers & chosen}
    worth: Counter[int] = Counter()
    for at in left:
        worth.update(dict.fromkeys(reached[at], spent[at]))
    allowed = UNREACHED * sum(spent)
    while left and sum(spent[at] for at in left) > allowed and len(chosen) < MOST_NUMBERS:
        best = max(
            worth,
            key=lambda n: (worth[n] / max(1, len(ordered) - bisect.bisect_left(ordered, n)), -n),
        )
        chosen.add(best)
        for at in [at for at in left if best in reached[at]]:
            left.remove(at)
            worth.subtract(dict.fromkeys(reached[at], spent[at]))
    return chosen


def _symbol(launch: TracedLaunch) -> str:
    return launch.symbol or launch.name


def _configurations(
    launches: Sequence[TracedLaunch], name_of: Callable[[TracedLaunch], str] = _symbol
) -> list[Group]:
    found: dict[object, list[int]] = defaultdict(list)
    for at, each in enumerate(launches):
        if each.kind == "kernel":
            found[each.process, name_of(each), each.shape, each.shared_bytes].append(at)
    return list(found.values())


def _time_ns(launch: TracedLaunch) -> int:
    return launch.end_ns - launch.start_ns


def _by_time(launches: Sequence[TracedLaunch], group: Group) -> list[Group]:
    times = {at: _time_ns(launches[at]) for at in group}
    parts: list[list[int]] = []
    most = -1.0
    for at in sorted(group, key=lambda at: (times[at], at)):
        if times[at] > most:
            parts.append([])
            most = max(times[at] * TIME_RATIO, times[at] + TIME_SCATTER_NS)
        parts[-1].append(at)
    return list(parts)


def _evenly(group: Group, count: int) -> Group:
    """The middle of a group in order of time; the middles of as many even parts of it."""
    if count >= len(group):
        return group
    return [group[(2 * part + 1) * len(group) // (2 * count)] for part in range(count)]


def _left_out(launch: TracedLaunch, selection: Selection) -> bool:
    """Collectives hang when they are repeated on one rank; one that is named is asked for."""
    if selection.collectives or not is_collective(launch.name):
        return False
    name = selection.kernel_name
    return name is None or name.startswith("regex:")
