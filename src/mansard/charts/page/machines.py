"""The page of machines side by side: one offline file without a script."""

import html
from collections.abc import Sequence
from typing import Protocol

from mansard.charts.labels import machine_facts, printable
from mansard.charts.page.assemble import assembled
from mansard.errors import UsageError
from mansard.model.machine import Machine
from mansard.units import format_si

#: Ceilings that the page holds.
_MOST_ROWS = 2_000
_UNITS = {"flop/s": "FLOP/s", "byte/s": "B/s"}


class CeilingLine(Protocol):
    """One ceiling on several machines, as ``mansard.bench.fleet.compare`` makes them."""

    @property
    def name(self) -> str:
        """What it limits."""

    @property
    def instruction(self) -> str:
        """How it is reached."""

    @property
    def arm(self) -> str:
        """Data."""

    @property
    def unit(self) -> str:
        """Of the values: ``flop/s``, ``byte/s`` or ``s``."""

    @property
    def values(self) -> Sequence[float | None]:
        """One for each machine; None where it has no such ceiling or refused it."""

    @property
    def ratios(self) -> Sequence[float | None]:
        """To the first machine; None where one of the two has none."""


def machines_page(machines: Sequence[Machine], lines: Sequence[CeilingLine]) -> str:
    """Return machines side by side as one HTML file that needs no network.

    Args:
        machines: what to show.
        lines: their ceilings, each with a value for every machine.

    Raises:
        UsageError: no machine.
    """
    if not machines:
        raise UsageError("there is no machine to show")
    heads = "".join(
        f'<th class="n">{_safe(machine.name, 40)}</th>' + ('<th class="n">ratio</th>' if n else "")
        for n, machine in enumerate(machines)
    )
    title = " and ".join(machine.name for machine in machines[:3])
    if len(machines) > 3:
        title = f"{len(machines)} machines"
    return assembled(
        "machines.html",
        {},
        title=_safe(title, 120),
        machines="\n".join(map(_machine, machines)),
        heads=heads,
        ceilings="\n".join(map(_line, lines[:_MOST_ROWS])),
    )


def _safe(words: str | None, limit: int = 300) -> str:
    return html.escape(printable(words, limit))


def _machine(machine: Machine) -> str:
    device = machine.device
    cells = [
        _safe(device.name),
        "-" if device.sm_count is None else str(device.sm_count),
        _safe(machine.provenance.get("driver_version")),
        _safe(machine_facts(machine)),
        "; ".join(_safe(caveat, 1000) for caveat in machine.caveats),
    ]
    return f'<tr><th scope="row">{_safe(machine.name, 80)}</th>{_cells(cells)}</tr>'


def _line(line: CeilingLine) -> str:
    numbers = []
    for place, (value, ratio) in enumerate(zip(line.values, line.ratios, strict=True)):
        numbers.append(_safe(format_si(value, _UNITS.get(line.unit, line.unit))))
        if place:
            numbers.append("-" if ratio is None else f"{ratio:.3f}")
    how = _cells([_safe(line.instruction), _safe(line.arm)])
    values = "".join(f'<td class="n">{number}</td>' for number in numbers)
    return f'<tr><th scope="row">{_safe(line.name, 80)}</th>{how}{values}</tr>'


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{cell}</td>" for cell in cells)
