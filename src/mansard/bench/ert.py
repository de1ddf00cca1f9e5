"""Machines of the Empirical Roofline Tool: its ``roofline.json``, as ceilings.

The file holds pairs of a name and a number: ``empirical.gflops.data`` in GFLOP/s and
``empirical.gbytes.data`` in GB/s (decimal both). Levels it only found by the size of the working
set, and its DRAM is the level beyond the last cache that it saw.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from mansard.errors import MachineError
from mansard.model.machine import Ceiling, Machine
from mansard.units import unit_factor

_GIGA = unit_factor("ghz")[0]
_MOST_BYTES = 16 * 1024**2
_MOST_ENTRIES = 1000
_SOURCE = "Empirical Roofline Tool, roofline.json"
_CAVEAT = (
    "Imported from the Empirical Roofline Tool: no samples, clock or power are known; levels were "
    "told apart by the size of the working set; a bandwidth counts bytes read and written."
)
_PRECISIONS = {"FP64": "vector fp64", "FP32": "vector fp32", "FP16": "vector fp16"}


def is_ert(path: Path) -> bool:
    """Whether a file looks like ERT's: JSON with ``empirical`` at its top."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_MOST_BYTES)
        content = json.loads(head)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "empirical" in content


def read_ert(path: Path) -> Machine:
    """Read ERT's ``roofline.json``.

    Raises:
        MachineError: it cannot be read, or has no usable pair.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise MachineError(f"{path} is larger than any roofline.json of ERT")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise MachineError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise MachineError(f"{path} is not JSON: {error}") from error
    measured = content.get("empirical") if isinstance(content, dict) else None
    if not isinstance(measured, dict):
        raise MachineError(f"{path} is not a roofline.json of ERT: it has no 'empirical' part")
    ceilings = [
        *(_compute(name, rate) for name, rate in _pairs(measured, "gflops", path)),
        *(_bandwidth(name, rate) for name, rate in _pairs(measured, "gbytes", path)),
    ]
    if not ceilings:
        raise MachineError(f"{path}: ERT found no ceiling")
    return Machine(
        name=_name(path),
        basis="measured",
        ceilings=tuple(ceilings),
        caveats=(_CAVEAT,),
        provenance={"sources": [path.name], "tool": "Empirical Roofline Tool"},
    )


def _pairs(measured: dict[str, Any], part: str, path: Path) -> list[tuple[str, float]]:
    table = measured.get(part)
    data = table.get("data") if isinstance(table, dict) else None
    if not isinstance(data, list):
        raise MachineError(f"{path}: 'empirical.{part}.data' is not a list")
    found = []
    for entry in data[:_MOST_ENTRIES]:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise MachineError(f"{path}: an entry of 'empirical.{part}.data' is not [name, number]")
        name, number = entry
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise MachineError(f"{path}: '{name[:40]}' of {part} is not a number")
        if not math.isfinite(number) or number <= 0:
            raise MachineError(f"{path}: '{name[:40]}' of {part} is {number}; it must be positive")
        found.append((name, float(number)))
    return found


def _compute(name: str, giga: float) -> Ceiling:
    """``FP64 GFLOPs``, ``GFLOPs`` (double precision), ``FP16 GFLOPs (TC)``."""
    upper = name.upper()
    precision = next((key for key in _PRECISIONS if key in upper), "FP64")
    path = "tensor fp16" if re.search(r"\bTC\b|TENSOR", upper) else _PRECISIONS[precision]
    return Ceiling(
        kind="compute",
        value=giga * _GIGA,
        unit="flop/s",
        path=path,
        instruction="ert",
        reason=f"named '{name[:60]}' there",
        source=_SOURCE,
    )


def _bandwidth(name: str, giga: float) -> Ceiling:
    level = name.strip().lower()[:20] or "dram"
    return Ceiling(
        kind="bandwidth",
        value=giga * _GIGA,
        unit="byte/s",
        level="dram" if "dram" in level or "hbm" in level else level,
        access="copy",
        instruction="ert",
        source=_SOURCE,
    )


def _name(path: Path) -> str:
    stem = path.stem if path.stem != "roofline" else path.absolute().parent.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.")[:60] or "ert"
