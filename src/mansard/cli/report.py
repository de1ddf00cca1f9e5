"""``mansard report``: how near each kernel is to which roof."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mansard.cli import PARTIAL
from mansard.cli.options import Chip, Counters, HalfWeights, Sources
from mansard.errors import UsageError

if TYPE_CHECKING:
    from mansard.model.analysis import Analysis


_PICTURES = (".png", ".svg", ".pdf")


class By(StrEnum):
    """What the rows of the table are."""

    KERNEL = "kernel"
    FAMILY = "family"
    PHASE = "phase"
    RANK = "rank"
    MODULE = "module"
    LAYER = "layer"
    OPERATOR = "operator"


class Figure(StrEnum):
    """The pictures of a report."""

    ROOFLINE = "roofline"
    FLOORS = "floors"
    TIME = "time"


class TimeRule(StrEnum):
    """How the time of a kernel name is summed."""

    LAUNCH = "launch"
    PAPER = "paper"


class Names(StrEnum):
    """What makes two launches the same kernel."""

    FULL = "full"
    SHORT = "short"


def report(
    sources: Sources,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            help="Machine file, shipped name (v100-paper), theoretical, or none.",
        ),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="Rows of the table.")] = By.KERNEL,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="Write .html, .png, .svg, .pdf, .csv or .json instead; repeatable; "
            "- is stdout (JSON).",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    figure: Annotated[Figure, typer.Option("--figure", help="Picture to draw.")] = (
        Figure.ROOFLINE
    ),
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of the table.")] = 20,
    names: Annotated[Names, typer.Option("--names", help="Group by full or short name.")] = (
        Names.FULL
    ),
    time_rule: Annotated[
        TimeRule, typer.Option("--time-rule", help="paper: cycles over mean clock, per name.")
    ] = TimeRule.LAUNCH,
    counters: Counters = None,
    chip: Chip = None,
    half_weights: HalfWeights = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", help="duckdb; spark, spark://HOST:PORT or spark:MASTER for huge runs."
        ),
    ] = "duckdb",
) -> None:
    """Place every kernel of a run under its roofs.

    Takes any input that Mansard reads. Exit code 3 means that a part could not be read.
    """
    from mansard import readers
    from mansard.analysis import AnalysisOptions, analyze
    from mansard.analysis.spark import scan_with
    from mansard.cli.write import FORMATS, check_targets, write_report
    from mansard.store.choose_machine import machine_for

    if json and any(str(target) == "-" for target in output or ()):
        raise UsageError("--json and -o - both write to standard output: give one of them")
    check_targets(output or (), sources, FORMATS)
    options = readers.ImportOptions(
        counters=counters, chip=chip, half_weights=half_weights.value if half_weights else None
    )
    run = readers.open(*sources, options=options)
    chosen, told = machine_for(run, machine)
    with scan_with(engine, run) as scan:
        analysis = analyze(
            run,
            chosen,
            options=AnalysisOptions(time_rule=time_rule.value, names=names.value),
            notices=told,
            scan=scan,
        )
    run = analysis.run or run  # without what turned out to be damaged
    if json or output:
        for line in _first_of_all(analysis):
            sys.stderr.write(f"mansard: {line}\n")
    if json:
        write_report(analysis, Path("-"), suffix=".json")
    for target in output or ():
        write_report(analysis, target, by=by.value, figure=figure.value, run=run)
        if str(target) != "-":
            drawn = by is not By.KERNEL and target.suffix.lower() in _PICTURES
            what = f" (of kernels; --by {by.value} is for tables)" if drawn else ""
            sys.stderr.write(f"wrote {target}{what}\n")
    if not json and not output:
        _print(analysis, by=by.value, top=top)
    if run.partial:
        raise typer.Exit(PARTIAL)


def _print(analysis: "Analysis", *, by: str, top: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from mansard.charts.ranks_view import fleet_view
    from mansard.charts.terminal import report_view

    console = Console(highlight=False)
    for line in _first_of_all(analysis):
        console.print(Text(f"{line}\n"))
    console.print(report_view(analysis, by=by, top=top))
    if analysis.fleet is not None:
        console.print(fleet_view(analysis))


def _first_of_all(analysis: "Analysis") -> Iterator[str]:
    """What makes every percentage wrong is told before them, and with the other warnings again."""
    from mansard.charts.labels import printable

    for notice in analysis.notices:
        if notice.code == "other-machine":
            yield f"warning: {printable(notice.message, 1000)}"
