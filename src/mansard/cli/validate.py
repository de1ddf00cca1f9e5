"""``mansard validate``: are the counters of this GPU what they are taken for?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mansard.cli import INTERRUPTED

if TYPE_CHECKING:
    from mansard.validate import Validation

#: A finding does not hold.
DEVIATES = 1


def validate(
    device: Annotated[str, typer.Option("--device", "-d", help="cuda:N.")] = "cuda:0",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only cases whose name or group contains this, or matches *; repeat."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File (JSON) to write; - is standard output."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check counter definitions with kernels of known FLOP and bytes.

    Exit code 0: all that was compared holds; 1: something does not; 2: there is no GPU that gives
    counters. Ctrl-C keeps what is finished and exits with 130.
    """
    import sys

    from mansard.cli.progress import progress_bar
    from mansard.cli.validate_table import print_validation
    from mansard.cli.write import write_whole
    from mansard.validate import validate as measure

    _check(output)
    with progress_bar() as advance:
        found = measure(device, only=tuple(only or ()), progress=advance)
    to_stdout = json or str(output) == "-"
    print_validation(found, to_stderr=to_stdout)
    content = _json(found)
    if to_stdout:
        write_whole(Path("-"), lambda stream: stream.write(content))
    if output is not None and str(output) != "-":
        write_whole(output, lambda stream: stream.write(content))
        sys.stderr.write(f"wrote {output}\n")
    if found.partial:
        raise typer.Exit(INTERRUPTED)
    if not found.holds:
        raise typer.Exit(DEVIATES)


def _check(output: Path | None) -> None:
    """Say before the long run what would fail after it."""
    import os

    from mansard.errors import OutputError

    if output is None or str(output) == "-":
        return
    folder = output.absolute().parent
    if output.exists() and not output.is_file():
        raise OutputError(f"cannot write {output}: it is not a regular file; give a file name")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {output}: {folder} is no folder that can be written to")


def _json(found: "Validation") -> bytes:
    import msgspec

    fields = {"schema": found.schema, **msgspec.to_builtins(found, order="deterministic")}
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"
