"""``mansard profile``: counters of a training step, while the program runs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from mansard.cli import PARTIAL


class Collector(StrEnum):
    """What counts."""

    CUPTI = "cupti"
    NCU = "ncu"


class CollectLevel(StrEnum):
    """How much is collected."""

    COUNTERS = "counters"
    PHASES = "phases"
    TRACE = "trace"


class Phases(StrEnum):
    """Where phases come from."""

    AUTO = "auto"
    OWN = "own"
    TORCH = "torch"
    NONE = "none"


class Then(StrEnum):
    """What the program does when all is collected."""

    CONTINUE = "continue"
    STOP = "stop"


#: Options of the program come after its name, so ours end there.
CONTEXT = {"allow_interspersed_args": False}


class ProfileCommand(TyperCommand):
    """The command; with ``--with ncu`` before the program, the one of that collector."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Read the arguments as the collector that they choose does."""
        if any(argument.startswith("--with") for argument in args):
            from mansard.cli.profile_ncu import takes_over

            other = takes_over(args, self.params)
            if other is not None:
                return other.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def profile(
    command: Annotated[
        list[str],
        typer.Argument(
            help="Python script (or module with -m) and its arguments.", metavar="PROGRAM"
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Run file to write; a folder in a parallel job."),
    ] = Path("run.parquet"),
    with_: Annotated[  # noqa: ARG001  (ncu is another command: see ProfileCommand)
        Collector,
        typer.Option(
            "--with",
            help="cupti: inside a Python program. ncu: any program; its options are in "
            "'mansard profile --with ncu --help'.",
        ),
    ] = Collector.CUPTI,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="PROGRAM is a module, as in python -m.")
    ] = False,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Iterations to record.")] = 1,
    warmup: Annotated[
        int, typer.Option("--warmup", min=0, help="Iterations before the first.")
    ] = 3,
    level: Annotated[
        CollectLevel,
        typer.Option("--level", help="counters: each launch; phases: each phase; trace: times."),
    ] = CollectLevel.COUNTERS,
    phases: Annotated[
        Phases,
        typer.Option("--phases", help="auto: NVTX and mansard.phase(), else PyTorch's."),
    ] = Phases.AUTO,
    iterations_by: Annotated[
        str,
        typer.Option(
            "--iterations-by",
            help="optimizer, cudaProfilerStart, 'range NAME' or 'call module:function'.",
        ),
    ] = "optimizer",
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="Columns to make, by pattern, e.g. 'bytes_*'."),
    ] = None,
    operators: Annotated[
        bool,
        typer.Option("--operators/--no-operators", help="Name PyTorch's operators and modules."),
    ] = True,
    then: Annotated[
        Then, typer.Option("--then", help="What the program does when all is collected.")
    ] = Then.CONTINUE,
) -> None:
    """Run a Python program and count what each kernel of one iteration does.

    The program is not changed. Its first iterations warm up, one is traced, and each further one
    is a pass of the hardware counters; then it goes on at full speed.

    Example: mansard profile -o run.parquet train.py --epochs 1
    """
    from mansard.collect.boundaries import Rule
    from mansard.collect.instruments import Level
    from mansard.collect.program import (
        ProgramOptions,
        profile_program,
        run_module,
        run_script,
    )
    from mansard.collect.recording import ProcedureOptions
    from mansard.collect.session import ProfileOptions
    from mansard.collect.watch import PhaseRule

    options = ProgramOptions(
        profile=ProfileOptions(
            procedure=ProcedureOptions(level=Level(level.value), steps=steps, warmup=warmup),
            phases=PhaseRule(phases.value),
            columns=_matching(columns),
            operators=operators,
            last=True,
        ),
        iterations_by=Rule.parse(iterations_by),
        then=then.value,
    )
    run = run_module if module else run_script
    taken = profile_program(command, output, options=options, run=run)
    if taken.run is None:
        raise taken.failure or AssertionError("a profile without a run has a failure")
    for notice in taken.run.all_notices:
        sys.stderr.write(f"{notice.code}: {notice.message}\n")
    if taken.run.partial:
        raise typer.Exit(PARTIAL)


def _matching(patterns: list[str] | None) -> tuple[str, ...] | None:
    """Columns that counters can make and that match a pattern."""
    import fnmatch

    from mansard.errors import UsageError
    from mansard.model.columns import QUANTITY_COLUMNS

    if not patterns:
        return None
    names = [column.name for column in QUANTITY_COLUMNS]
    found = [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if not found:
        raise UsageError(f"no column matches {', '.join(patterns)}; there are {', '.join(names)}")
    return tuple(dict.fromkeys(("duration_s", "sm_clock_hz", *found)))
