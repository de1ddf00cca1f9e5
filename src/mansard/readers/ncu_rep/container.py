"""The container of a report: file header, blocks, entries. Reads forward and never past a cut.

Layout (version 7): the magic bytes, a sized file header, then blocks to the end of the file.
A block is a sized header and a payload of sized entries: sources (machine code, most of the
bytes, skipped unread), results, range results, results of graphs, and what newer versions add.
Source: Customization Guide, "Report File Format"; for graphs, recorded reports of 2025.3.
"""

import dataclasses
import io
import struct
from collections.abc import Iterator
from typing import IO, Literal

from mansard.errors import FormatError
from mansard.readers.ncu_rep.wire import Message

MAGIC = b"NVR\0"
#: The only container version seen, from 2019 to 2026.
KNOWN_VERSION = 7
#: What a list of a block says of its results; None for the list of all others.
Listed = Literal["range", "graph"] | None
_SIZE = struct.Struct("<I")
_LARGEST = 2**32 - 1
#: First bytes of what people mistake for a report.
_FOREIGN = (
    (b"SQLite format 3", "an SQLite database (an export of Nsight Systems?)"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x7fELF", "a program or a cubin"),
    (b"PAR1", "a Parquet file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x1f\x8b", "compressed more than twice"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """Header of one block, and where its payload lies.

    Attributes:
        sources: number of source entries, which come first.
        results: number of results.
        range_results: number of range results, which come next.
        graph_results: number of results of whole graphs, which come last.
        details: session facts, part of a message that is spread over blocks.
        strings: what the block adds to the table of metric names.
        process: id of the process.
        host: its host.
        start: position of the payload.
        end: position after the payload, as announced.
    """

    sources: int
    results: int
    range_results: int
    graph_results: int
    details: Message | None
    strings: list[str]
    process: int | None
    host: str | None
    start: int
    end: int


class Container:
    """A report file, read block by block.

    Attributes:
        version: of the container; None when the file starts at a block.
        cut_at: position of the damage that ended the reading, or None.
        lost_results: results that were announced and are not there.
        lost_unknown: whether the damage hides how many results are lost.
    """

    def __init__(self, file: IO[bytes], size: int, *, name: str) -> None:
        """Read the file header.

        Raises:
            FormatError: it is no report.
        """
        self.version: int | None = None
        self.cut_at: int | None = None
        self.lost_results = 0
        self.lost_unknown = False
        self._file = file
        self._size = size
        self._start = 0
        head = file.read(len(MAGIC))
        file.seek(0)
        if head == MAGIC:
            self._read_file_header(name)
        elif not self._starts_at_a_block():
            raise self.not_a_report(name)

    def blocks(self) -> Iterator[Block]:
        """Every block whose header is whole, in file order. Ask for its results before the next."""
        at = self._start
        while at < self._size:
            lost = self.lost_results
            try:
                block = self._block(at)
            except FormatError:
                self.cut_at, self.lost_unknown = at, True
                return
            yield block
            at = block.end
            if at > self._size:
                self.cut_at, self.lost_unknown = self._size, self.lost_results == lost

    def results(self, block: Block) -> Iterator[tuple[bytes, Listed]]:
        """The results of a block, and which of its lists each stands in.

        Entries beyond those that the header counts are results of a sort that it does not name.
        """
        at, end = block.start, min(block.end, self._size)
        last_source = block.sources
        first_range = last_source + block.results
        first_graph = first_range + block.range_results
        total = first_graph + block.graph_results
        entry = 0
        while at + _SIZE.size <= end:
            self._file.seek(at)
            (size,) = _SIZE.unpack(self._file.read(_SIZE.size))
            at += _SIZE.size
            if size == 0 or size > end - at:
                break
            if entry >= last_source:
                listed: Listed = None
                if first_range <= entry < total:
                    listed = "range" if entry < first_graph else "graph"
                yield self._file.read(size), listed
            at += size
            entry += 1
        self.lost_results += max(0, total - max(entry, last_source))

    def not_a_report(self, name: str) -> FormatError:
        """The error for a file that is something else: says what it looks like."""
        return FormatError(_what_it_is(self._file, self._size, name))

    def _read_file_header(self, name: str) -> None:
        try:
            header, self._start = self._sized_message(len(MAGIC))
        except FormatError as error:
            raise FormatError(
                f"{name} begins like a report of Nsight Compute and is cut off after "
                f"{self._size} bytes: copy it again, or profile again"
            ) from error
        self.version = header.integer(1)

    def _starts_at_a_block(self) -> bool:
        """Whether the file lacks the magic and its first block is plausible all the same."""
        try:
            block = self._block(0)
        except FormatError:
            return False
        return block.end <= self._size

    def _block(self, at: int) -> Block:
        header, start = self._sized_message(at)
        counts = [header.integer(number) for number in (1, 2, 5)]
        if all(count is None for count in counts):
            raise FormatError("this is no block header")
        sources, results, payload = (count or 0 for count in counts)
        ranges, graphs = (header.integer(number) or 0 for number in (7, 9))
        if max(sources, results, ranges, graphs, payload) > _LARGEST:
            raise FormatError("a count of the block header has more than 32 bits")
        # A damaged table of names would shift all later names: no going on after it.
        table = header.message(4)
        owner = _whole_message(header, 6)
        return Block(
            sources=sources,
            results=results,
            range_results=ranges,
            graph_results=graphs,
            details=_whole_message(header, 3),
            strings=[] if table is None else [_text(chunk) for chunk in table.chunks(1)],
            process=None if owner is None else owner.integer(1),
            host=None if owner is None else owner.text(2),
            start=start,
            end=start + payload,
        )

    def _sized_message(self, at: int) -> tuple[Message, int]:
        """A message behind its size, and the position after it."""
        if self._size - at < _SIZE.size:
            raise FormatError("a size is cut off")
        self._file.seek(at)
        (size,) = _SIZE.unpack(self._file.read(_SIZE.size))
        at += _SIZE.size
        if size == 0 or size > self._size - at:
            raise FormatError("a message is longer than the file")
        return Message(self._file.read(size)), at + size


def _whole_message(header: Message, number: int) -> Message | None:
    """A part that the rest can do without: None when it is damaged."""
    try:
        return header.message(number)
    except FormatError:
        return None


def _text(chunk: bytes) -> str:
    return chunk.decode("utf-8", "replace")


def _what_it_is(file: IO[bytes], size: int, name: str) -> str:
    file.seek(0, io.SEEK_SET)
    head = file.read(64)
    if size == 0:
        found = "empty"
    else:
        found = next((what for start, what in _FOREIGN if head.startswith(start)), "")
    if not found:
        printable = all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head)
        found = "text (ncu CSV is read as such)" if printable else "of a kind that is not known"
    return f"{name} is no report of Nsight Compute (.ncu-rep): it is {found}"
