"""``mansard history``: what changed over many runs, when, and with which commit."""

import json as json_format
import sys
from pathlib import Path
from typing import Annotated

import typer

from mansard.cli import PARTIAL

#: Exit code where something is slower now than it was.
SLOWER = 1


def history(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of runs over time: one Parquet file, or one folder of ranks, each.",
            show_default=False,
        ),
    ],
    top: Annotated[int, typer.Option("--top", min=1, help="Kernels shown.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print the history as JSON.")] = False,
) -> None:
    """Show how the times of a program went over many runs, and find what changed.

    Exit code 1: something became slower and still is. 3: a part could not be read.
    """
    from mansard.history import history as read_history
    from mansard.history import history_dict, history_view

    found = read_history(folder)
    if json:
        sys.stdout.write(json_format.dumps(history_dict(found), indent=2, allow_nan=False) + "\n")
    else:
        from rich.console import Console

        Console(highlight=False).print(history_view(found, top=top))
    if found.slower:
        raise typer.Exit(SLOWER)
    if found.partial:
        raise typer.Exit(PARTIAL)
