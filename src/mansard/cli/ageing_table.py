"""One GPU over time, for the terminal."""

from typing import TYPE_CHECKING

from mansard.cli.machine_table import make_console, plain, print_text

if TYPE_CHECKING:
    from mansard.history import Ageing

_UNITS = {"flop/s": "FLOP/s", "byte/s": "B/s", "s": "s"}
_DAY = 10


def print_ageing(gpu: "Ageing") -> None:
    """What changed on a GPU, when, and whether the driver did too."""
    from rich.table import Table

    from mansard.units import format_si

    out = make_console()
    first, last = gpu.dates[0][:_DAY], gpu.dates[-1][:_DAY]
    print_text(
        out, f"{gpu.gpu}: {gpu.device}, {len(gpu.dates)} measurements from {first} to {last}"
    )
    changed = [trend for trend in gpu.trends if trend.changes]
    if not gpu.enough:
        print_text(out, "Too few to tell a change from noise: it takes 10.")
    elif not changed:
        print_text(out, f"None of {len(gpu.trends)} ceilings changed.")
    if not changed:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("ceiling")
    table.add_column("since", no_wrap=True)
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("driver")
    for trend in changed:
        for change in trend.changes:
            old, new = gpu.drivers[change.at - 1], gpu.drivers[change.at]
            cells = (
                trend.name,
                gpu.dates[change.at][:_DAY],
                format_si(change.before, _UNITS.get(trend.unit, trend.unit)),
                format_si(change.after, _UNITS.get(trend.unit, trend.unit)),
                "worse" if trend.is_worse(change) else "better",
                "same" if old == new else f"{old or 'unknown'} -> {new or 'unknown'}",
            )
            table.add_row(*(plain(cell) for cell in cells))
    out.print(table)
