"""Writing so that nothing is lost: a temporary file beside the target, then a rename."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from mansard.errors import OutputError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it takes the place of ``path`` if all went well.

    On any error the temporary file goes and ``path`` stays as it was.

    Raises:
        OutputError: where the folder does not exist or cannot be written to, or where ``path`` is
            a folder, a device or a pipe, which a rename would destroy.
    """
    try:
        target = path.resolve()  # a link stays a link; what it points to is replaced
        known = path.stat() if path.exists() else None
        if known is not None and not path.is_file():
            raise OutputError(f"cannot write {path}: it is not a regular file; give a file name")
        if not target.parent.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {path.parent}")
    except (OSError, RuntimeError) as error:  # RuntimeError: links that point to each other
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write {str(path)[:200]}: {reason}") from error
    # Short, so that a target name of the greatest length still has room for it.
    part = target.with_name(f".{target.name[:32]}.{secrets.token_hex(6)}.part")
    try:
        yield part
        if known is not None:
            part.chmod(stat.S_IMODE(known.st_mode))  # what was private stays so
        _flush(part)
        part.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Bring the content to the disk before the name points to it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
