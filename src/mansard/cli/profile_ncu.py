"""``mansard profile --with ncu``: counters of any program, through Nsight Compute."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mansard.cli import PARTIAL
from mansard.cli.options import Chip, Counters
from mansard.collect.ncu.options import (
    Caches,
    Clocks,
    Conditions,
    Graphs,
    NcuOptions,
    NvtxScope,
    Replay,
    Selection,
    Tensor,
    Times,
)

if TYPE_CHECKING:
    from mansard.collect.ncu import Collected

_WHICH, _HOW, _WHAT = "Which launches", "How they run", "What is counted and kept"
_SIGNAL_BASE = 128


def profile_with_ncu(
    command: Annotated[
        list[str],
        typer.Argument(help="The program and its arguments, after --.", metavar="PROGRAM"),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Run file to write; a folder in a parallel job."),
    ] = Path("run.parquet"),
    with_: Annotated[  # noqa: ARG001  (it led here)
        str, typer.Option("--with", metavar="ncu", help="This collector.")
    ] = "ncu",
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=1,
            rich_help_panel=_WHICH,
            help="Count so many launches of each kernel, shape and time; the others get theirs.",
        ),
    ] = None,
    kernel_name: Annotated[
        str | None,
        typer.Option(
            "--kernel-name", "-k", rich_help_panel=_WHICH, help="Name of a function, or regex:EXPR."
        ),
    ] = None,
    collectives: Annotated[
        bool,
        typer.Option(
            "--collectives",
            rich_help_panel=_WHICH,
            help="Count NCCL, NVSHMEM and such too; most hang when they are repeated.",
        ),
    ] = False,
    nvtx_include: Annotated[
        list[str] | None,
        typer.Option(
            "--nvtx-include", rich_help_panel=_WHICH, help="Only in this range, e.g. 'step/'."
        ),
    ] = None,
    nvtx_exclude: Annotated[
        list[str] | None,
        typer.Option("--nvtx-exclude", rich_help_panel=_WHICH, help="Not in this range."),
    ] = None,
    launch_skip: Annotated[
        int | None,
        typer.Option("--launch-skip", min=0, rich_help_panel=_WHICH, help="Pass over so many."),
    ] = None,
    launch_count: Annotated[
        int | None,
        typer.Option("--launch-count", min=1, rich_help_panel=_WHICH, help="Count so many."),
    ] = None,
    from_profiler_start: Annotated[
        bool,
        typer.Option(
            "--from-profiler-start",
            rich_help_panel=_WHICH,
            help="Only between cudaProfilerStart and cudaProfilerStop.",
        ),
    ] = False,
    times: Annotated[
        Times,
        typer.Option(
            "--times",
            rich_help_panel=_HOW,
            help="Times of launches: of a traced run without ncu, by nsys, or of ncu.",
        ),
    ] = Times.AUTO,
    replay: Annotated[
        Replay,
        typer.Option(
            "--replay", rich_help_panel=_HOW, help="Repeat each launch, the program, or a range."
        ),
    ] = Replay.AUTO,
    graphs: Annotated[
        Graphs, typer.Option("--graphs", rich_help_panel=_HOW, help="Kernels of a graph, or all.")
    ] = Graphs.NODE,
    clock_control: Annotated[
        Clocks, typer.Option("--clock-control", rich_help_panel=_HOW, help="none: as they are.")
    ] = Clocks.NONE,
    cache_control: Annotated[
        Caches, typer.Option("--cache-control", rich_help_panel=_HOW, help="none: as they are.")
    ] = Caches.NONE,
    nvtx_scope: Annotated[
        NvtxScope,
        typer.Option("--nvtx-scope", rich_help_panel=_HOW, help="What a push/pop range covers."),
    ] = NvtxScope.PROCESS,
    tensor: Annotated[
        Tensor,
        typer.Option("--tensor", rich_help_panel=_WHAT, help="all: 2:4 sparse work too, slower."),
    ] = Tensor.DENSE,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", rich_help_panel=_WHAT, help="Columns, e.g. 'bytes_*': faster."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", rich_help_panel=_WHAT, help="Vendor counters to keep, by pattern."),
    ] = None,
    keep_report: Annotated[
        Path | None,
        typer.Option("--keep-report", rich_help_panel=_WHAT, help="Where to keep ncu's report."),
    ] = None,
    counters: Counters = None,
    chip: Chip = None,
    ncu: Annotated[
        Path | None,
        typer.Option("--ncu", help="The ncu to use; else $MANSARD_NCU, PATH, toolkits."),
    ] = None,
) -> None:
    """Run any program under Nsight Compute and count what each kernel does.

    Clocks and caches are left as the program finds them: locked clocks and
    empty caches give rates and traffic that it never sees. The program keeps
    its output and its exit code; 3 means that a part is missing.

    Example: mansard profile --with ncu --sample 1 -- python train.py
    """
    from mansard.cli.profile import _matching

    options = NcuOptions(
        selection=Selection(
            sample=sample,
            kernel_name=kernel_name,
            collectives=collectives,
            nvtx_include=tuple(nvtx_include or ()),
            nvtx_exclude=tuple(nvtx_exclude or ()),
            launch_skip=launch_skip,
            launch_count=launch_count,
            from_start=not from_profiler_start,
        ),
        conditions=Conditions(
            replay=replay,
            graphs=graphs,
            clocks=clock_control,
            caches=cache_control,
            nvtx_scope=nvtx_scope,
        ),
        times=times,
        tensor=tensor,
        columns=_matching(columns),
        counters=counters,
        chip=chip,
        keep=tuple(keep or ()),
        keep_report=keep_report,
        ncu=ncu,
    )
    collect_and_report(command, output, options)


def collect_and_report(command: Sequence[str], output: Path, options: NcuOptions) -> None:
    """Collect, show how far it is, say what came of it, and leave with the right code.

    Raises:
        MansardError: nothing was counted, and the program did not fail.
        typer.Exit: with the code of the program, or ours for an interrupt or a partial run.
    """
    from mansard.cli.progress_ncu import shown
    from mansard.collect.ncu import collect_with_ncu

    with shown() as watch:
        collected = collect_with_ncu(command, output, options, watch=watch)
    _say(collected)
    if collected.stopped_by is not None:
        raise typer.Exit(_SIGNAL_BASE + collected.stopped_by)
    if collected.failure is not None and not collected.program_code:
        raise collected.failure
    code = collected.program_code or (PARTIAL if collected.run and collected.run.partial else 0)
    if code:
        raise typer.Exit(code)


def _say(collected: "Collected") -> None:
    lines: list[str] = []
    run = collected.run
    if run is not None:
        lines += [f"{notice.code}: {notice.message}" for notice in run.all_notices]
        spent = ", ".join(
            f"{stage} {seconds:.1f} s" for stage, seconds in collected.seconds.items()
        )
        lines.append(f"mansard: wrote {run.files[0]} ({spent})")
    elif collected.failure is not None and (collected.program_code or collected.stopped_by):
        lines.append(f"mansard: {' '.join(str(collected.failure).split())}")
    if collected.report is not None:
        lines.append(f"mansard: the report of ncu is {collected.report}")
    sys.stderr.writelines(f"{line}\n" for line in lines)


def ncu_command() -> Any:
    """The command as an object of the command line, with its own options and help."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    context = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
    app.command("profile", context_settings=context)(profile_with_ncu)
    return typer.main.get_command(app)


def takes_over(arguments: Sequence[str], params: Sequence[Any]) -> Any | None:
    """The command of this collector, where ``--with ncu`` stands before the program; else None.

    Args:
        arguments: what follows ``mansard profile``.
        params: options of the command that would run otherwise.
    """
    command = ncu_command()
    valued = {
        name
        for param in (*params, *command.params)
        for name in param.opts
        if name.startswith("-") and not param.is_flag
    }
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option, has_value, value = rest.pop(0).partition("=")
        if not has_value and option in valued and rest:
            value = rest.pop(0)
        if option == "--with":
            return command if value == "ncu" else None
    return None
