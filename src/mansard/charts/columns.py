"""Rows of a table of groups as lines of text: one line each where the width allows, else two."""

import dataclasses
from collections.abc import Callable, Sequence

from mansard.charts.labels import (
    above_roof,
    bound_label,
    efficiency_label,
    intensity_names,
    key_label,
    known,
    main_path,
    printable,
    resource_label,
)
from mansard.charts.rows import intensity, only_integer, rate_text, share
from mansard.model.analysis import Analysis, Group, Kernel
from mansard.units import format_share, format_si

#: Width from which the path with the most operations is shown.
_WIDTH_FOR_PATH = 78

#: Least letters of a name before a row takes two lines.
_LEAST_NAME = 34


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: its header, its width in letters, and how a cell is written."""

    header: str
    width: int
    cell: Callable[[Group], str]


def group_lines(
    groups: Sequence[Group], analysis: Analysis, width: int
) -> tuple[list[str], list[str]]:
    """Return the header lines and the body lines of a table, none wider than ``width``.

    In a narrow table the name, launches and time stand on the first line of a row, rates,
    intensities and bound on the second.
    """
    first = [
        Column("launches", 8, lambda group: str(group.launches)),
        Column("time", 7, lambda group: format_si(known(group.duration_s), "s")),
        Column("share", 7, lambda group: format_share(share(group, analysis))),
    ]
    second = [
        _rate(groups),
        *(
            _intensity(level)
            for level in intensity_names([analysis.totals, *groups], analysis.kernels)
        ),
        Column("bound", 6, bound_label),
        Column("eff.", 7, efficiency_label),
        Column("recov.", 7, _recoverable),
    ]
    if width >= _WIDTH_FOR_PATH:
        first.insert(0, Column("main path", 11, _main_path))
    place = len(str(len(groups)))
    one_line = place + 2 + _LEAST_NAME + _width([*first, *second], 2)
    if one_line <= width:
        columns = [*first, *second]
        name = width - place - 2 - _width(columns, 2)
        header = [" " * (place + 2) + " " * name + _cells(columns, None, 2)]
        body = [
            f"{number:>{place}}  {_name(group, name)}{_cells(columns, group, 2)}"
            for number, group in enumerate(groups, start=1)
        ]
        return [line.rstrip() for line in header], [line.rstrip() for line in body]
    name = max(8, width - place - 1 - _width(first, 1))
    gap = 2 if place + 1 + _width(second, 2) <= width else 1
    indent = " " * max(0, min(width, place + 1 + name + _width(first, 1)) - _width(second, gap))
    header = [
        " " * (place + 1 + name) + _cells(first, None, 1),
        indent + _cells(second, None, gap),
    ]
    body = []
    for number, group in enumerate(groups, start=1):
        body.append(f"{number:>{place}} {_name(group, name)}{_cells(first, group, 1)}")
        body.append(indent + _cells(second, group, gap))
    return header, body


def intensity_text(value: float | None) -> str:
    """Return FLOP/byte in at most six letters; ``-`` when unknown or without FLOP."""
    value = known(value)
    if value is None:
        return "-"
    if value == 0 or 0.01 <= value < 999.5:
        return f"{value:.3g}"
    if 0.001 <= value < 0.01:
        return f"{value:.2g}"
    if 999.5 <= value < 99999.5:
        return f"{value:.0f}"
    return f"{value:.0e}"


def _intensity(level: str) -> Column:
    return Column(
        resource_label(level)[:6],
        6,
        lambda group: intensity_text(intensity(group, level)),
    )


def _rate(groups: Sequence[Group]) -> Column:
    if not any(map(only_integer, groups)):
        return Column("FLOP/s", 6, rate_text)
    # The mark has a place of its own, so that the digits stay below each other.
    return Column(
        "FLOP/s", 7, lambda group: rate_text(group) + ("" if only_integer(group) else " ")
    )


def _recoverable(group: Group) -> str:
    # Above its roof nothing is known to be recoverable: the floor itself is in doubt.
    return "-" if above_roof(group) else format_si(known(group.recoverable_s), "s")


def _main_path(group: Group) -> str:
    path = main_path(group)
    return "-" if path is None else printable(path, 11)


def _name(group: Group, width: int) -> str:
    if isinstance(group, Kernel):
        return f"{printable(group.short_name or group.key, width):<{width}}"
    return f"{key_label(group, width):<{width}}"


def _width(columns: Sequence[Column], gap: int) -> int:
    return sum(column.width + gap for column in columns)


def _cells(columns: Sequence[Column], group: Group | None, gap: int) -> str:
    return "".join(
        " " * gap + f"{column.header if group is None else column.cell(group):>{column.width}}"
        for column in columns
    )
