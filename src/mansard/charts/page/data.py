"""What the page holds as data: the JSON report, its kernels as columns, axes, roofs, notes.

The numbers are those of the JSON report. What follows from them in one division (rates,
intensities, efficiencies) is left out, and worked out in the browser as the model does it.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mansard.charts.floors_scene import LAUNCHES_DIFFER
from mansard.charts.json_report import report_dict
from mansard.charts.labels import (
    ABOVE_ROOF,
    ABOVE_ROOF_CAUSES,
    RESOURCES,
    intensity_names,
    level_names,
    resource_label,
)
from mansard.charts.page.compact import PACKED_DIGITS
from mansard.charts.page.detail import Detail
from mansard.charts.page.digits import rates
from mansard.charts.page.kernel_table import divided, homes, kernel_table
from mansard.charts.page.others import MOST_KERNELS, bounded
from mansard.charts.plain import number, plain, text
from mansard.charts.rows import INTEGER_MARK, INTEGER_NOTE
from mansard.charts.scene import RooflineScene, marker_area, roofline_scene
from mansard.charts.time_scene import time_scene
from mansard.model.advice import Advice
from mansard.model.analysis import Analysis

#: Version of what stands in the page, for who reads it with a script.
#: 1: first.
PAGE_FORMAT = "mansard-page/1"

#: Kernels up to which every digit is kept.
MOST_EXACT = 2_000

#: Kernels with a histogram of their launches, and with the operators that launch them.
MOST_SPREADS = 2_000


def page_data(analysis: Analysis, detail: Detail, given: Sequence[Advice]) -> dict[str, Any]:
    """Return all that the page shows, as plain values.

    Args:
        analysis: what to show.
        detail: what the run's launches say beyond it.
        given: the advice on it.
    """
    shown = bounded(analysis)
    rate = rates(analysis.machine) if len(shown.kernels) > MOST_EXACT else None
    places = {kernel.key: place for place, kernel in enumerate(shown.kernels)}
    report = report_dict(dataclasses.replace(analysis, kernels=()))
    del report["kernels"]
    report["advice"] = [_advice(advice, places) for advice in given]
    # The sums are of all launches, whatever the page leaves out.
    report["warnings"] += _left_out(analysis, shown, exact=rate is None)
    scene, times = roofline_scene(shown), time_scene(shown)
    return {
        "format": PAGE_FORMAT,
        "report": report,
        # A name and its short form side by side, since they have much in common.
        "names": [
            text(name) for kernel in shown.kernels for name in (kernel.key, kernel.short_name)
        ],
        "kernels": kernel_table(
            shown.kernels, homes(detail.parts, places, shown), analysis=shown, rate=rate
        ),
        "rates": rates(analysis.machine),
        "others": shown is not analysis,
        "parts": kernel_table(*divided(detail.parts, places, shown), analysis=shown, rate=rate),
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
        "strip": None if detail.strip is None else detail.strip.columns(places),
        "levels": intensity_names([shown.totals, *shown.kernels], shown.kernels),
        "byte_levels": level_names([shown.totals, *shown.kernels]),
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
        "integer": {"mark": INTEGER_MARK, "note": INTEGER_NOTE},
        "launches_differ": LAUNCHES_DIFFER,
        "above_roof": {"limit": ABOVE_ROOF, "causes": ABOVE_ROOF_CAUSES},
    }


def _advice(advice: Advice, places: Mapping[str | None, int]) -> dict[str, Any]:
    """Return advice as the report has it, its kernels as steps from place to place."""

    def steps(keys: Sequence[str]) -> list[int]:
        there = [places.get(key, len(places) - 1) for key in keys]
        return [place - before for before, place in itertools.pairwise([0, *there])]

    return {
        "rule": advice.rule,
        "sentence": text(advice.sentence),
        "recoverable_s": number(advice.recoverable_s),
        "kernels": steps(advice.kernels),
        "evidence": plain(advice.evidence),
        "also": [
            {
                "rule": fault.rule,
                "kernels": steps(fault.kernels),
                "recoverable_s": number(fault.recoverable_s),
            }
            for fault in advice.also
        ],
    }


def _roofline(scene: RooflineScene) -> dict[str, Any]:
    return {
        "frame": dataclasses.astuple(scene.frame),
        "roofs": [dataclasses.asdict(roof) for roof in scene.roofs],
        "notes": scene.notes,
    }


def _left_out(analysis: Analysis, shown: Analysis, *, exact: bool) -> list[dict[str, Any]]:
    found = {}
    if shown is not analysis:
        found["page-others"] = (
            f"this run has {len(analysis.kernels)} kernels; the page shows the {MOST_KERNELS - 1}"
            " longest and the others as one row; the JSON report has all"
        )
    if not exact:
        found["page-digits"] = (
            f"the page cuts numbers of this large run to {PACKED_DIGITS} or a few more digits,"
            " where that changes no figure shown; the JSON report has every digit"
        )
    return [{"code": code, "message": message, "partial": False} for code, message in found.items()]
