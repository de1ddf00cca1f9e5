"""How far a collection with ncu is: one line on standard error, where that is a terminal."""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mansard.collect.ncu.count import Progress, Watcher

_STAGES = {
    "trace": "tracing without counters",
    "count": "counting",
    "write": "reading the report",
}
_NAME = 24


@contextlib.contextmanager
def shown() -> "Iterator[Watcher]":
    """Show progress while the block runs; give what takes it.

    The program writes to the same terminal, untouched: a line of it may stand where ours was.
    """
    from rich import progress as bars
    from rich.console import Console

    console = Console(file=sys.stderr)
    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(bar_width=12),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    if not console.is_terminal:
        yield _ignore
        return
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def watch(progress: "Progress") -> None:
            bar.update(
                task,
                description=described(progress),
                completed=progress.step.kernels,
                total=progress.expected,
            )

        yield watch


def described(progress: "Progress") -> str:
    """The stage, and in it the kernel and the pass."""
    stage = _STAGES[progress.stage]
    step = progress.step
    if progress.stage != "count" or step.name is None:
        return stage
    name = step.name if len(step.name) <= _NAME else f"{step.name[: _NAME - 3]}..."
    if step.current_pass is None:
        return f"{stage} {name}"
    return f"{stage} {name}, pass {step.current_pass}/{step.passes}"


def _ignore(_progress: "Progress") -> None:
    """Nobody looks."""
