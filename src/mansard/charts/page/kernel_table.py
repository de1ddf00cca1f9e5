"""The kernels of the page, and what they did in each of their phases and ranks, as columns."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from mansard.charts.json_report import report_dict
from mansard.charts.page.compact import flat, table
from mansard.charts.page.detail import KernelPart
from mansard.charts.page.digits import following, shortened
from mansard.charts.plain import text
from mansard.model.analysis import Analysis, Kernel

#: Rows of kernels by phase and rank.
MOST_PARTS = 20_000

#: Values of the report that the page works out itself, or is given beside the table.
_LEFT_OUT = (
    "name",
    "short_name",
    "flop_per_s",
    "intensity",
    "efficiency",
    "recoverable_s",
)

Places = Mapping[str | None, int]


def kernel_table(
    kernels: Sequence[Kernel],
    more: Sequence[Mapping[str, Any]],
    *,
    analysis: Analysis,
    rate: Mapping[str, float] | None,
) -> dict[str, Any]:
    """Return kernels with further values as columns; without ``rate`` every digit is kept."""
    if rate is not None:
        kernels = [shortened(kernel, analysis, rate) for kernel in kernels]
    only = dataclasses.replace(
        analysis,
        kernels=tuple(kernels),
        totals=dataclasses.replace(analysis.totals, duration_s=None),  # so no advice is sought
        phases=(),
        families=(),
        ranks=(),
        provenance=(),
        machine=None,
        notices=(),
    )
    rows = []
    for entry, kernel, added in zip(report_dict(only)["kernels"], kernels, more, strict=True):
        row = {key: value for key, value in entry.items() if key not in _LEFT_OUT}
        row["partial_levels"] = " ".join(kernel.partial_levels)
        row["near_zero_flop_launches"] = kernel.near_zero_flop_launches
        row["short_launches"] = kernel.short_launches
        rows.append({**row, **added})
    if rate is None or not rows:
        return table(rows)
    measured = [
        name
        for name in flat(rows[0])
        if name.endswith("_s") or name.startswith(("flop", "bytes.", "floors_s."))
    ]
    nothing = dict.fromkeys(name for name in measured if name != "flop_complete")
    return table(rows, [nothing | following(kernel, rate) for kernel in kernels])


def homes(parts: Sequence[KernelPart], places: Places, analysis: Analysis) -> list[dict[str, Any]]:
    """Return per kernel the phase and the rank that all of its launches belong to, if one does."""
    found: list[dict[str, Any]] = [
        {"phase": None, "rank": None, "only": ""} for _ in analysis.kernels
    ]
    for part in parts:
        if part.by != "phaserank" and _is_whole(part, places, analysis):
            row = found[places[part.kernel.key]]
            row[part.by] = text(part.phase) if part.by == "phase" else part.rank
            row["only"] += part.by
    return found


def divided(
    parts: Sequence[KernelPart], places: Places, analysis: Analysis
) -> tuple[list[Kernel], list[dict[str, Any]]]:
    """Return what kernels did in one of their phases or ranks, as far as there is room."""
    alone = {(part.kernel.key, part.by) for part in parts if _is_whole(part, places, analysis)}
    # A kernel of one phase is the same on a rank with the phase and without it.
    kept = [
        part
        for part in parts
        if part.kernel.key in places
        and not {(part.kernel.key, by) for by in ("phase", "rank") if by in part.by} & alone
    ]
    for most in (("phase", "rank", "phaserank"), ("phase", "rank"), ("phase",), ()):
        kept = [part for part in kept if part.by in most]
        if len(kept) <= MOST_PARTS:
            break
    more = [
        {
            "kernel": places[part.kernel.key],
            "by": part.by,
            "phase": text(part.phase),
            "rank": part.rank,
        }
        for part in kept
    ]
    return [part.kernel for part in kept], more


def _is_whole(part: KernelPart, places: Places, analysis: Analysis) -> bool:
    place = places.get(part.kernel.key)
    return place is not None and part.kernel.launches == analysis.kernels[place].launches
