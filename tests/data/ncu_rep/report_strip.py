"""Makes a small, anonymous copy of a real report: ``python report_strip.py IN OUT [LAUNCH...]``.

Machine code, section definitions, rule texts, call stacks and metric instances go; so do host
names, paths, network addresses, command lines, process ids, handles and times. What a reader needs stays byte for byte: names, launch shapes, NVTX, metric values, the string table.
"""

import gzip
import lzma
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import report_writer as w  # noqa: E402

#: Options of the command line that stay; the program and its arguments do not.
KEPT_OPTIONS = (
    *("--clock-control", "--cache-control", "--replay-mode", "--graph-profiling"),
    "--nvtx-push-pop-scope",
)
#: Fields of a kernel that go: call id, handles, sections, comments, rules, call stack.
DROPPED_FIELDS = {2, 3, 4, 17, 18, 19, 28}
#: Fields of a range or a graph that go: call id, sections.
DROPPED_OF_RANGES = {2, 7}


def parse(data: bytes) -> Iterator[tuple[int, bytes, int | bytes]]:
    """Number, whole encoded field, value."""
    at = 0
    while at < len(data):
        start = at
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind, 0)
            if kind == 2:
                size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
        yield key >> 3, data[start:at], value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    out = shift = 0
    while True:
        byte = data[at]
        at += 1
        out |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return out, at


def rewritten(data: bytes, replaced: dict, dropped) -> bytes:
    """The fields of a message, some made anew from their values, some left out."""
    return b"".join(
        replaced[number](value) if number in replaced else raw
        for number, raw, value in parse(data)
        if number not in dropped
    )


def strip_result(data: bytes, thread: int) -> bytes:
    replaced = {
        1: lambda _: w.field(1, thread),
        13: lambda value: w.field(13, without_instances(value)),
        14: lambda _: w.field(14, 1_700_000_000),
        21: lambda value: w.field(21, strip_nvtx(value, thread)),
    }
    return rewritten(data, replaced, DROPPED_FIELDS)


def strip_range(data: bytes, thread: int) -> bytes:
    replaced = {
        1: lambda _: w.field(1, thread),
        4: lambda value: w.field(4, without_instances(value)),
        5: lambda _: w.field(5, 1_700_000_000),
        10: lambda value: w.field(10, strip_nvtx(value, thread)),
    }
    return rewritten(data, replaced, DROPPED_OF_RANGES)


def without_instances(metric: bytes) -> bytes:
    return b"".join(part for number, part, _ in parse(metric) if number != 3)


def strip_nvtx(data: bytes, thread: int) -> bytes:
    """The state with the thread ids replaced (the samples have one thread each)."""

    def with_thread(stack: bytes) -> bytes:
        return b"".join(w.field(1, thread) if n == 1 else part for n, part, _ in parse(stack))

    return b"".join(
        w.field(2, with_thread(value)) if number == 2 else raw for number, raw, value in parse(data)
    )


def strip_details(data: bytes) -> bytes:
    out = b""
    for number, raw, value in parse(data):
        if number == 2:
            out += w.field(2, 1_700_000_000)
        elif number in (6, 8):
            out += raw
        elif number == 11:
            words = value.decode().split()
            options = [
                f"{word} {words[index + 1]}"
                for index, word in enumerate(words)
                if word in KEPT_OPTIONS
            ]
            out += w.field(11, " ".join(["ncu", *options, "program"]))
    return out


def strip(data: bytes, keep: set[int] | None = None) -> bytes:
    """The whole report; ``keep`` names the launches (from 0) that stay."""
    (size,) = struct.unpack_from("<I", data, 4)
    at = 8 + size
    out = data[:at]
    launch = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        head = {number: value for number, _, value in parse(data[at + 4 : at + 4 + size])}
        at += 4 + size
        entries = []
        end = at + head.get(5, 0)
        while at < end:
            (size,) = struct.unpack_from("<I", data, at)
            entries.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        first = head.get(1, 0)
        after = first + head.get(2, 0)
        graphs = after + head.get(7, 0)
        sources, results = entries[:first], entries[first:after]
        kept_ranges = [strip_range(entry, 1234) for entry in entries[after:graphs]]
        kept_graphs = [strip_range(entry, 1234) for entry in entries[graphs:]]
        kept = []
        for entry in results:
            if keep is None or launch in keep:
                kept.append(strip_result(entry, 1234))
            launch += 1
        small = []
        for entry in sources:
            number = next(value for n, _, value in parse(entry) if n == 1)
            small.append(w.source(number, b"\x7fELF stripped"))
        names = [value.decode() for _, _, value in parse(head.get(4, b""))]
        details = strip_details(head[3]) if 3 in head else None
        if kept or kept_ranges or kept_graphs or small or names or details:
            out += w.block(
                sources=small,
                results=kept,
                ranges=kept_ranges,
                graphs=kept_graphs,
                names=names,
                details=details,
                process=(1234, "node17"),
            )
    return out


def main() -> None:
    source, target, *launches = sys.argv[1:]
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(Path(source).suffix, open)
    with opener(source, "rb") as file:
        data = file.read()
    small = strip(data, {int(number) for number in launches} or None)
    Path(target).write_bytes(gzip.compress(small, 9, mtime=0))
    print(f"{len(data)} bytes to {len(small)}, {Path(target).stat().st_size} packed")


if __name__ == "__main__":
    main()
