"""Words that every table and picture shares: safe names, resources, shares, and the origin line.

Names come from binaries and other people's files: whatever they hold, what leaves here is one
line of visible characters of bounded length.
"""

import math
import unicodedata
from collections.abc import Iterable

from mansard.model.analysis import Analysis, Group, Kernel
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.model.paths import MACHINE_LEVELS, PATHS
from mansard.model.provenance import Provenance
from mansard.units import format_share, format_si

#: Resources in the order in which tables and bars show them.
RESOURCES = ("tensor", "vector", "shared", "l1", "l2", "dram", "link", "launch")

_WORDS = {"l1": "L1", "l2": "L2", "l3": "L3", "dram": "DRAM"}

#: Floor over measured time beyond which a number is a fault to look for, not an efficiency.
ABOVE_ROOF = 1.02

#: What to think of when a launch is faster than its roof.
ABOVE_ROOF_CAUSES = (
    "rate given as a total over ranks, wrong unit, wrong machine file or ceiling, operations"
    " counted twice or skipped as zeros (sparsity), time of another scope, caches that were warm"
)

_ELLIPSIS = "..."
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str | None, limit: int = 200) -> str:
    """Return ``text`` as one visible line of at most ``limit`` characters; ``-`` when unknown.

    Control characters (terminal escapes, line ends, direction marks, lone surrogates) become
    the replacement character. Long names lose their middle, since kernel names differ at both
    ends.
    """
    if text is None:
        return "-"
    # Bound the work first: a name may be megabytes long.
    kept = text if len(text) <= 4 * limit else text[: 2 * limit] + text[-2 * limit :]
    visible = "".join(
        _REPLACEMENT if unicodedata.category(letter) in _HIDDEN else letter for letter in kept
    )
    if len(text) <= limit:
        return visible
    if limit <= len(_ELLIPSIS) + 1:
        return visible[:limit]
    head = (limit - len(_ELLIPSIS)) * 2 // 3
    tail = limit - len(_ELLIPSIS) - head
    return f"{visible[:head]}{_ELLIPSIS}{visible[len(visible) - tail :]}"


def resource_label(resource: str) -> str:
    """Return a level or pipe as people write it, e.g. ``DRAM``."""
    return _WORDS.get(resource, printable(resource, 24))


def bound_label(group: Group) -> str:
    """Return what bounds a group in one word; ``-`` without a machine, ``?`` when undecided."""
    if group.bound is None:
        return "-"
    if group.bound.startswith("unknown"):
        return "?"
    return resource_label(group.bound)


def above_roof(group: Group) -> bool:
    """Tell whether a group as a whole ran faster than its floor allows."""
    return group.efficiency is not None and group.efficiency > ABOVE_ROOF


def efficiency_label(group: Group) -> str:
    """Return the efficiency in percent, at most eight letters.

    ``> roof`` where the number cannot be one; ``~`` before it where launches are so small that
    it says more of starting a kernel than of its work.
    """
    if above_roof(group):
        return "> roof"
    text = format_share(group.efficiency)
    return f"~{text.replace(' ', '')}" if is_tiny(group) and text != "-" else text


def main_path(group: Group) -> str | None:
    """Return the compute path with the most operations; None without known work."""
    work = {path: count for path, flop in group.flop_by_path.items() if (count := positive(flop))}
    return max(work, key=work.__getitem__, default=None)


def no_flop(group: Group) -> bool:
    """Tell whether none of a group's launches does floating-point work, as the analysis counts."""
    return group.launches > 0 and group.zero_flop_launches == group.launches


def is_tiny(group: Group) -> bool:
    """Tell whether a kernel's launches are too small to judge."""
    return isinstance(group, Kernel) and group.tiny


def key_label(group: Group, limit: int = 200) -> str:
    """Return the name of a phase, family or rank; ``(none)`` for launches outside any."""
    return "(none)" if group.key is None else printable(group.key, limit)


def count_text(count: int, word: str) -> str:
    """Return a number with its noun, e.g. ``1 launch``, ``2 launches``."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word}{'es' if word.endswith('ch') else 's'}"


def known(value: float | None) -> float | None:
    """Return a finite, non-negative value as it is, anything else as None (unknown)."""
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return value


def positive(value: float | None) -> float | None:
    """Return a value that a logarithmic axis can show, anything else as None."""
    return known(value) or None


def level_names(groups: Iterable[Group]) -> list[str]:
    """Return the memory levels to show, from the SM outwards.

    L1, L2 and DRAM wherever the analysis has them, known or not; shared memory and links, which
    few collectors count, only where something is known.
    """
    shown = set()
    for group in groups:
        for level, moved in group.bytes_by_level.items():
            if moved is not None or level not in ("shared", "link"):
                shown.add(level)
    return [name for name in RESOURCES if name in shown]


def intensity_names(groups: Iterable[Group], kernels: Iterable[Kernel]) -> list[str]:
    """Return the levels whose intensities are shown: a link only where a kernel worked beside it.

    Copies to and from the host move bytes over it and do nothing, so they have no place there.

    Args:
        groups: what is shown.
        kernels: those of the run; the whole, or a phase, has work and copies of others.
    """
    worked = any(positive(kernel.intensity.get("link")) for kernel in kernels)
    return [name for name in level_names(groups) if name != "link" or worked]


def unknown_paths(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return compute paths whose work is unknown in the whole run, with the missing counters."""
    found: dict[str, tuple[str, ...]] = {}
    for path, flop in analysis.totals.flop_by_path.items():
        if flop is None:
            columns = {f"{kind}_{path.replace(' ', '_')}" for kind in ("flop", "op")}
            found[path] = tuple(
                dict.fromkeys(
                    counter
                    for origin in analysis.provenance
                    for column in sorted(columns)
                    for counter in origin.missing.get(column, ())
                )
            )
    return found


def distinct(values: Iterable[str | None], most: int = 3) -> str | None:
    """Return the different values joined by `` / ``; None when none is known."""
    found = list(dict.fromkeys(printable(value, 60) for value in values if value))
    if not found:
        return None
    more = f" / {len(found) - most} more" if len(found) > most else ""
    return " / ".join(found[:most]) + more


def run_facts(provenance: Iterable[Provenance]) -> list[tuple[str, str | None]]:
    """Return how a run was recorded, as (word, value) in reading order; None is unknown."""
    origins = list(provenance)
    devices = [device for origin in origins for device in origin.devices]
    clocks = {device.sm_clock_max_hz for device in devices if device.sm_clock_max_hz}
    tools = [
        f"{origin.collector} {origin.collector_version or ''}".strip()
        for origin in origins
        if origin.collector
    ]
    return [
        ("GPU", _devices_text(devices)),
        ("driver", distinct(origin.driver_version for origin in origins)),
        ("collector", distinct(tools)),
        ("clock control", distinct(origin.clock_control for origin in origins)),
        ("highest SM clock", distinct(format_si(clock, "Hz") for clock in sorted(clocks))),
        ("cache control", distinct(origin.cache_control for origin in origins)),
        ("replay", distinct(origin.replay for origin in origins)),
        ("counter table", distinct(origin.counter_table for origin in origins)),
    ]


def _devices_text(devices: list[DeviceFacts]) -> str | None:
    parts: dict[str, set[str]] = {}
    for device in devices:
        name = printable(device.name or device.chip or "GPU of unknown name", 40)
        parts.setdefault(name, set()).add(device.uuid or "")
    # Only parts with an identity can be told apart, so only those are counted.
    return distinct(
        f"{len(uuids)} x {name}" if len(uuids) > 1 else name for name, uuids in parts.items()
    )


def machine_facts(machine: Machine | None, totals: Group | None = None) -> str:
    """Return one phrase on where the roofs come from: name, basis, clocks of the samples.

    The clocks are those of the roofs, not of what else was measured (libraries, latencies).

    Args:
        machine: the roofs.
        totals: of the run below them; then only the roofs of what it used have a say.
    """
    if machine is None:
        return "none (no machine given: no floors, no bounds, no efficiency)"
    work = totals.flop_by_path if totals else {}
    moved = totals.bytes_by_level if totals else {}
    chosen = [machine.compute(path.name) for path in PATHS if work.get(path.name) != 0]
    chosen += [machine.bandwidth(level) for level in MACHINE_LEVELS if moved.get(level) != 0]
    clocks = [clock for ceiling in chosen if ceiling and (clock := positive(ceiling.sm_clock_hz))]
    text = f"{printable(machine.name, 40)}, {machine.basis}"
    if clocks:
        low, high = (format_si(clock, "Hz") for clock in (min(clocks), max(clocks)))
        text += f" at {low}" if low == high else f" at {low} to {high}"
    return text + (", partial (measurement was cut short)" if machine.partial else "")


def facts_text(facts: Iterable[tuple[str, str | None]]) -> str:
    """Return facts as one phrase, the unknown ones named at its end."""
    pairs = list(facts)
    parts = [f"{word} {value}" for word, value in pairs if value]
    unknown = [word for word, value in pairs if not value]
    if unknown:
        parts.append(f"not recorded: {', '.join(unknown)}")
    return ", ".join(parts)


def origin_line(analysis: Analysis) -> str:
    """Return the line below every picture: where the points and the roofs come from."""
    run = facts_text(run_facts(analysis.provenance))
    return f"Run: {run}. Roofs: {machine_facts(analysis.machine, analysis.totals)}."


def ceiling_label(ceiling: Ceiling, machine: Machine) -> str:
    """Return a roof's name and value, with its status where it differs from the machine's."""
    name = ceiling.path or resource_label(ceiling.level or "?")
    unit = {"flop/s": "FLOP/s", "byte/s": "B/s"}.get(ceiling.unit, ceiling.unit)
    status = "" if ceiling.status == machine.basis else f" ({ceiling.status})"
    return f"{printable(name, 24)} {format_si(ceiling.value, unit)}{status}"
