"""The rows of a file that may hold anything else as well, sorted out by their shape.

A row is a record with a field for each column of the header and a launch ID. Whatever else stands
in the file (output of the program, ncu's own lines, rows cut short) is counted, never guessed at.
"""

import collections
import contextlib
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

from mansard.errors import FormatError
from mansard.readers.ncu_csv.header import Header, find_header, find_record, plain_row_test
from mansard.readers.ncu_csv.lines import MAX_LINE_BYTES, LineReader
from mansard.readers.ncu_csv.part import Part

#: Nobody appends profiles with more different headers; every part is an open file.
_MAX_PARTS = 64
#: A name may hold newlines, but a quote that is never closed must not swallow the file.
_MAX_ROW_LINES = 1000
_MAX_MESSAGES = 1000
_MAX_MESSAGE_BYTES = 2000
_BUFFER_BYTES = 1 << 20
_MESSAGE = re.compile(rb"==(?:ERROR|WARNING|PROF)== ?")


@dataclasses.dataclass(slots=True)
class Found:
    """What a file holds.

    Attributes:
        parts: its rows, by header.
        headers: how many headers it has.
        messages: what ncu printed about itself, each once, in order.
        skipped: number of lines of anybody else.
        broken: number of lines that are rows with a wrong number of fields, or pieces of rows.
        first_broken: line of the first of them.
        cut: why reading stopped early; None when it did not.
    """

    parts: list[Part] = dataclasses.field(default_factory=list)
    headers: int = 0
    messages: dict[str, None] = dataclasses.field(default_factory=dict)
    skipped: int = 0
    broken: int = 0
    first_broken: int = 0
    cut: str | None = None


def find_rows(path: Path, scratch: Path) -> Found:
    """Sort out the rows of a file.

    Args:
        path: the file, plain or compressed.
        scratch: an existing folder for the rows, as long as they are needed.
    """
    with contextlib.ExitStack() as stack:
        return _Sorter(path.name, scratch, stack).sort(LineReader(path))


class _Sorter:
    def __init__(self, name: str, scratch: Path, stack: contextlib.ExitStack) -> None:
        self._name = name
        self._scratch = scratch
        self._stack = stack
        self._found = Found()
        self._parts: dict[tuple[Header, tuple[str, ...] | None], Part] = {}
        self._header: Header | None = None
        self._part: Part | None = None
        self._is_plain: Callable[[bytes], bool] = lambda _: False
        self._rows = 0
        self._line = 0
        self._pending: list[bytes] = []
        self._queue: collections.deque[bytes] = collections.deque()

    def sort(self, reader: LineReader) -> Found:
        for lines in reader.chunks():
            self._take_lines(lines)
        while self._pending:
            self._give_up()
            self._drain()
        self._found.cut = reader.cut
        self._found.parts = list(self._parts.values())
        return self._found

    def _take_lines(self, lines: list[bytes]) -> None:
        """Nearly all lines of a large file are plain rows: these are written together."""
        plain: list[bytes] = []
        for line in lines:
            self._line += 1
            if not line and not self._pending:
                continue
            if self._part is not None and not self._pending and self._is_plain(line):
                plain.append(line)
                continue
            self._add(plain)
            plain = []
            self._queue.append(line)
            self._drain()
        self._add(plain)

    def _drain(self) -> None:
        while self._queue:
            self._take(self._queue.popleft())

    def _take(self, line: bytes) -> None:
        if self._pending:
            self._continue(line)
            return
        header = find_header(line)
        if header is not None:
            self._begin(line, *header)
            return
        if self._header is None:
            self._skip(line)
            return
        fields = self._header.fields(line)
        if fields is not None and self._accept(line, fields):
            return
        if line.startswith(b'"') and line.count(b'"') % 2:
            self._pending = [line]
        else:
            self._leave_over(line, self._header)

    def _leave_over(self, line: bytes, header: Header) -> None:
        """A line that is no row; but a row may stand behind what a program printed."""
        behind = find_record(line, header)
        if behind is not None:
            start, fields = behind
            self._skip(line[:start])
            self._accept(line[start:], fields)
        elif header.resembles_row(line):
            self._found.broken += 1
            self._found.first_broken = self._found.first_broken or self._line
            self._note(line)
        else:
            self._skip(line)

    def _begin(self, line: bytes, start: int, header: Header) -> None:
        """A header: the first, or that of a profile appended to the one before."""
        self._skip(line[:start])
        self._found.headers += 1
        self._header, self._part = header, None
        self._is_plain = plain_row_test(header)

    def _accept(self, record: bytes, fields: list[str]) -> bool:
        """Take a record as row, or as the row of units that may follow a header."""
        header = self._header
        if header is None:
            return False
        if header.is_launch(fields):
            self._part = self._part or self._open(header, None)
            self._add([record])
            return True
        place = header.role("id")
        if self._part is None and not header.is_long and place is not None and not fields[place]:
            self._part = self._open(header, tuple(unit.strip() for unit in fields))
            return True
        return False

    def _open(self, header: Header, units: tuple[str, ...] | None) -> Part:
        if (header, units) not in self._parts:
            if len(self._parts) >= _MAX_PARTS:
                raise FormatError(
                    f"{self._name} holds more than {_MAX_PARTS} different headers: "
                    "give the profiles as files of their own"
                )
            path = self._scratch / f"part-{len(self._parts)}.csv"
            writer = self._stack.enter_context(path.open("wb", buffering=_BUFFER_BYTES))
            self._parts[header, units] = Part(header, units, path, writer)
        return self._parts[header, units]

    def _add(self, records: list[bytes]) -> None:
        if self._part is not None and records:
            self._part.add(records, first=self._rows, profile=self._found.headers - 1)
            self._rows += len(records)

    def _continue(self, line: bytes) -> None:
        """A row whose quotes are still open goes on, unless this line is something of its own."""
        header = self._header
        own = self._is_plain(line) or _MESSAGE.match(line) is not None
        too_long = (
            len(self._pending) >= _MAX_ROW_LINES
            or sum(map(len, self._pending)) + len(line) > MAX_LINE_BYTES
        )
        if own or header is None or too_long:
            self._queue.appendleft(line)
            self._give_up()
            return
        self._pending.append(line)
        if line.count(b'"') % 2 == 0:
            return
        record = b"\n".join(self._pending)
        fields = header.fields(record)
        if fields is not None and self._accept(record, fields):
            self._pending = []
            if self._part is not None:
                self._part.multiline = True
        else:
            self._give_up()

    def _give_up(self) -> None:
        """The open quote was none: its line is left over, those after it are looked at again."""
        first, *others = self._pending
        self._pending = []
        if self._header is not None:
            self._leave_over(first, self._header)
        self._queue.extendleft(reversed(others))

    def _skip(self, line: bytes) -> None:
        if not self._note(line) and line.strip():
            self._found.skipped += 1

    def _note(self, line: bytes) -> bool:
        """Keep what ncu says of itself, also behind text of the program."""
        message = _MESSAGE.search(line)
        if message is None:
            return False
        if b"PROF" not in message.group():
            start = message.start()
            text = line[start : start + _MAX_MESSAGE_BYTES].decode("utf-8", "replace").strip()
            if len(self._found.messages) < _MAX_MESSAGES:
                self._found.messages.setdefault(text)
        return True
