"""Standard input and named pipes as files, since a reader may need a second pass."""

import errno
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO

from mansard.errors import FormatError, InputError
from mansard.readers.sniff import COMPRESSED, FileKind, sniff_bytes

#: Name of standard input among the sources, and what messages call it.
STANDARD_INPUT = "-"
_NAME = "standard input"
_PIECE = 1 << 20


def on_disk(source: Path | str, scratch: Path) -> Path:
    """Where the content of a source lies: itself, or a copy of what came through a pipe.

    Args:
        source: a path, or ``-``.
        scratch: folder for the copy.

    Raises:
        InputError: the name is empty or cannot be one, nothing came, or more than the disk holds.
        FormatError: what begins to come is nothing that Mansard reads.
    """
    if source == "":
        raise InputError("an input has an empty name: is a variable of the shell not set?")
    try:
        if str(source) == STANDARD_INPUT:
            if sys.stdin is None:
                raise InputError("standard input is closed: give a file")
            return _copied(sys.stdin.buffer, scratch, _NAME)
        path = Path(source)
        if not path.is_fifo():
            return path
        with path.open("rb") as pipe:
            return _copied(pipe, scratch, path.name)
    except ValueError as error:
        raise InputError(f"{str(source)[:200]} cannot be the name of a file: {error}") from error
    except OSError as error:
        name = _NAME if str(source) == STANDARD_INPUT else str(source)[:200]
        raise unreadable(name, error) from error


def unreadable(name: str, error: OSError) -> InputError:
    """The error for an input, or its temporary copy, that the system does not give us."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(
            f"{name} needs more room for temporary files than {tempfile.gettempdir()} has: free "
            "some, or name another folder with TMPDIR",
            slug="disk-full",
        )
    return InputError(f"{name} cannot be read: {error.strerror or error}")


def _copied(stream: IO[bytes], scratch: Path, name: str) -> Path:
    start = io.BytesIO()
    # A pipe gives what is there, not as much as was asked for.
    while start.tell() < _PIECE and (piece := stream.read(_PIECE - start.tell())):
        start.write(piece)
    if not start.tell():
        raise InputError(f"{name} is empty: nothing was recorded, or the program before it failed")
    content = start.getvalue()
    if not content.startswith(COMPRESSED) and sniff_bytes(content) is FileKind.OTHER:
        # It may be endless: nothing is gained by waiting for the rest.
        raise FormatError(
            f"{name} is neither a run (Parquet), nor an Nsight Compute report (.ncu-rep), nor the "
            "output of ncu --csv"
        )
    folder = scratch / f"pipe-{len(list(scratch.glob('pipe-*')))}"
    folder.mkdir()
    copy = folder / name
    left = shutil.disk_usage(scratch).free // 2 - start.tell()
    with copy.open("wb") as target:
        target.write(content)
        while piece := stream.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise InputError(
                    f"{name} gives more than half of the room on the disk of {scratch.parent}: "
                    "write it to a file first"
                )
            target.write(piece)
    return copy
