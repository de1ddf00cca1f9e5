"""From two sets of sums and their repeats to changes with a verdict."""

import dataclasses
import math
from collections.abc import Callable, Sequence

from mansard.analysis.matching import Match
from mansard.analysis.noise import LEAST_REPEATS, Part, half_interval
from mansard.analysis.repeats import TOTALS, Repeats
from mansard.model.analysis import Analysis, Group
from mansard.model.comparison import Change, Difference, RepeatsOf, Verdict
from mansard.model.paths import LEVELS

#: From one run of a program to the next, times and bytes differ by about this much whatever the
#: steps of one run say (clocks, placement in memory): less is never called a change.
LEAST_CHANGE = 0.01

#: Sums this near to each other are equal but for the order of their additions.
_ROUNDING = 2.0**-40

#: The program decides these, not the moment: they need no repeats.
_EXACT = ("flop", "op_int", "launches", "zero_flop_launches")


def _bytes(level: str) -> Callable[[Group], float | None]:
    def value(group: Group) -> float | None:
        return None if level in group.partial_levels else group.bytes_by_level.get(level)

    return value


_VALUES: dict[str, Callable[[Group], float | None]] = {
    "gpu_time": lambda group: None if group.untimed_launches else group.duration_s,
    "flop": lambda group: group.flop,
    "op_int": lambda group: group.op_int,
    **{f"bytes_{level}": _bytes(level) for level in LEVELS},
    "launches": lambda group: group.launches,
    "zero_flop_launches": lambda group: group.zero_flop_launches,
    "short_launches": lambda group: None if group.untimed_launches else group.short_launches,
}

#: What a step takes when nothing records it, and from the first start to the last end of one that
#: was traced, which holds what the trace adds; of the totals alone.
UNTRACED, TRACED = "step_time_untraced", "step_time"

#: Every quantity that is compared.
METRICS = (UNTRACED, TRACED, *_VALUES)


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One of two runs.

    Attributes:
        analysis: its sums.
        repeats: how they spread.
        host_steps_s: what a step takes when nothing records it, by file; empty where a file does
            not say.
    """

    analysis: Analysis
    repeats: Repeats
    host_steps_s: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Noise:
    """What is known of the spread of one quantity on both sides."""

    half: float | None = None
    repeats: RepeatsOf = ""
    number_a: int = 0
    number_b: int = 0


def differences(
    a: Side, b: Side, matches: Sequence[Match], *, by: str, least: float
) -> tuple[Difference, list[Difference]]:
    """The totals and the rows.

    Args:
        a: the baseline.
        b: what is compared with it.
        matches: what stands in one row.
        by: what the rows are.
        least: relative change of a time that is never called one (clocks differ as much).
    """
    rows_a = _rows(matches, a.analysis, by, lambda match: match.a)
    rows_b = _rows(matches, b.analysis, by, lambda match: match.b)
    parts_a, parts_b = a.repeats.of(rows_a), b.repeats.of(rows_b)
    single = not (parts_a and parts_b) and by == "kernel"
    launches_a = a.repeats.of_launches(rows_a) if single else {}
    launches_b = b.repeats.of_launches(rows_b) if single else {}

    def noise(row: int, metric: str) -> _Noise:
        pair = [parts.get((row, metric)) for parts in (parts_a, parts_b)]
        if pair[0] is not None and pair[1] is not None:
            half = half_interval([pair[0], pair[1]])
            return _Noise(half, "steps and ranks", a.repeats.number, b.repeats.number)
        if metric == "gpu_time" and row in launches_a and row in launches_b:
            (number_a, some), (number_b, more) = launches_a[row], launches_b[row]
            return _Noise(half_interval([*some, *more]), "launches", number_a, number_b)
        return _Noise()

    def changes(
        row: int, groups_a: Sequence[Group], groups_b: Sequence[Group]
    ) -> dict[str, Change]:
        return {
            metric: _change(
                metric,
                _mean(groups_a, metric, a.repeats.number),
                _mean(groups_b, metric, b.repeats.number),
                noise(row, metric),
                least=least,
            )
            for metric in _VALUES
        }

    found = [
        Difference(
            key=match.key,
            short_name=match.kernel.short_name if match.kernel else None,
            family=match.kernel.family if match.kernel else None,
            matched_by=match.by,
            names_a=tuple(group.key for group in match.a),
            names_b=tuple(group.key for group in match.b),
            changes=changes(row, match.a, match.b),
        )
        for row, match in enumerate(matches)
    ]
    everything = changes(TOTALS, [a.analysis.totals], [b.analysis.totals])
    steps = {
        UNTRACED: _step_time(UNTRACED, a.host_steps_s, b.host_steps_s, least=least),
        TRACED: _step_time(TRACED, a.repeats.step_time_s, b.repeats.step_time_s, least=least),
    }
    everything = steps | everything
    return Difference(key=None, changes=everything), found


def _rows(
    matches: Sequence[Match],
    analysis: Analysis,
    by: str,
    groups: Callable[[Match], tuple[Group, ...]],
) -> dict[str | None, int]:
    """By key (of a kernel, phase, ...), the row that it belongs to."""
    rows = {group.key: row for row, match in enumerate(matches) for group in groups(match)}
    if by != "family":
        return rows
    return {kernel.key: rows[kernel.family] for kernel in analysis.kernels if kernel.family in rows}


def _mean(groups: Sequence[Group], metric: str, number: int) -> float | None:
    """For each rank and step; 0 where there are no launches, None where any value is unknown."""
    values = [_VALUES[metric](group) for group in groups]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known) / number


def _change(
    metric: str, a: float | None, b: float | None, noise: _Noise, *, least: float
) -> Change:
    half = None if noise.half is None or not a else noise.half / a
    change = Change(
        metric=metric,
        a=a,
        b=b,
        noise=half,
        repeats=noise.repeats,
        repeats_a=noise.number_a,
        repeats_b=noise.number_b,
    )
    return dataclasses.replace(change, verdict=_verdict(change, least))


def _verdict(change: Change, least: float) -> Verdict:
    relative = change.relative
    if relative is None:
        return "unknown"
    if abs(relative) <= _ROUNDING:
        return "same"
    if change.a == 0 or change.b == 0:
        return "changed"  # it came or went
    if change.metric in _EXACT:
        return "changed" if abs(relative) > (change.noise or 0.0) else "within noise"
    if change.noise is None:
        return "noise unknown"
    return "changed" if abs(relative) > max(change.noise, least) else "within noise"


def _step_time(
    metric: str, times_a: Sequence[float], times_b: Sequence[float], *, least: float
) -> Change:
    if not times_a or not times_b:
        return Change(metric=metric, a=None, b=None)
    noise = _Noise()
    if min(len(times_a), len(times_b)) >= LEAST_REPEATS:
        half = half_interval([_spread(times_a), _spread(times_b)])
        # A file states one time without a trace, and holds each step of the trace.
        of: RepeatsOf = "files" if metric == UNTRACED else "steps and ranks"
        noise = _Noise(half, of, len(times_a), len(times_b))
    return _change(metric, _average(times_a), _average(times_b), noise, least=least)


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _spread(values: Sequence[float]) -> Part:
    mean, number = _average(values), len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return Part(squares / (number - 1) / number, number - 1)
