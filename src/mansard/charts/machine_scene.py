"""What the chart of a machine shows: its roofs, its measured sweeps, and every ceiling as a row."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mansard.charts.frame import Frame, Roof, data_frame, machine_frame, roofs
from mansard.charts.labels import machine_facts, positive, printable, resource_label
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine, printed_unit
from mansard.units import format_share, format_si

#: Sweeps drawn on one chart, and dots of one sweep.
MOST_SWEEPS = 6
MOST_DOTS = 400

#: Rows of the table of ceilings.
MOST_ROWS = 40

_KINDS = ("compute", "bandwidth", "latency", "launch")


@dataclasses.dataclass(frozen=True, slots=True)
class CeilingRow:
    """One ceiling in words; ``value`` is ``refused`` where it was."""

    name: str
    how: str
    value: str
    share_of_limit: str
    clock: str
    refused: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A measured series: (FLOP/byte, FLOP/s) pairs inside the frame."""

    name: str
    dots: tuple[tuple[float, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class MachineScene:
    """All that the chart of one machine shows."""

    title: str
    subtitle: str
    frame: Frame
    roofs: tuple[Roof, ...]
    sweeps: tuple[Sweep, ...]
    rows: tuple[CeilingRow, ...]
    notes: tuple[str, ...]
    origin: str


def machine_scene(machine: Machine, frame: Frame | None = None) -> MachineScene:
    """Lay out one machine.

    Args:
        machine: what to show.
        frame: axes to use instead of the machine's own, to lay several side by side.
    """
    sweeps = machine_sweeps(machine.curves)
    own = frame or machine_frame(machine) or data_frame(d for s in sweeps for d in s.dots)
    device = machine.device
    part = ", ".join(
        word
        for word in (
            device.name,
            device.chip,
            f"compute capability {device.compute_capability}"
            if device.compute_capability
            else None,
            _size(device),
        )
        if word
    )
    return MachineScene(
        title=printable(machine.name, 90),
        subtitle=printable(part or "device not recorded", 120),
        frame=own,
        roofs=roofs(machine, own),
        sweeps=tuple(
            Sweep(s.name, tuple(own.clamp(*dot) for dot in s.dots)) for s in sweeps[:MOST_SWEEPS]
        ),
        rows=tuple(_rows(machine)),
        notes=tuple(_notes(machine, len(sweeps))),
        origin=_origin(machine),
    )


def machine_sweeps(curves: Mapping[str, Any]) -> list[Sweep]:
    """Return the series that have a place on the chart: columns flop_per_byte and flop_per_s.

    Series of other columns, and rows without two positive numbers, are left out.
    """
    found = []
    for name, curve in curves.items():
        if not isinstance(curve, Mapping):
            continue
        columns, rows = curve.get("columns"), curve.get("rows")
        if not isinstance(columns, list | tuple) or not isinstance(rows, list | tuple):
            continue
        if "flop_per_byte" not in columns or "flop_per_s" not in columns:
            continue
        places = columns.index("flop_per_byte"), columns.index("flop_per_s")
        dots = []
        for row in rows:
            if isinstance(row, list | tuple) and len(row) == len(columns):
                x, y = (_positive_number(row[place]) for place in places)
                if x is not None and y is not None:
                    dots.append((x, y))
        if dots:
            step = -(-len(dots) // MOST_DOTS)
            found.append(Sweep(printable(name, 40), tuple(dots[::step])))
    return found


def _size(device: DeviceFacts) -> str | None:
    """How many multiprocessors a GPU has, or cores a CPU (which has no compute capability)."""
    if not device.sm_count:
        return None
    return f"{device.sm_count} {'SMs' if device.compute_capability else 'cores'}"


def _positive_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return positive(float(value))


def _rows(machine: Machine) -> list[CeilingRow]:
    ordered = sorted(
        machine.ceilings,
        key=lambda ceiling: (
            _KINDS.index(ceiling.kind),
            ceiling.path or ceiling.level or "",
            -(positive(ceiling.value) or 0.0),
        ),
    )
    return [_row(ceiling, machine) for ceiling in ordered[:MOST_ROWS]]


def _row(ceiling: Ceiling, machine: Machine) -> CeilingRow:
    refused = ceiling.status == "refused"
    words = [ceiling.instruction, None if ceiling.kind == "compute" else ceiling.access]
    words += [ceiling.arm, None if ceiling.status == machine.basis else ceiling.status]
    name = ceiling.path or resource_label(ceiling.level or ceiling.kind)
    value = format_si(ceiling.value, printed_unit(ceiling.unit, ceiling.path))
    return CeilingRow(
        name=printable(name, 24),
        how=printable(", ".join(word for word in words if word and word != "refused"), 34),
        value="refused" if refused else value,
        share_of_limit=format_share(ceiling.share_of_limit),
        clock=format_si(ceiling.sm_clock_hz, "Hz"),
        refused=refused,
    )


def _notes(machine: Machine, sweeps: int) -> list[str]:
    notes = [printable(caveat, 200) for caveat in machine.caveats[:3]]
    if machine.partial:
        notes.append("Partial: the measurement was cut short.")
    for ceiling in machine.ceilings:
        if ceiling.status == "refused" and len(notes) < 7:
            name = ceiling.path or ceiling.level or ceiling.kind
            how = f" {ceiling.instruction}" if ceiling.instruction else ""
            notes.append(
                f"Refused, so not drawn: {printable(name + how, 60)}"
                f" ({printable(ceiling.reason or 'no reason recorded', 120)})."
            )
    if any(ceiling.path and "int" in ceiling.path for ceiling in machine.ceilings):
        notes.append("Integer ceilings are in the table only: the axis is FLOP/s.")
    if sweeps > MOST_SWEEPS:
        notes.append(f"{MOST_SWEEPS} of {sweeps} sweeps are drawn.")
    if len(machine.ceilings) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(machine.ceilings)} ceilings are in the table.")
    return notes


def _origin(machine: Machine) -> str:
    facts = ", ".join(
        f"{printable(str(key), 30).replace('_', ' ')} {printable(str(value), 40)}"
        for key, value in list(machine.provenance.items())[:8]
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    )
    return f"Roofs: {machine_facts(machine)}." + (f" {facts}." if facts else "")
