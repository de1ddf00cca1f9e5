"""The report as CSV (RFC 4180): units in the header names, empty cells for unknown.

Two tables: the groups with their points, and the roofs. Together they redraw the chart.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from mansard.charts.labels import level_names
from mansard.charts.plain import number, text
from mansard.charts.rows import groups_of, share
from mansard.charts.scene import roofline_scene
from mansard.model.analysis import Analysis, Kernel
from mansard.model.paths import PATHS

#: A cell that starts like this is a formula to a spreadsheet; some also take the wide forms.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Terminal escapes and marks that turn the direction of text; a line end in quotes is legal.
_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: Letters of a cell: spreadsheets take 32,767. Names differ at both ends.
_MOST_LETTERS, _HEAD, _TAIL = 30_000, 20_000, 9_000

Cell = str | int | float | None


def kernels_csv(analysis: Analysis, by: str = "kernel") -> str:
    """Return one row per kernel (or family, phase, rank): work, traffic, floors, bound.

    The columns ``intensity_*_flop_per_byte`` and ``flop_per_s`` are the points of the chart;
    ``number`` is the number that the pictures give to a kernel.

    Raises:
        UsageError: ``by`` is not one of ROWS.
    """
    return _table(*group_table(analysis, by))


def group_table(analysis: Analysis, by: str = "kernel") -> tuple[list[str], list[list[Cell]]]:
    """Return the header and the rows of ``kernels_csv`` as values, None for unknown.

    Raises:
        UsageError: ``by`` is not one of ROWS.
    """
    groups = groups_of(analysis, by)
    levels = level_names([analysis.totals, *groups])
    paths = list(dict.fromkeys(path for group in groups for path in group.flop_by_path))
    resources = list(dict.fromkeys(name for group in groups for name in group.floors_s))
    kernel_columns = ("short_name", "family", "shapes") if by == "kernel" else ()
    header = [
        "number",
        "name" if by == "kernel" else by,
        *kernel_columns,
        "launches",
        "kernels",
        "duration_s",
        "share_of_time",
        "flop",
        "flop_complete",
        *(path_column(path) for path in paths),
        "op_int",
        *(f"bytes_{level}" for level in levels),
        *(f"intensity_{level}_flop_per_byte" for level in levels),
        "flop_per_s",
        "zero_flop_launches",
        "zero_flop_duration_s",
        *(f"floor_{resource}_s" for resource in resources),
        "floor_s",
        "bound",
        "efficiency",
        "recoverable_s",
        "launches_above_roof",
        "untimed_launches",
    ]
    rows: list[list[Cell]] = []
    for place, group in enumerate(groups, start=1):
        extra = (group.short_name, group.family, group.shapes) if isinstance(group, Kernel) else ()
        rows.append(
            [
                place,
                group.key,
                *extra,
                group.launches,
                group.kernels,
                group.duration_s,
                share(group, analysis),
                group.flop,
                "yes" if group.flop_complete else "no",
                *(group.flop_by_path.get(path) for path in paths),
                group.op_int,
                *(group.bytes_by_level.get(level) for level in levels),
                *(group.intensity.get(level) for level in levels),
                group.flop_per_s,
                group.zero_flop_launches,
                group.zero_flop_duration_s,
                *(group.floors_s.get(resource) for resource in resources),
                group.floor_s,
                group.bound,
                group.efficiency,
                group.recoverable_s,
                group.launches_above_roof,
                group.untimed_launches,
            ]
        )
    return header, rows


def roofs_csv(analysis: Analysis) -> str:
    """Return one row per roof of the chart: its limit and its two ends in chart coordinates.

    Empty but for the header without a machine.
    """
    header = [
        "kind",
        "name",
        "flop_per_s",
        "byte_per_s",
        "status",
        "start_flop_per_byte",
        "start_flop_per_s",
        "end_flop_per_byte",
        "end_flop_per_s",
    ]
    rows = [
        [
            roof.kind,
            roof.name,
            roof.value if roof.kind == "compute" else None,
            roof.value if roof.kind == "bandwidth" else None,
            roof.status,
            *roof.start,
            *roof.end,
        ]
        for roof in roofline_scene(analysis).roofs
    ]
    return _table(header, rows)


def path_column(path: str) -> str:
    """Return the header of a compute path, e.g. ``flop_tensor_bf16``."""
    for known in PATHS:
        if known.name == path:
            return known.column
    return "flop_" + path.replace(" ", "_")


def _table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _bounded(name: str) -> str:
    left_out = len(name) - _HEAD - _TAIL
    if len(name) <= _MOST_LETTERS:
        return name
    said = f" [... {left_out} letters left out here; the JSON report has them all ...] "
    return f"{name[:_HEAD]}{said}{name[-_TAIL:]}"


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        written = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text(_bounded(value)) or "")
        return f"'{written}" if written.startswith(_FORMULA_STARTS) else written
    value = number(value)
    return "" if value is None else repr(value)
