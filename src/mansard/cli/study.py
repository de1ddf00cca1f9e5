"""``mansard study``: the paper's application, measured again on this machine."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mansard.cli import INTERRUPTED, PARTIAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mansard.study.cell import Folder
    from mansard.study.plan import Cell
    from mansard.study.run import StudyRun
    from mansard.workloads.workload import Framework, Preset


def study(
    name: Annotated[str, typer.Argument(help="Which study: deepcam.", metavar="STUDY")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for cells, runs, charts and report.")
    ] = Path("mansard-study"),
    quick: Annotated[bool, typer.Option("--quick", help="Only the six cells that say most.")] = (
        False
    ),
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only cells whose name matches, e.g. 'lamb'; again for more, in order."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cuda:N or cpu; the first GPU where there is one."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the cells and stop.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure cells anew that the folder holds.")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0,
            help="Seconds for all cells; none runs beyond. On a GPU --quick has 300.",
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=1, help="Seconds for each cell.")
    ] = 300,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report when cells are done.")
    ] = True,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: the report from the folder's files.")
    ] = False,
    machine: Annotated[
        str | None, typer.Option("--machine", "-m", help="Roofs: machine file or shipped name.")
    ] = None,
) -> None:
    """Run DeepCAM's network by precision, layout, optimizer, execution and framework.

    Each cell runs in a process of its own; cells that the folder holds are kept. Without a GPU a
    tiny size runs on the CPU: times and analytic FLOP only. Exit code 3: a cell could not run, was
    not started, or has a file that could not be used.
    """
    from mansard.errors import UsageError
    from mansard.study import frameworks
    from mansard.study.cell import Folder
    from mansard.study.plan import STUDIES, chosen, deepcam
    from mansard.study.run import QUICK_BUDGET_S, RunOptions, can_begin, is_kept, run_cells

    if name not in STUDIES:
        raise UsageError(f"there is no study '{name[:60]}': choose one of {', '.join(STUDIES)}")
    if report_only:
        if not _report(output, machine):
            raise typer.Exit(PARTIAL)
        return
    place, preset = _place(device)
    cells = chosen(deepcam(place, preset), quick=quick, only=only or ())
    folder = Folder(output)
    if list_:
        _list(cells, folder)
        return
    from mansard.cli.progress import progress_bar

    if budget is None and quick and place != "cpu":
        budget = QUICK_BUDGET_S
    options = RunOptions(
        preset=preset,
        again=again,
        time_limit_s=time_limit,
        budget_s=budget,
        absent=frameworks.absences(cell.configuration.framework for cell in cells),
    )
    if not can_begin(cells, folder, options):
        raise UsageError(frameworks.nothing_installed(cells))
    _tell_absent([c for c in cells if not is_kept(folder, c, options)], options.absent)
    with progress_bar() as advance:

        def tell(what: str, share: float) -> None:
            advance(what, share)
            if not sys.stderr.isatty():  # a log of a batch job shows where it is
                sys.stderr.write(f"{100 * share:3.0f} % {what}\n")

        done = run_cells(cells, folder, options=options, progress=tell)
    _print(cells, done, folder, options.absent)
    whole = True
    if report and any(outcome != "not started" for outcome in done.outcomes.values()):
        whole = _report(output, machine)
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not whole or any(outcome not in ("measured", "kept") for outcome in done.outcomes.values()):
        raise typer.Exit(PARTIAL)


def _place(device: str | None) -> "tuple[str, Preset]":
    """The device and the size that fits it."""
    from mansard.collect.cupti.driver import load_driver
    from mansard.errors import DeviceError, UsageError

    if device == "cpu":
        return "cpu", "tiny"
    if device is not None:
        kind, _, index = device.partition(":")
        if kind != "cuda" or not (index.isdecimal() and len(index) < 4):
            raise UsageError(f"'{device[:40]}' is no device: give cuda:0 or cpu")
        there = load_driver().device_count
        if int(index) >= there:
            raise DeviceError(f"there is no {device}; the driver shows {there} GPU(s)")
        return f"cuda:{int(index)}", "paper"
    try:
        if load_driver().device_count:
            return "cuda:0", "paper"
        found = "the driver shows no GPU"
    except DeviceError as error:
        found = str(error)
    sys.stderr.write(
        f"mansard: {found}. A tiny size runs on the CPU instead: times and analytic FLOP only, "
        "no counters, no Roofline\n"
    )
    return "cpu", "tiny"


def _list(cells: "Sequence[Cell]", folder: "Folder") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for number, cell in enumerate(cells, start=1):
        record = folder.find(cell.name)
        state = record.state if record else ""
        console.print(Text(f"{number:2} {cell.title:<58} {state}"))
        console.print(Text(f"   {cell.name}", style="dim"), soft_wrap=True)


def _tell_absent(cells: "Sequence[Cell]", absent: "Mapping[Framework, str]") -> None:
    """Say once for each framework that is not installed what it keeps from running."""
    counts = Counter(cell.configuration.framework for cell in cells)
    for framework, reason in absent.items():
        if number := counts[framework]:
            sys.stderr.write(f"mansard: {number} cell{'s' * (number > 1)} cannot run: {reason}\n")


def _print(
    cells: "Sequence[Cell]", done: "StudyRun", folder: "Folder", absent: "Mapping[Framework, str]"
) -> None:
    import statistics

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mansard.charts.labels import printable
    from mansard.units import format_si

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("cell", no_wrap=True)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        outcome = done.outcomes[cell.name]
        record = folder.find(cell.name)
        step = statistics.median(record.step_s) if record and record.step_s else None
        table.add_row(Text(cell.title), format_si(step, "s"), Text(outcome))
        why = None if record is None else record.reason
        if record is not None and record.on_gpu:
            why = why or record.collect_reason
        if why and why not in absent.values():  # these were told before
            reasons.setdefault(printable(why, 300), []).append(cell.title)
    console.print(table)
    for why, titles in reasons.items():
        console.print(Text(f"{titles[0] if len(titles) == 1 else f'{len(titles)} cells'}: {why}"))
    late = [cell.title for cell in cells if done.outcomes[cell.name] == "not started"]
    if late:
        cause = "interrupted" if done.interrupted else "the time is out"
        sys.stderr.write(
            f"mansard: {cause}; not run: {', '.join(late)}. The same command goes on with them\n"
        )


def _report(output: Path, machine: str | None) -> bool:
    """Write the report; whether every file of the folder could be used."""
    from mansard.charts.labels import printable
    from mansard.cli.progress import progress_bar
    from mansard.study.report import write_report

    with progress_bar() as advance:
        written = write_report(output, machine=machine, progress=advance)
    for path in written.files[:2]:
        sys.stderr.write(f"wrote {path}\n")
    for remark in written.study.remarks:
        sys.stderr.write(f"mansard: {printable(remark, 500)}\n")
    return written.study.whole
