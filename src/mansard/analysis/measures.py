"""What the scan of the launches computes for each cell of the cube, as SQL, and what not."""

from typing import TYPE_CHECKING

from mansard import engine
from mansard.analysis.launches import BYTES, COPY_KINDS, WORK
from mansard.analysis.options import AnalysisOptions

if TYPE_CHECKING:
    from mansard.analysis.cube import Plan

#: SQL: whether a launch is no kernel.
IS_COPY = f"kind IN ({', '.join(map(engine.literal, COPY_KINDS))})"
#: Measures that count the launches with a value.
_COUNTED = {"timed": "duration_s", "clocked": "sm_clock_hz"}


def measures(plan: "Plan") -> dict[str, str]:
    """Aggregates over the launches of a cell, by name; most are sums, and so add up."""
    options = plan.options
    live = plan.launches.live
    decided = "(pipes_known OR flop > 0)"
    zero = "(pipes_known AND flop = 0)"
    near = "false"
    if "bytes_dram" in live:
        near = f"(flop > 0 AND flop < {options.near_zero_intensity!r}::DOUBLE * bytes_dram)"
    found = {
        "launches": "count(*)",
        "counted": f"CASE WHEN {IS_COPY} THEN 0 ELSE count(*) END",
        "duration_s": _time("duration_s", options),
        "shortest_s": "min(duration_s)",
        "longest_s": "max(duration_s)",
        "first_launch": "min(launch)",
        "first_start_s": "min(start_s)",
        "clocks_hz": "sum(sm_clock_hz)",
        "invalid": "count_if(invalid)" if plan.launches.unsound else "0::BIGINT",
        "flop": "sum(flop)",
        "decided": f"count_if({decided})",
        "zero launches": f"count_if({zero})",
        "zero_s": _time(f"CASE WHEN {zero} THEN duration_s END", options),
        "near launches": f"count_if({near})",
        "near_s": _time(f"CASE WHEN {near} THEN duration_s END", options),
        "short": f"count_if(duration_s < {options.short_launch_s!r}::DOUBLE)",
    }
    for name, column in _COUNTED.items():
        # Launches are counted already: where each of them has the value, so are the values.
        full = column in plan.launches.full
        found[name] = "count(*)" if full else f"count({column})"
    same = twins(plan)
    for column in (*WORK, *BYTES):
        if column in live and column not in same:
            found[column] = f"sum({column})"
        if column in live - plan.launches.full and f"missing {column}" not in same:
            found[f"missing {column}"] = (
                f"CASE WHEN {IS_COPY} THEN 0 ELSE count(*) - count({column}) END"
            )
    alike = plan.launches.alike
    for first in plan.launches.alike_nulls:
        # None of them: were they null on different launches, this would be fewer than nulls.
        every = ", ".join(column for column, stands in alike.items() if stands == first)
        found[f"none {first}"] = f"count_if(coalesce({every}) IS NULL)"
    for resource in plan.resources:
        floor = f"floor_{resource.name}"
        found[floor] = f"sum({_beside_time(floor, plan)})"
        if f"open {resource.name}" not in same:
            found[f"open {resource.name}"] = (
                f"sum(CASE WHEN open_{resource.name} THEN duration_s END)"
            )
    if plan.resources:
        found["floor_s"] = f"sum({_beside_time('floor', plan)})"
        allowed = f"{1 + options.tolerance_above_roof!r}::DOUBLE"
        found["above"] = f"count_if(floor_roof > duration_s * {allowed})"
    return found


def twins(plan: "Plan") -> dict[str, str]:
    """Measures that equal another one, by that other one: they need not be computed."""
    launches = plan.launches
    found = {}
    first: dict[str, str] = {}
    for column in (name for name in (*WORK, *BYTES) if name in launches.live):
        stands = launches.alike.get(column, column)
        if stands != column:
            found[f"missing {column}"] = f"missing {stands}"
        nulls = stands if column in launches.alike else "full" if column in launches.full else None
        # Sums of nothing but zeros over the same launches. Bytes keep their columns in the cube.
        if column in launches.zero and column in WORK and nulls:
            other = first.setdefault(nulls, column)
            if other != column:
                found[column] = other
    asked: dict[str, str] = {}
    for resource in plan.resources:
        other = asked.setdefault(resource.open, resource.name)
        if other != resource.name:
            found[f"open {resource.name}"] = f"open {other}"
    return found


def _beside_time(floor: str, plan: "Plan") -> str:
    """A floor without a measured time beside it would spoil the efficiency."""
    if "duration_s" in plan.launches.full:
        return floor
    return f"CASE WHEN duration_s IS NOT NULL THEN {floor} END"


def _time(duration: str, options: AnalysisOptions) -> str:
    """Sum of durations, by either rule; the paper's needs the clock of every launch."""
    if options.time_rule == "launch":
        return f"sum({duration})"
    return (
        "CASE WHEN count(sm_clock_hz) = count(*) "
        f"THEN sum(({duration}) * sm_clock_hz) / avg(sm_clock_hz) ELSE sum({duration}) END"
    )
