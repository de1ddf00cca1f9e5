"""What the page holds as data: the JSON report, its kernels as columns, axes, roofs, notes.

The numbers are those of the JSON report. What follows from them in one division (rates,
intensities, efficiencies) is left out, and worked out in the browser as the model does it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mansard.charts.json_report import report_dict
from mansard.charts.labels import (
    ABOVE_ROOF,
    ABOVE_ROOF_CAUSES,
    RESOURCES,
    level_names,
    resource_label,
)
from mansard.charts.page.compact import DIGITS, shortened, table
from mansard.charts.page.detail import Detail, Part
from mansard.charts.plain import number, text
from mansard.charts.scene import RooflineScene, marker_area, roofline_scene
from mansard.charts.time_scene import time_scene
from mansard.model.analysis import Analysis, Kernel

#: Version of what stands in the page, for who reads it with a script.
#: 1: first.
PAGE_FORMAT = "mansard-page/1"

#: Kernels that stand in the page one by one; the shorter ones become one row.
MOST_KERNELS = 20_000

#: Kernels up to which every digit is kept.
MOST_EXACT = 2_000

#: Rows of kernels by phase and rank.
MOST_PARTS = 20_000

#: Kernels with a histogram of their launches, and with the operators that launch them.
MOST_SPREADS = 2_000

#: Key of the row of all other kernels.
OTHERS = "(other kernels)"

#: Values of the report that the page works out itself.
_DERIVED = ("flop_per_s", "intensity", "efficiency", "recoverable_s")


def page_data(analysis: Analysis, detail: Detail) -> dict[str, Any]:
    """Return all that the page shows, as plain values.

    Args:
        analysis: what to show.
        detail: what the run's launches say beyond it.
    """
    shown = bounded(analysis)
    exact = len(shown.kernels) <= MOST_EXACT
    report = report_dict(shown if exact else _short(shown))
    kernels = report.pop("kernels")
    # The sums are of all launches, whatever the page leaves out.
    report["warnings"] += _left_out(analysis, shown, exact=exact)
    scene, times = roofline_scene(shown), time_scene(shown)
    places = {kernel.key: place for place, kernel in enumerate(shown.kernels)}
    return {
        "format": PAGE_FORMAT,
        "report": report,
        "kernels": table(_rows(kernels, shown.kernels)),
        "others": shown is not analysis,
        **_parts(detail.parts, places, shown, exact=exact),
        "spreads": {
            places[key]: [list(bar) for bar in bars]
            for key, bars in detail.spreads.items()
            if places.get(key, MOST_SPREADS) < MOST_SPREADS
        },
        "callers": {
            places[key]: [dataclasses.astuple(caller) for caller in callers]
            for key, callers in detail.callers.items()
            if places.get(key, MOST_SPREADS) < MOST_SPREADS
        },
        "timeline": None if detail.timeline is None else detail.timeline.columns(places),
        "levels": level_names([shown.totals, *shown.kernels]),
        "resources": {name: resource_label(name) for name in RESOURCES},
        "roofline": _roofline(scene),
        "time": {
            "frame": dataclasses.astuple(times.frame),
            "level": times.level,
            "bandwidth": number(times.bandwidth),
            "iso_times": times.iso_times,
            "launch_s": number(times.launch_s),
            "notes": times.notes,
        },
        "area": {"all": marker_area(1.0), "least": marker_area(0.0)},
        "above_roof": {"limit": ABOVE_ROOF, "causes": ABOVE_ROOF_CAUSES},
    }


def bounded(analysis: Analysis) -> Analysis:
    """Return the analysis with at most MOST_KERNELS kernels, the last of them all the others."""
    rest = analysis.kernels[MOST_KERNELS - 1 :]
    if len(rest) < 2:
        return analysis
    return dataclasses.replace(
        analysis, kernels=(*analysis.kernels[: MOST_KERNELS - 1], _together(rest))
    )


def _together(kernels: Sequence[Kernel]) -> Kernel:
    floors = {
        name: _total(kernel.floors_s.get(name) for kernel in kernels)
        for name in dict.fromkeys(name for kernel in kernels for name in kernel.floors_s)
    }
    undecided = any((kernel.bound or "unknown").startswith("unknown") for kernel in kernels)
    largest = max((name for name in floors if floors[name]), key=lambda n: floors[n] or 0.0)
    sums = {
        name: _total(getattr(kernel, name) for kernel in kernels)
        for name in (
            "duration_s",
            "flop",
            "op_int",
            "zero_flop_launches",
            "zero_flop_duration_s",
            "near_zero_flop_launches",
            "near_zero_flop_duration_s",
            "short_launches",
            "floor_s",
        )
    }
    return Kernel(
        **sums,  # type: ignore[arg-type]
        key=OTHERS,
        short_name=f"{len(kernels)} other kernels",
        family="other",
        launches=sum(kernel.launches for kernel in kernels),
        kernels=len(kernels),
        flop_complete=all(kernel.flop_complete for kernel in kernels),
        flop_by_path={
            path: _total(kernel.flop_by_path.get(path) for kernel in kernels)
            for path in kernels[0].flop_by_path
        },
        bytes_by_level={
            level: _total(kernel.bytes_by_level.get(level) for kernel in kernels)
            for level in kernels[0].bytes_by_level
        },
        floors_s=floors,
        bound=f"unknown among {largest}" if undecided else largest,
        launches_above_roof=sum(kernel.launches_above_roof for kernel in kernels),
        untimed_launches=sum(kernel.untimed_launches for kernel in kernels),
        partial_levels=tuple(
            level
            for level in kernels[0].bytes_by_level
            if any(
                level in kernel.partial_levels or kernel.bytes_by_level.get(level) is None
                for kernel in kernels
            )
        ),
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _short(analysis: Analysis) -> Analysis:
    return dataclasses.replace(
        analysis, kernels=tuple(shortened(kernel, analysis) for kernel in analysis.kernels)
    )


def _rows(entries: Sequence[dict[str, Any]], kernels: Sequence[Kernel]) -> list[dict[str, Any]]:
    """Return the kernels of the report without what follows from the rest, and with counts."""
    rows = []
    for entry, kernel in zip(entries, kernels, strict=True):
        kept = {key: value for key, value in entry.items() if key not in _DERIVED}
        kept["partial_levels"] = " ".join(kernel.partial_levels)
        kept["near_zero_flop_launches"] = kernel.near_zero_flop_launches
        kept["short_launches"] = kernel.short_launches
        rows.append(kept)
    return rows


def _parts(
    parts: Sequence[Part], places: Mapping[str | None, int], analysis: Analysis, *, exact: bool
) -> dict[str, Any]:
    """Return kernels by phase and rank: ``wholes`` have all launches of one, ``parts`` do not."""
    kept = tuple(part for part in parts if part.kernel.key in places)
    for most in (("phase", "rank", "phaserank"), ("phase", "rank"), ("phase",), ()):
        kept = tuple(part for part in kept if part.by in most)
        divided = [part for part in kept if not _is_whole(part, places, analysis)]
        if len(divided) <= MOST_PARTS:
            break
    members = [part.kernel for part in divided]
    if not exact:
        members = [shortened(kernel, analysis) for kernel in members]
    only = dataclasses.replace(
        analysis, kernels=tuple(members), phases=(), ranks=(), families=(), provenance=()
    )
    rows = _rows(report_dict(only)["kernels"], members)
    for row, part in zip(rows, divided, strict=True):
        # These are those of the kernel at this place.
        for name in ("name", "short_name", "family", "shapes"):
            del row[name]
        row |= _place(part, places)
    wholes = [_place(part, places) for part in kept if _is_whole(part, places, analysis)]
    return {"parts": table(rows), "wholes": table(wholes)}


def _is_whole(part: Part, places: Mapping[str | None, int], analysis: Analysis) -> bool:
    return part.kernel.launches == analysis.kernels[places[part.kernel.key]].launches


def _place(part: Part, places: Mapping[str | None, int]) -> dict[str, Any]:
    return {
        "kernel": places[part.kernel.key],
        "by": part.by,
        "phase": text(part.phase),
        "rank": part.rank,
    }


def _roofline(scene: RooflineScene) -> dict[str, Any]:
    return {
        "frame": dataclasses.astuple(scene.frame),
        "roofs": [dataclasses.asdict(roof) for roof in scene.roofs],
        "notes": scene.notes,
    }


def _left_out(analysis: Analysis, shown: Analysis, *, exact: bool) -> list[dict[str, Any]]:
    found = []
    if shown is not analysis:
        found.append(
            (
                "page-others",
                f"this run has {len(analysis.kernels)} kernels; the page shows the"
                f" {MOST_KERNELS - 1} longest and the others as one row; the JSON report has all",
            )
        )
    if not exact:
        found.append(
            (
                "page-digits",
                f"the page keeps {DIGITS} digits of a number of this large run wherever that"
                " changes no figure shown; the JSON report has every digit",
            )
        )
    return [{"code": code, "message": message, "partial": False} for code, message in found]
