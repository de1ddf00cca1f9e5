"""A recorded text file as lines of bytes: decompressed, in UTF-8, each of bounded length."""

import codecs
import contextlib
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

from mansard.readers.sniff import open_decompressed

CHUNK_BYTES = 1 << 22
#: A longer line is no row of ncu: it is cut here, and what follows is a line of its own.
MAX_LINE_BYTES = 1 << 24
#: What unpacks to this many times its size is no recording: those shrink to a hundredth at best.
_MOST_TIMES = 400
_LEAST_BYTES = 1 << 26

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_BROKEN_STREAM = (EOFError, OSError, zlib.error, lzma.LZMAError)


class LineReader:
    """Reads lines in chunks, without their ends.

    Attributes:
        cut: why reading stopped before the end of the file; None when it did not.
    """

    def __init__(self, path: Path, *, limit: int | None = None) -> None:
        """Prepare to read ``path``; ``limit`` bounds the bytes that are read of it."""
        self._path = path
        self._left = limit
        self._unpacked = 0
        self.cut: str | None = None

    def chunks(self) -> Iterator[list[bytes]]:
        """Yield the lines, some megabytes at a time."""
        rest = b""
        for block in self._blocks():
            text = rest + block
            lines = text.split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                lines.append(rest)
                rest = b""
            yield _cleaned(lines, text)
        if rest:
            yield _cleaned([rest], rest)

    def _blocks(self) -> Iterator[bytes]:
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(open_decompressed(self._path))
            except _BROKEN_STREAM as error:
                self.cut = str(error)
                return
            block = self._read(stream)
            if block.startswith(_UTF16_MARKS):
                yield from self._decoded(block, stream)
                return
            block = block.removeprefix(_UTF8_MARK)
            while block:
                yield block
                block = self._read(stream)

    def _decoded(self, block: bytes, stream: io.BufferedIOBase) -> Iterator[bytes]:
        """UTF-16, which redirection in Windows PowerShell writes."""
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        while block:
            yield decoder.decode(block).encode("utf-8", "replace")
            block = self._read(stream)
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")

    def _read(self, stream: io.BufferedIOBase) -> bytes:
        """The next chunk. A broken end loses nothing of what came before it."""
        wanted = CHUNK_BYTES if self._left is None else min(CHUNK_BYTES, self._left)
        pieces: list[bytes] = []
        while wanted > 0 and self.cut is None:
            try:
                piece = stream.read1(wanted)
            except _BROKEN_STREAM as error:
                self.cut = str(error) or "it ends too early"
                break
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        block = b"".join(pieces)
        self._unpacked += len(block)
        if self._unpacked > max(_LEAST_BYTES, _MOST_TIMES * self._path.stat().st_size):
            self.cut = f"it unpacks to more than {_MOST_TIMES} times its size"
        if self._left is not None:
            self._left -= len(block)
        return block


def _cleaned(lines: list[bytes], text: bytes) -> list[bytes]:
    if b"\r" in text:
        lines = [line.removesuffix(b"\r") for line in lines]
    if b"\0" in text:
        lines = [line.replace(b"\0", _REPLACEMENT) for line in lines]
    if not text.isascii():
        lines = [line if line.isascii() else _as_text(line) for line in lines]
    return lines


def _as_text(line: bytes) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode(errors="replace").encode()
    return line
