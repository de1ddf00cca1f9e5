"""Values as a report writes them; what is not known is said."""

from collections.abc import Iterable

from mansard.charts.labels import known
from mansard.model.analysis import Group, quotient
from mansard.study.gather import Entry
from mansard.units import format_share, format_si

UNKNOWN = "unknown"
NOT_MEASURED = "not measured yet"

#: Levels whose intensity is shown, from the SM outwards.
LEVELS = ("l1", "l2", "dram")

#: Intensities below it are as good as none, and would be long to write.
_LEAST = 0.001


def si(value: float | None, unit: str) -> str:
    """A value with its unit."""
    return UNKNOWN if known(value) is None else format_si(value, unit)


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in percent; ``-`` where there is nothing to have a part of."""
    if whole == 0:
        return "-"
    value = quotient(part, whole)
    return UNKNOWN if value is None else format_share(value)


def ratio(a: float | None, b: float | None) -> str:
    """How many times ``a`` is ``b``."""
    value = quotient(a, b)
    return UNKNOWN if value is None else f"{value:.2f} x"


def change(value: float | None, base: float | None) -> str:
    """Relative difference to a base, with its sign."""
    value = quotient(value, base)
    return UNKNOWN if value is None else f"{100 * (value - 1):+.1f} %"


def count(value: int | None) -> str:
    """A number of things."""
    return UNKNOWN if value is None else str(value)


def with_share(value: int | None, whole: int) -> str:
    """A number of things and their part of all."""
    return UNKNOWN if value is None else f"{value} ({share(value, whole)})"


def intensities(values: dict[str, float | None]) -> str:
    """FLOP/byte at L1, L2 and DRAM."""
    return " / ".join(_three_digits(values.get(level)) for level in LEVELS)


def _three_digits(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if 0 < value < _LEAST:
        return f"<{_LEAST}"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def work(group: Group) -> str:
    """Counted FLOP; a lower bound is said to be one."""
    text = si(group.flop, "FLOP")
    return text if group.flop is None or group.flop_complete else f"at least {text}"


def tensor_flop(group: Group) -> float | None:
    """FLOP on Tensor Cores; None where no such path was counted."""
    return _flop_of(group, "tensor")


def vector_flop(group: Group) -> float | None:
    """FLOP of the vector pipes; None where no such path was counted."""
    return _flop_of(group, "vector")


def _flop_of(group: Group, paths: str) -> float | None:
    found = [
        flop
        for path, flop in group.flop_by_path.items()
        if path.startswith(paths) and "int" not in path and flop is not None
    ]
    return sum(found) if found else None


def tensor_share(group: Group) -> str:
    """The part of the work that Tensor Cores did; unknown where some path was not counted."""
    return share(tensor_flop(group) if group.flop_complete else None, group.flop)


def listed(texts: Iterable[str]) -> str:
    """Texts as a list in a sentence."""
    return ", ".join(texts) or "none"


def time_text(entry: Entry) -> str:
    """The median of a step with its spread, or why there is none."""
    if entry.step_s is None:
        return entry.state
    spread = "" if entry.spread_s is None else f" ± {si(entry.spread_s, 's')}"
    return f"{si(entry.step_s, 's')}{spread}"
