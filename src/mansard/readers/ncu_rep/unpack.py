"""From what the user gave to a seekable, plain report: files, streams, gzip, xz and zstd.

What is compressed goes to a temporary file first, since later blocks name the metrics of earlier
ones. What a cut stream still gives is kept; the reader then says how much is missing.
"""

import contextlib
import gzip
import io
import lzma
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from mansard.errors import FormatError, InputError

#: Most bytes that a compressed report may unpack to; the largest real ones are near 1 GiB.
UNPACKED_LIMIT = 16 << 30
#: Most memory that an xz stream may ask for (its highest preset takes 65 MiB).
_XZ_MEMORY = 256 << 20
_PIECE = 1 << 20
#: A .ncu-repz that was packed once more is unpacked twice, no deeper.
_LAYERS = 2


@contextlib.contextmanager
def open_plain(source: Path | str | IO[bytes], *, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """Open a report as a seekable file without compression.

    Args:
        source: a path, or a stream of bytes (standard input, for example).
        name: what to call it in messages.

    Yields:
        The file, at its start, and its size in bytes.

    Raises:
        InputError: it cannot be opened, or unpacks to more than the limit.
        FormatError: zstd is needed and not there, or nothing could be unpacked.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(source, (str, Path)):
            try:
                file: IO[bytes] = stack.enter_context(Path(source).open("rb"))
            except OSError as error:
                raise InputError(f"{name} cannot be opened: {error.strerror}") from error
        elif source.seekable():
            file = source
        else:
            file = _store(iter(lambda: source.read(_PIECE), b""), stack, name=name)
        for _ in range(_LAYERS):
            file.seek(0)
            pieces = _decompressor(file.read(6))
            file.seek(0)
            if pieces is None:
                break
            file = _store(pieces(file), stack, name=name)
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        try:
            yield file, size
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from error


def _decompressor(head: bytes) -> Callable[[IO[bytes]], Iterator[bytes]] | None:
    if head.startswith(b"\x1f\x8b"):
        return _gzip_pieces
    if head.startswith(b"\xfd7zXZ\0"):
        return _xz_pieces
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd_pieces
    return None


def _store(pieces: Iterator[bytes], stack: contextlib.ExitStack, *, name: str) -> IO[bytes]:
    """Write the pieces to a temporary file that goes away with the stack."""
    copy: IO[bytes] = tempfile.TemporaryFile(prefix="mansard-")  # noqa: SIM115  (the stack closes it)
    stack.enter_context(copy)
    # Half of what is free: a bomb must not fill the disk of the machine.
    limit = min(UNPACKED_LIMIT, shutil.disk_usage(tempfile.gettempdir()).free // 2)
    size = 0
    with contextlib.suppress(EOFError):
        for piece in pieces:
            size += len(piece)
            if size > limit:
                raise InputError(
                    f"{name} unpacks to more than {limit} bytes: unpack it by hand, to a disk "
                    "with room, and give the plain .ncu-rep"
                )
            copy.write(piece)
    if size == 0:
        raise FormatError(f"{name} is compressed, and damaged from its start: nothing came out")
    return copy


def _gzip_pieces(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as packed:
        while piece := _until_damage(packed.read1):
            yield piece


def _xz_pieces(file: IO[bytes]) -> Iterator[bytes]:
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    while waiting := file.read(_PIECE):
        while waiting or not decoder.needs_input:
            try:
                piece = decoder.decompress(waiting, _PIECE)
            except lzma.LZMAError:
                return
            yield piece
            waiting = b""
            if decoder.eof:
                # Several streams in a row, with padding in between (cat a.xz b.xz).
                waiting = decoder.unused_data.lstrip(b"\0")
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _zstd_pieces(file: IO[bytes]) -> Iterator[bytes]:
    packed = _zstd_stream(file)
    while piece := _until_damage(packed.read):
        yield piece


def _zstd_stream(file: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415
    except ImportError:
        pass
    else:
        return zstd.ZstdFile(file)  # type: ignore[no-any-return,unused-ignore]
    try:
        import zstandard  # noqa: PLC0415  (optional)
    except ImportError as error:
        raise FormatError(
            "the report is compressed with zstd (.ncu-repz), which needs Python 3.14 or the "
            "package zstandard: pip install 'mansard[zstd]'. Or write it out as plain .ncu-rep "
            "with ncu --import FILE --export OUT",
            slug="zstd",
        ) from error
    reader: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return reader


def _until_damage(read: Callable[[int], bytes]) -> bytes:
    """The next piece; nothing once the stream is damaged or cut."""
    try:
        return read(_PIECE)
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"the file cannot be read: {error.strerror}") from error
        return b""
    except Exception as error:
        # zstd errors belong to an optional library: told by name, never imported for it.
        if type(error).__name__ in ("ZstdError", "ZstdFileError"):
            return b""
        raise
