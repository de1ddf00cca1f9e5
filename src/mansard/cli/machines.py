"""``mansard machines``: list, show and compare machine files."""

import functools
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mansard.model.machine import Machine


def machines(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, machine files, roofline.json of ERT, or folders of them.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    over_time: Annotated[
        bool,
        typer.Option("--over-time", help="Each GPU's files in order of date: what changed when."),
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="Write .html, .png, .svg, .pdf or .json instead; repeatable; - is stdout (JSON).",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Of two or three, also each ceiling by instruction and data."),
    ] = False,
) -> None:
    """List the machines that come along; show one; compare several.

    Two or three are compared by their roofs, the best of each path and level. With four or more,
    each ceiling gets a robust z-score, which shows the slow GPU of a fleet. Machines of one name
    get their file's name beside it.
    """
    from mansard.cli.machine_files import load_machines, under_own_names
    from mansard.cli.machine_table import print_comparison, print_list, print_machine
    from mansard.store.machine_file import load_machine, shipped_machines

    if output:
        _write(under_own_names(load_machines(items or shipped_machines())), output)
        return
    if not items:
        shipped = [load_machine(name) for name in shipped_machines()]
        if json:
            _print_json([_summary(machine) for machine in shipped])
        else:
            print_list(shipped)
        return
    loaded = load_machines(items)
    if over_time:
        # Files of one name are of one GPU.
        _over_time([machine for machine, _ in loaded], json=json)
        return
    found = under_own_names(loaded)
    if len(found) == 1:
        if json:
            _print_json(found[0])
        else:
            print_machine(found[0])
    elif json:
        _print_json(_compared(found))
    else:
        print_comparison(found, every=every)


def _compared(found: "list[Machine]") -> dict[str, object]:
    """Several machines as JSON has them."""
    from mansard.bench.fleet import LEAST_FLEET, compare, oddities, standings
    from mansard.cli.machine_roofs import roofs

    return {
        "machines": [machine.name for machine in found],
        "roofs": roofs(found),
        "ceilings": compare(found),
        "standings": standings(found) if len(found) >= LEAST_FLEET else (),
        "odd": oddities(found),
    }


def _over_time(found: "list[Machine]", *, json: bool) -> None:
    from mansard.cli.ageing_table import print_ageing
    from mansard.errors import MachineError
    from mansard.history import over_time

    gpus = over_time(found)
    if not gpus:
        raise MachineError(
            "no GPU was measured twice: --over-time compares files of one GPU (its UUID) by date"
        )
    if json:
        _print_json({"schema": "mansard-ageing/1", "gpus": gpus})
        return
    for gpu in gpus:
        print_ageing(gpu)


def _write(found: "list[Machine]", targets: list[Path]) -> None:
    """Write each file in the format of its suffix."""
    from mansard.cli.write import PICTURES, write_whole
    from mansard.errors import UsageError

    for target in targets:
        suffix = target.suffix.lower()
        if suffix == ".json" or str(target) == "-":
            content = _json(_compared(found) if len(found) > 1 else found[0])
            write_whole(target, functools.partial(_put, content))
        elif suffix == ".html":
            from mansard.bench.fleet import compare
            from mansard.charts.page import machines_page

            page = machines_page(found, compare(found)).encode()
            write_whole(target, functools.partial(_put, page))
        elif suffix in PICTURES:
            from mansard.charts import static

            several = len(found) > 1
            drawn = static.machines_figure(found) if several else static.machine_figure(found[0])
            write_whole(target, functools.partial(static.save_figure, drawn, format=suffix[1:]))
        else:
            raise UsageError(
                f"cannot tell the format of '{target}': the name must end in "
                f"{', '.join(('.html', *PICTURES, '.json'))}"
            )
        if str(target) != "-":
            sys.stderr.write(f"wrote {target}\n")


def _put(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)


def _summary(machine: "Machine") -> dict[str, object]:
    return {
        "name": machine.name,
        "basis": machine.basis,
        "device": machine.device.name,
        "ceilings": sum(ceiling.status != "refused" for ceiling in machine.ceilings),
    }


def _json(value: object) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(_json(value))
    sys.stdout.buffer.flush()
