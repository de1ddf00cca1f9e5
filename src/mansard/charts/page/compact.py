"""Tables as columns: the same numbers in a fraction of the room, so that 20,000 kernels fit.

A table is ``{"rows": n, "same": {...}, "words": {...}, "columns": {...}}``: columns of one value
are written once, columns of text as numbers into a list of the different words, and nested
values under ``outer.inner``. ``script/data.js`` is the other half.
"""

import base64
import dataclasses
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mansard.charts.columns import intensity_text
from mansard.charts.rows import share
from mansard.model.analysis import Analysis, Kernel
from mansard.units import format_share, format_si

#: Significant digits where not all are kept.
DIGITS = 6

#: Characters of JSON up to which the page holds it readable; more is compressed.
_READABLE = 400_000


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Turn rows with the same keys into columns."""
    same: dict[str, Any] = {}
    words: dict[str, list[Any]] = {}
    columns: dict[str, list[Any]] = {}
    flat = [dict(_flat(row)) for row in rows]
    for name in flat[0] if flat else ():
        values = [row[name] for row in flat]
        different = dict.fromkeys((type(value), value) for value in values)
        if len(different) == 1:
            same[name] = values[0]
        elif any(isinstance(value, str) for value in values):
            known = {value: place for place, (_, value) in enumerate(different)}
            words[name] = list(known)
            columns[name] = [known[value] for value in values]
        else:
            columns[name] = values
    return {"rows": len(flat), "same": same, "words": words, "columns": columns}


def _flat(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            for inner, item in value.items():
                yield f"{key}.{inner}", item
        else:
            yield key, value


def shortened(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel with its numbers cut to DIGITS, if all that a report shows stays the same.

    Otherwise the kernel comes back as it was, every digit kept.
    """
    cut = _with_numbers(kernel, _cut)
    return cut if _shown(cut, analysis) == _shown(kernel, analysis) else kernel


def _cut(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _with_numbers(kernel: Kernel, change: Callable[[float | None], float | None]) -> Kernel:
    single = ("duration_s", "flop", "op_int", "floor_s", "duration_min_s", "duration_max_s")
    changed: dict[str, Any] = {name: change(getattr(kernel, name)) for name in single}
    for name in ("flop_by_path", "bytes_by_level", "floors_s"):
        changed[name] = {key: change(value) for key, value in getattr(kernel, name).items()}
    if kernel.zero_flop_duration_s == kernel.duration_s:
        changed["zero_flop_duration_s"] = changed["duration_s"]
    else:
        changed["zero_flop_duration_s"] = change(kernel.zero_flop_duration_s)
    return dataclasses.replace(kernel, **changed)


def _shown(kernel: Kernel, analysis: Analysis) -> list[str]:
    """Return every figure of a kernel as the terminal, the tables and the page write it."""
    sizes = [
        kernel.duration_s,
        kernel.duration_min_s,
        kernel.duration_max_s,
        kernel.flop,
        kernel.op_int,
        kernel.flop_per_s,
        kernel.floor_s,
        kernel.recoverable_s,
        *kernel.flop_by_path.values(),
        *kernel.bytes_by_level.values(),
        *kernel.floors_s.values(),
    ]
    return [
        *(format_si(size) for size in sizes),
        *(intensity_text(value) for value in kernel.intensity.values()),
        format_share(share(kernel, analysis)),
        format_share(kernel.efficiency),
    ]


def embedded(value: Any) -> tuple[str, str]:
    """Return JSON for a script element as (encoding, text); the text is ASCII without ``<``.

    ``json`` is readable; ``deflate`` is its zlib stream in base64.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    if len(text) > _READABLE:
        return "deflate", base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return "json", text
