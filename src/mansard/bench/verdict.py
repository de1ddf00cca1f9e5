"""From samples to a ceiling: medians, limits, and the rules by which a ceiling is refused."""

import statistics
from collections.abc import Iterable
from typing import Any

from mansard.bench.limits import limit_of
from mansard.bench.messages import Opened, Outcome, Task
from mansard.bench.samples import Summary
from mansard.model.machine import ROOM_ABOVE_LIMIT, Ceiling

#: A compute ceiling must work on each byte this many times more than the ridge asks for.
_ABOVE_RIDGE = 4.0
#: Spread (a robust standard deviation) above which a ceiling is called unsteady.
_UNSTEADY = 0.02
_DIGITS = 6
#: Recipes that give each SM the same work, so that all wait for the slowest.
_EQUAL_WORK = ("compute", "shared", "cache")


def ceiling_of(task: Task, outcome: Outcome, opened: Opened, known: Iterable[Ceiling]) -> Ceiling:
    """The ceiling that a task's outcome makes; refused, with the reason, where it must not stand.

    Args:
        task: what was measured.
        outcome: what was found.
        opened: the device.
        known: ceilings measured before; the ridges of a compute ceiling come from them.
    """
    if outcome.refusal or not outcome.values:
        return refused(task, outcome.refusal or "there are no samples", outcome.evidence)
    summary = Summary(outcome.values)
    clocks = [clock for clock in outcome.clocks_hz if clock is not None]
    clock = _clock_at_median(outcome)
    limit = limit_of(task, opened.facts, opened.numbers, clock)
    share = summary.median / limit.value if limit is not None else None
    evidence = {
        **outcome.evidence,
        "best": min(outcome.values) if task.unit == "s" else summary.best,
        "spread": _round(summary.spread),
    }
    if clocks:
        evidence["sm_clock_range_hz"] = [min(clocks), max(clocks)]
    if limit is not None:
        evidence["limit_source"] = limit.source
    if limit is not None and clock is not None and task.recipe in _EQUAL_WORK:
        slowest = _share_at_slowest(outcome, limit.value / clock)
        if slowest is not None:
            evidence["share_at_slowest_sm"] = _round(slowest)
    at_most = limit_of(task, opened.facts, opened.numbers, opened.facts.sm_clock_max_hz)
    if at_most is not None and limit is not None and at_most.value != limit.value:
        evidence["limit_at_maximum_clock"] = at_most.value
        evidence["share_at_maximum_clock"] = _round(summary.median / at_most.value)
    problem = None
    if share is not None and share > 1 + ROOM_ABOVE_LIMIT:
        problem = (
            f"{100 * share:.1f} % of the limit at the clock it ran at: "
            "the measurement or the limit is wrong"
        )
    elif task.recipe == "compute":
        ridges = _ridges(summary.median, known)
        problem = _below_ridge(outcome.evidence, ridges)
        evidence.update(_intensity(outcome.evidence, ridges))
    if problem:
        return refused(task, problem, evidence)
    return Ceiling(
        kind=_kind(task),
        value=summary.median,
        unit=task.unit,
        path=task.path,
        instruction=task.instruction,
        level=task.level,
        access=task.access,
        arm=task.arm,
        sm_clock_hz=clock,
        limit_at_clock=limit.value if limit is not None else None,
        share_of_limit=share,
        samples=outcome.values,
        evidence=evidence,
        reason=_remarks(task, outcome, summary, clocks),
    )


def refused(task: Task, reason: str, evidence: dict[str, Any] | None = None) -> Ceiling:
    """A ceiling that is shown with its reason and never drawn."""
    return Ceiling(
        kind=_kind(task),
        value=None,
        unit=task.unit,
        status="refused",
        path=task.path,
        instruction=task.instruction,
        level=task.level,
        access=task.access,
        arm=task.arm,
        evidence=evidence or {},
        reason=reason,
    )


def _kind(task: Task) -> Any:
    if task.kind is None:
        raise ValueError(f"{task.name} makes no ceiling")
    return task.kind


def _share_at_slowest(outcome: Outcome, limit_per_hz: float) -> float | None:
    """Share of the limit at the clock of the slowest SM, which all wait for.

    While a power limit moves the clocks, parts of a chip run at different ones.
    """
    clocks: list[int | None] = outcome.evidence.get("sm_clock_slowest_hz") or []
    known = [clock for clock in clocks if clock]
    if len(known) != len(outcome.values):
        return None
    return statistics.median(
        value / (limit_per_hz * clock) for value, clock in zip(outcome.values, known, strict=True)
    )


def _clock_at_median(outcome: Outcome) -> float | None:
    """SM clock of the sample (or the two) that the median is made of.

    When the clock moves between samples, the median of the clocks belongs to other samples than
    the median of the values.
    """
    pairs = sorted(
        (value, clock)
        for value, clock in zip(outcome.values, outcome.clocks_hz, strict=True)
        if clock is not None
    )
    if not pairs or len(pairs) < len(outcome.values):
        return statistics.median([clock for _, clock in pairs]) if pairs else None
    middle = [pairs[(len(pairs) - 1) // 2], pairs[len(pairs) // 2]]
    return statistics.fmean(clock for _, clock in middle)


def _ridges(flop_per_s: float, known: Iterable[Ceiling]) -> dict[str, float]:
    """FLOP per byte of the ridge at each level whose read bandwidth was measured."""
    found: dict[str, float] = {}
    for ceiling in known:
        if (
            ceiling.kind == "bandwidth"
            and ceiling.level in ("l1", "l2", "dram")
            and ceiling.access == "read"
            and ceiling.value
        ):
            ridge = flop_per_s / ceiling.value
            found[ceiling.level] = max(ridge, found.get(ceiling.level, 0.0))
    return found


def _intensity(evidence: dict[str, Any], ridges: dict[str, float]) -> dict[str, Any]:
    moved, work = evidence.get("bytes_per_sample"), evidence.get("work_per_sample")
    if not moved or not work:
        return {}
    # What a block reads from and writes to device memory passes every level once.
    return {
        "flop_per_byte": _round(work / moved),
        "ridge_flop_per_byte": {level: _round(ridge) for level, ridge in ridges.items()},
    }


def _below_ridge(evidence: dict[str, Any], ridges: dict[str, float]) -> str | None:
    moved, work = evidence.get("bytes_per_sample"), evidence.get("work_per_sample")
    if not moved or not work:
        return None
    for level, ridge in ridges.items():
        if work / moved < _ABOVE_RIDGE * ridge:
            return (
                f"{work / moved:.3g} FLOP/byte is less than {_ABOVE_RIDGE:g} times the ridge of "
                f"{level} ({ridge:.3g}): it may be memory that limits it"
            )
    return None


def _remarks(task: Task, outcome: Outcome, summary: Summary, clocks: list[float]) -> str | None:
    """What a reader of the number must know."""
    remarks = [text for text in (task.remark, outcome.remark) if text]
    held = outcome.evidence.get("clock_held_by") or []
    alarms = [name for name in held if "slowdown" in name or "brake" in name]
    if alarms:
        remarks.append(f"the clock was held down by {', '.join(alarms)}")
    elif "power cap" in held and task.kind == "compute":
        remarks.append("held by the power limit")
    if summary.spread > _UNSTEADY:
        remarks.append(f"unsteady: samples spread by {100 * summary.spread:.1f} %")
    elif clocks and max(clocks) > (1 + 2 * _UNSTEADY) * min(clocks):
        remarks.append(
            f"the SM clock moved by {100 * (max(clocks) / min(clocks) - 1):.0f} % between samples"
        )
    return "; ".join(remarks) or None


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
