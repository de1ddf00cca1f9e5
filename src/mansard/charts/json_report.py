"""The report as JSON: a contract with a version, whole numbers exact, unknown is ``null``.

What each key means stands in docs/json-report.md; its form in report.schema.json.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from mansard.analysis.advice import advise
from mansard.charts.labels import unknown_paths
from mansard.charts.plain import number, plain, text
from mansard.charts.ranks_view import fleet_dict
from mansard.model.analysis import REPORT_FORMAT, Analysis, Group, Kernel
from mansard.model.machine import Machine
from mansard.model.provenance import Provenance

#: Levels that every group shows, known or not.
_LEVELS = ("shared", "l1", "l2", "dram", "link")

#: What ``run`` shows of the origin, where all files agree.
_ORIGIN_KEYS = (
    "collector",
    "collector_version",
    "driver_version",
    "cuda_version",
    "clock_control",
    "cache_control",
    "replay",
    "counter_table",
    "join",
    "created",
    "mansard_version",
)


def report_dict(analysis: Analysis) -> dict[str, Any]:
    """Return the report as plain values that JSON can hold (never NaN or infinity).

    Seconds, bytes, FLOP, FLOP/s and FLOP/byte; ``None`` is unknown, 0 is zero. Further keys may
    be added under the same version; none is renamed or removed.
    """
    return {
        "schema": REPORT_FORMAT,
        "run": _run(analysis),
        "machine": None if analysis.machine is None else _machine(analysis.machine),
        "totals": _group(analysis.totals),
        "phases": [{"phase": text(group.key), **_group(group)} for group in analysis.phases],
        "families": [{"family": text(group.key), **_group(group)} for group in analysis.families],
        "ranks": [{"rank": text(group.key), **_group(group)} for group in analysis.ranks],
        "kernels": [_kernel(kernel) for kernel in analysis.kernels],
        "modules": [{"module": text(group.key), **_group(group)} for group in analysis.modules],
        "layers": [{"layer": text(group.key), **_group(group)} for group in analysis.layers],
        "operators": [
            {"operator": text(group.key), **_group(group)} for group in analysis.operators
        ],
        "advice": _advice(analysis),
        "fleet": fleet_dict(analysis.fleet),
        "warnings": _warnings(analysis),
    }


def report_json(analysis: Analysis) -> str:
    """Return the report as JSON text, indented, ASCII only, with a final line end."""
    return json.dumps(report_dict(analysis), indent=2, allow_nan=False) + "\n"


def _run(analysis: Analysis) -> dict[str, Any]:
    origins = analysis.provenance
    devices = [device for origin in origins for device in origin.devices]
    lost = [origin.lost_launches for origin in origins]
    return {
        "label": text(analysis.label),
        "gpus": [text(name) for name in dict.fromkeys(device.name for device in devices) if name],
        **{key: text(_agreed(origins, key)) for key in _ORIGIN_KEYS},
        "lost_launches": sum(n for n in lost if n is not None) if None not in lost else None,
        "files": [_file(origin) for origin in origins],
        "definitions": {
            text(column): plain(msgspec.to_builtins(definition))
            for origin in origins
            for column, definition in origin.definitions.items()
        },
        "missing": {
            text(column): sorted({text(name) for name in counters if name})
            for origin in origins
            for column, counters in origin.missing.items()
        },
        "options": plain(analysis.options),
    }


def _agreed(origins: tuple[Provenance, ...], key: str) -> str | None:
    values = {getattr(origin, key) or None for origin in origins}
    return values.pop() if len(values) == 1 else None


def _file(origin: Provenance) -> dict[str, Any]:
    return {
        "sources": [text(source) for source in origin.sources],
        "devices": [plain(msgspec.to_builtins(device)) for device in origin.devices],
        **{key: text(getattr(origin, key) or None) for key in _ORIGIN_KEYS},
        "lost_launches": origin.lost_launches,
        "extra": plain(origin.extra),
    }


def _machine(machine: Machine) -> dict[str, Any]:
    ceilings = []
    for ceiling in machine.ceilings:
        # Raw samples and evidence stay in the machine file, which the name points to.
        fields = msgspec.structs.asdict(ceiling)
        ceilings.append(
            {key: plain(fields[key]) for key in fields if key not in ("samples", "evidence")}
        )
    return {
        "name": text(machine.name),
        "basis": machine.basis,
        "partial": machine.partial,
        "device": plain(msgspec.to_builtins(machine.device)),
        "caveats": [text(caveat) for caveat in machine.caveats],
        "ceilings": ceilings,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "launches": group.launches,
        "kernels": group.kernels,
        **_measures(group),
        "zero_flop_launches": number(group.zero_flop_launches),
        "zero_flop_duration_s": number(group.zero_flop_duration_s),
        "near_zero_flop_launches": number(group.near_zero_flop_launches),
        "near_zero_flop_duration_s": number(group.near_zero_flop_duration_s),
        "short_launches": number(group.short_launches),
        **{
            f"bytes_{level}": number(group.bytes_by_level.get(level))
            for level in _levels(group.bytes_by_level)
        },
        **_floors(group),
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": text(kernel.key),
        "short_name": text(kernel.short_name),
        "family": text(kernel.family),
        "launches": kernel.launches,
        "shapes": kernel.shapes,
        "tiny": kernel.tiny,
        **_measures(kernel),
        "duration_min_s": number(kernel.duration_min_s),
        "duration_max_s": number(kernel.duration_max_s),
        "zero_flop_launches": number(kernel.zero_flop_launches),
        "zero_flop_duration_s": number(kernel.zero_flop_duration_s),
        "bytes": {
            level: number(kernel.bytes_by_level.get(level))
            for level in _levels(kernel.bytes_by_level)
        },
        **_floors(kernel),
    }


def _measures(group: Group) -> dict[str, Any]:
    return {
        "duration_s": number(group.duration_s),
        "flop": number(group.flop),
        "flop_complete": group.flop_complete,
        "flop_by_path": _numbers(group.flop_by_path),
        "op_int": number(group.op_int),
        "flop_per_s": number(group.flop_per_s),
        "intensity": {
            level: number(group.intensity.get(level)) for level in _levels(group.bytes_by_level)
        },
    }


def _floors(group: Group) -> dict[str, Any]:
    return {
        "floors_s": _numbers(group.floors_s),
        "floor_s": number(group.floor_s),
        "bound": text(group.bound),
        "efficiency": number(group.efficiency),
        "recoverable_s": number(group.recoverable_s),
        "launches_above_roof": group.launches_above_roof,
        "untimed_launches": group.untimed_launches,
        "partial_levels": list(group.partial_levels),
    }


def _advice(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "rule": advice.rule,
            "sentence": text(advice.sentence),
            "recoverable_s": number(advice.recoverable_s),
            "kernels": [text(key) for key in advice.kernels],
            "evidence": plain(advice.evidence),
            "also": [
                {
                    "rule": fault.rule,
                    "kernels": [text(key) for key in fault.kernels],
                    "recoverable_s": number(fault.recoverable_s),
                }
                for fault in advice.also
            ],
        }
        for advice in advise(analysis)
    ]


def _warnings(analysis: Analysis) -> list[dict[str, Any]]:
    warnings: list[dict[str, Any]] = [
        {
            "code": text(notice.code),
            "message": text(notice.message),
            "partial": notice.partial,
        }
        for notice in analysis.notices
    ]
    said = " ".join(warning["message"] for warning in warnings)
    silent = {
        path: counters for path, counters in unknown_paths(analysis).items() if path not in said
    }
    if silent and not analysis.totals.flop_complete:
        names = "; ".join(
            f"{path} (needs {', '.join(counters)})" if counters else path
            for path, counters in silent.items()
        )
        warnings.append(
            {
                "code": "flop-incomplete",
                "message": f"not collected: {names}. `flop` is the sum of the other paths.",
                "partial": False,
            }
        )
    return warnings


def _levels(present: Mapping[str, float | None]) -> list[str]:
    return [*_LEVELS, *(level for level in present if level not in _LEVELS)]


def _numbers(values: Mapping[str, float | None]) -> dict[str, int | float | None]:
    return {str(text(key)): number(value) for key, value in values.items()}
