"""The protobuf wire format: integers, fields, messages. No schema, no recursion.

Every length is checked against the bytes that are there, so that damaged input ends in a
FormatError and never in a large allocation. Source: the Protocol Buffers encoding guide.
"""

import struct
from collections.abc import Iterator

from mansard.errors import FormatError

#: Most bits of an integer on the wire.
_WORD = 64
_LARGEST = 2**_WORD - 1
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read the integer at a position: its value and the position after it."""
    value = shift = 0
    try:
        while shift < _WORD:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _LARGEST, at
            shift += 7
    except IndexError:
        raise FormatError("an integer is cut off") from None
    raise FormatError("an integer is longer than 64 bits")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Go through the fields of a message: number, and an integer or the raw bytes.

    Raises:
        FormatError: when a field does not fit into the message, or its kind does not exist.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise FormatError("a field has the number 0")
        if kind == 0:
            value, at = varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = varint(data, at)
        elif kind == 1:
            size = 8
        elif kind == 5:
            size = 4
        else:
            raise FormatError(f"a field has the unknown kind {kind}")
        if size > end - at:
            raise FormatError("a field is longer than its message")
        yield number, data[at : at + size]
        at += size


class Message:
    """A message as a whole: its fields by number. A field of another kind counts as absent."""

    __slots__ = ("values",)

    def __init__(self, data: bytes) -> None:
        self.values: dict[int, list[int | bytes]] = {}
        for number, value in fields(data):
            self.values.setdefault(number, []).append(value)

    def integer(self, number: int) -> int | None:
        """The last integer of that number."""
        found = [value for value in self.values.get(number, ()) if isinstance(value, int)]
        return found[-1] if found else None

    def chunks(self, number: int) -> list[bytes]:
        """The bytes of every field of that number, in order."""
        return [value for value in self.values.get(number, ()) if isinstance(value, bytes)]

    def chunk(self, number: int) -> bytes | None:
        """The bytes of the last field of that number."""
        found = self.chunks(number)
        return found[-1] if found else None

    def text(self, number: int) -> str | None:
        """The last text of that number; bytes that are not UTF-8 become U+FFFD."""
        found = self.chunk(number)
        return None if found is None else found.decode("utf-8", "replace")

    def float64(self, number: int) -> float | None:
        """The last double of that number."""
        return _unpacked(_DOUBLE, self.chunk(number))

    def float32(self, number: int) -> float | None:
        """The last single-precision number of that number."""
        return _unpacked(_FLOAT, self.chunk(number))

    def message(self, number: int) -> "Message | None":
        """The last message of that number."""
        found = self.chunk(number)
        return None if found is None else Message(found)

    def messages(self, number: int) -> Iterator["Message"]:
        """Every message of that number, in order."""
        return map(Message, self.chunks(number))


def _unpacked(layout: struct.Struct, data: bytes | None) -> float | None:
    if data is None or len(data) != layout.size:
        return None
    return float(layout.unpack(data)[0])
