"""A progress bar on standard error, for commands that take long."""

import contextlib
import sys
from collections.abc import Callable, Iterator

#: Called with what is being done and the share that is done.
Advance = Callable[[str, float], None]


@contextlib.contextmanager
def progress_bar() -> Iterator[Advance]:
    """Show what is being done, how much is done and the time left; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description:36.36}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("starting", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)
