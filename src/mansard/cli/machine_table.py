"""Tables of machines for the terminal, at most 80 columns wide."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mansard.model.machine import printed_unit
from mansard.units import format_si

if TYPE_CHECKING:
    from mansard.model.machine import Machine

_WIDTH = 80
_SIDE_BY_SIDE = 3
#: Machines of a fleet that are named at once.
_NAMED = 5


def print_machine(machine: "Machine", *, to_stderr: bool = False) -> None:
    """Every ceiling of one machine, with remarks and caveats below."""
    from rich.table import Table

    from mansard.bench.rows import footnotes, rows_of

    console = make_console(to_stderr=to_stderr)
    rows = rows_of(machine)
    notes = footnotes(rows)
    print_text(console, _title(machine))
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("")
    table.add_column("how", max_width=24)
    table.add_column("data")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("of limit", justify="right", no_wrap=True)
    table.add_column("GHz", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    section = None
    for row in rows:
        if row.section != section:
            section = row.section
            table.add_row(plain(section), style="bold")
        note = f"[{notes[row.reason]}]" if row.reason else ""
        cells = (row.what, row.how, row.data, row.value, row.share, row.clock, note)
        table.add_row(*(plain(cell) for cell in cells))
    console.print(table)
    for text, number in notes.items():
        print_text(console, f"[{number}] {text}")
    for caveat in machine.caveats:
        print_text(console, f"Note: {caveat}")


def print_list(machines: Sequence["Machine"]) -> None:
    """One line a machine."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for title in ("name", "basis", "device", "ceilings"):
        table.add_column(title, justify="right" if title == "ceilings" else "left")
    for machine in machines:
        usable = sum(ceiling.status != "refused" for ceiling in machine.ceilings)
        cells = (machine.name, machine.basis, machine.device.name or "-", str(usable))
        table.add_row(*(plain(cell) for cell in cells))
    make_console().print(table)


def print_comparison(machines: Sequence["Machine"], *, every: bool = False) -> None:
    """Few machines: their roofs beside the ratio. A fleet: one line each, and who is slow.

    Args:
        machines: what to print.
        every: of few machines, also every ceiling by instruction and data.
    """
    from mansard.bench.fleet import LEAST_FLEET, compare, ratios_to_first
    from mansard.bench.rows import data_of
    from mansard.cli.machine_roofs import roofs

    if len(machines) >= LEAST_FLEET:
        _print_fleet(machines)
        return
    best = [(roof.name, roof.name, roof.unit, roof.values) for roof in roofs(machines)]
    ceilings = [
        (_words(line.name, line.instruction, data_of(line.arm)), line.name, line.unit, line.values)
        for line in compare(machines)
    ]
    console = make_console()
    for title, lines in (("roof", best), ("ceiling", ceilings))[: 1 + every]:
        table = _side_by_side(machines, title)
        for words, name, unit, values in lines:
            cells = [words]
            ratios = ratios_to_first(values)
            for index, value in enumerate(values):
                cells.append(format_si(value, printed_unit(unit, name)))
                if index:
                    ratio = ratios[index]
                    cells.append("-" if ratio is None else f"{ratio:.3f}")
            table.add_row(*(plain(cell) for cell in cells))
        console.print(table)
    if not every:
        told = f"The {len(ceilings)} ceilings by instruction and data: mansard machines ... --all"
        print_text(console, told)


def _side_by_side(machines: Sequence["Machine"], title: str) -> Any:
    """An empty table with columns for each machine and its ratio to the first."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column(title)
    for index, machine in enumerate(machines[:_SIDE_BY_SIDE]):
        table.add_column(plain(machine.name), justify="right", max_width=14, overflow="fold")
        if index:
            table.add_column("ratio", justify="right", no_wrap=True)
    return table


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def _print_fleet(machines: Sequence["Machine"]) -> None:
    from rich.table import Table

    from mansard.bench.fleet import oddities, standings

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("machine")
    table.add_column("ceilings", justify="right")
    table.add_column("to the median", justify="right")
    table.add_column("slow on")
    for standing in standings(machines):
        slow = "; ".join(
            f"{name} {ratio:.3f} (z {score:.1f})" for name, ratio, score in standing.slow[:3]
        )
        more = len(standing.slow) - 3
        ratio = "-" if standing.median_ratio is None else f"{standing.median_ratio:.3f}"
        text = slow + (f"; and {more} more" if more > 0 else "")
        cells = (standing.name, str(standing.compared), ratio, text or "-")
        table.add_row(*(plain(cell) for cell in cells))
    console = make_console()
    console.print(table)
    for odd in oddities(machines):
        for value, names in odd.found.items():
            rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            print_text(
                console,
                f"Odd: {odd.fact} is {value} on {', '.join(names[:_NAMED])}{rest}, "
                f"{odd.usual} on most.",
            )


def _title(machine: "Machine") -> str:
    device = machine.device
    words = [f"{machine.name}: {device.name or 'device unknown'}, {machine.basis}"]
    if device.sm_count:
        # A CPU has no compute capability.
        words.append(f"{device.sm_count} {'SMs' if device.compute_capability else 'cores'}")
    driver = machine.provenance.get("driver_version")
    if driver:
        words.append(f"driver {driver}")
    if machine.partial:
        words.append("PARTIAL")
    return ", ".join(words)


def make_console(*, to_stderr: bool = False) -> Any:
    """A console of at most 80 columns."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) >= _WIDTH // 2 else _WIDTH
    return Console(stderr=to_stderr, highlight=False, width=min(_WIDTH, width))


def plain(text: str) -> Any:
    """Text in which brackets are no markup and control characters are harmless."""
    from rich.text import Text

    return Text("".join(character if character.isprintable() else "?" for character in text))


def print_text(console: Any, text: str) -> None:
    """A line of text, wrapped, without any markup."""
    console.print(plain(text), soft_wrap=False)
