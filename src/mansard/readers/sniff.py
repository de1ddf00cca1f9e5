"""What a file is, told by its first bytes and never by its name alone."""

import gzip
import io
import lzma
import zlib
from enum import StrEnum
from pathlib import Path

from mansard.errors import InputError

#: Enough to see past the program output that ncu's live mode mixes in; bounded on purpose.
_LOOK_BYTES = 1 << 20
_PIECE = 1 << 16
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
#: First bytes of what is read through a decompressor.
COMPRESSED = (_GZIP, _XZ)


class FileKind(StrEnum):
    """The inputs that Mansard tells apart."""

    RUN = "Parquet run"
    NCU_REPORT = "Nsight Compute report"
    NCU_CSV = "Nsight Compute CSV"
    MACHINE = "machine file"
    OTHER = "unknown"


def sniff(path: Path) -> FileKind:
    """Tell what a file is from its content.

    Args:
        path: a regular file, plain or compressed with gzip or xz.

    Raises:
        InputError: the file cannot be opened, or is empty.
    """
    try:
        with path.open("rb") as raw:
            head = raw.read(4)
        content = head if head in (b"", b"PAR1") else _beginning(path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not content:
        raise InputError(f"{path} is empty: nothing was recorded, or the copy was cut short")
    return sniff_bytes(content)


def _beginning(path: Path) -> bytes:
    """The first bytes; of a stream that is cut early what still comes out, as the readers take."""
    found = bytearray()
    with open_decompressed(path) as stream:
        try:
            while len(found) < _LOOK_BYTES and (piece := stream.read1(_PIECE)):
                found += piece
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
            if not found:
                raise
    return bytes(found)


def sniff_bytes(content: bytes) -> FileKind:
    """Tell what (decompressed) content is; see ``sniff``."""
    if content.startswith(b"PAR1"):
        return FileKind.RUN
    # 28 B5 2F FD opens a zstd frame: .ncu-repz. NVR is the report container itself.
    if content.startswith((b"NVR\0", b"\x28\xb5\x2f\xfd")):
        return FileKind.NCU_REPORT
    text = (
        content.replace(b"\0", b"") if content.startswith((b"\xff\xfe", b"\xfe\xff")) else content
    )
    if b'"ID"' in text or b"Kernel Name" in text or b"==PROF==" in text or b"==ERROR==" in text:
        return FileKind.NCU_CSV
    if text.lstrip().startswith(b"{") and b"mansard-machine/" in text:
        return FileKind.MACHINE
    return FileKind.OTHER


def open_decompressed(path: Path) -> io.BufferedIOBase:
    """Open a file for reading bytes, through gzip or xz where its content says so."""
    with path.open("rb") as raw:
        head = raw.read(6)
    if head.startswith(_GZIP):
        return gzip.open(path, "rb")
    if head.startswith(_XZ):
        return lzma.open(path, "rb")
    return path.open("rb")
