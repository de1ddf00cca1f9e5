"""The only place that scales numbers: prefixes for display, and the units of profilers to SI.

Prefixes are decimal (1 GFLOP/s = 1e9 FLOP/s; Nsight Compute's K is 1000).
"""

import math
import re

#: Decimal prefixes from large to small, for display and parsing.
PREFIXES = (
    ("E", 1e18),
    ("P", 1e15),
    ("T", 1e12),
    ("G", 1e9),
    ("M", 1e6),
    ("k", 1e3),
    ("", 1.0),
    ("m", 1e-3),
    ("u", 1e-6),
    ("n", 1e-9),
)

#: Giga in the authors' scripts (their "GFLOP/s" divide by 1024^3), to reproduce their tables.
BINARY_GIGA = float(1024**3)

_BASE_UNITS = {
    "byte": "byte",
    "bytes": "byte",
    "b": "byte",
    "second": "s",
    "sec": "s",
    "s": "s",
    "hz": "Hz",
    "cycle": "cycle",
    "cycles": "cycle",
    "inst": "inst",
    "%": "%",
}
# Powers of ten, kept as exponents so that cycle/nsecond gives exactly 1e9.
_SECOND_PREFIXES = {"n": -9, "u": -6, "µ": -6, "m": -3, "": 0}
_LARGE_PREFIXES = {"k": 3, "m": 6, "g": 9, "t": 12, "p": 15, "e": 18}
_PREFIXABLE = {"byte", "Hz", "inst", "cycle"}
_PART = re.compile(r"\s*/\s*")


def format_si(value: float | None, unit: str = "", digits: int = 3) -> str:
    """Write a value with a decimal prefix, e.g. ``4.62 TB/s``; ``-`` when unknown.

    Args:
        value: in the base unit.
        unit: base unit as it should be printed, e.g. ``FLOP/s``.
        digits: significant digits.
    """
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return f"0 {unit}".rstrip()
    magnitude = abs(value)
    # 999.6 must become 1.00 k, not 1000: compare after rounding to the digits shown.
    rounded = float(f"{magnitude:.{digits}g}")
    prefix, factor = next((entry for entry in PREFIXES if rounded >= entry[1]), PREFIXES[-1])
    scaled = value / factor
    whole = len(str(int(abs(scaled)))) if abs(scaled) >= 1 else 1
    text = f"{scaled:.{max(0, digits - whole)}f}"
    return f"{text} {prefix}{unit}".rstrip()


def format_share(value: float | None) -> str:
    """Write a share as percent; never 0 % or 100 % unless it is exactly so."""
    if value is None or not math.isfinite(value):
        return "-"
    percent = 100 * value
    text = f"{percent:.1f}"
    if text == "100.0" and percent < 100:
        text = "99.9"
    if text == "0.0" and percent > 0:
        return "<0.1 %"
    return f"{text} %"


def unit_factor(unit: str) -> tuple[float, str]:
    """Read a unit of Nsight Compute, old or new: its factor to the base unit, and that unit.

    ``"Gbyte/second"`` gives ``(1e9, "byte/s")``, ``"usecond"`` ``(1e-6, "s")``,
    ``"cycle/nsecond"`` ``(1e9, "Hz")``. Units that are not scaled come back as they are, with
    factor 1. Percent stays percent.
    """
    if not unit.strip():
        return 1.0, ""
    parts = _PART.split(unit.strip())
    exponent, base = _simple_unit(parts[0])
    for part in parts[1:]:
        part_exponent, part_base = _simple_unit(part)
        exponent -= part_exponent
        base = f"{base}/{part_base}"
    if base == "cycle/s":
        base = "Hz"
    return float(f"1e{exponent}"), base


def _simple_unit(text: str) -> tuple[int, str]:
    lower = text.strip().lower()
    base = _BASE_UNITS.get(lower)
    if base is not None:
        return 0, base
    for name in ("second", "sec", "s"):
        if lower.endswith(name) and lower[: -len(name)] in _SECOND_PREFIXES:
            return _SECOND_PREFIXES[lower[: -len(name)]], "s"
    base = _BASE_UNITS.get(lower[1:])
    if base in _PREFIXABLE and lower[:1] in _LARGE_PREFIXES:
        return _LARGE_PREFIXES[lower[0]], base
    return 0, text.strip()
