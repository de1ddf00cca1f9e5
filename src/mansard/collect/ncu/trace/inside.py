"""The trace from inside a Python program: ``python -m mansard.collect.ncu.trace.inside ...``.

For machines without a C compiler. Writes the same files as the injected library.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mansard.collect.cupti.activity import ActivityRecorder
from mansard.collect.cupti.library import load_cupti
from mansard.collect.ncu.trace import layout
from mansard.collect.program import run_module, run_script
from mansard.errors import MansardError


def main(arguments: Sequence[str]) -> None:
    """Run the rest of the command line as Python would, traced.

    Args:
        arguments: the folder for the trace, then what follows ``python``: a script, or ``-m`` and
            a module, or ``-c`` and code; and its arguments.
    """
    folder, *command = arguments
    with traced(Path(folder) / str(os.getpid())):
        _run(command)


@contextlib.contextmanager
def traced(folder: Path) -> Iterator[None]:
    """Record what the block runs, and write it in any case."""
    folder.mkdir(parents=True)
    try:
        recorder = ActivityRecorder(load_cupti())
        recorder.start(layout.KINDS)
    except MansardError as error:
        (folder / layout.FAULTS).write_text(f"start: {error}\n")
        yield
        return
    try:
        yield
    finally:
        write_records(recorder.stop(), folder)


def write_records(records: Sequence[Any], folder: Path) -> None:
    """Write records as the injected library does."""
    known: dict[bytes, int] = {}
    with contextlib.ExitStack() as stack:
        names = stack.enter_context((folder / layout.NAMES).open("wb"))
        files = {
            kind: stack.enter_context((folder / f"{kind}.bin").open("wb")) for kind in layout.KINDS
        }
        for record in records:
            raw = bytearray(record)
            for field in layout.TEXTS:
                if not hasattr(record, field):
                    continue
                text = getattr(record, field)
                if text is not None and text not in known:
                    known[text] = layout.hash_of(text)
                    names.write(layout.HEAD.pack(known[text], len(text)) + text)
                at = getattr(type(record), field).offset
                raw[at : at + 8] = (0 if text is None else known[text]).to_bytes(8, "little")
            files[record.kind].write(raw)


def _run(command: Sequence[str]) -> None:
    first, *rest = command
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    elif first == "-m":
        run_module(rest)
    else:
        run_script(command)


if __name__ == "__main__":
    main(sys.argv[1:])
