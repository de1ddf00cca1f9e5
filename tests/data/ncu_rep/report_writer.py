"""Writes reports in the container of Nsight Compute, for tests and benchmarks.

Independent of the reader: encoding only, straight from the description of the format.
"""

import struct
from collections.abc import Iterable, Sequence

Value = int | float | str | bytes | None


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: float | str | bytes) -> bytes:
    """One field: int as varint, float as double, text and bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def float32(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


def message(*fields: tuple[int, Value | list]) -> bytes:
    """Fields in order; None is left out, a list repeats its field."""
    out = b""
    for number, value in fields:
        for entry in value if isinstance(value, list) else [value]:
            out += b"" if entry is None else field(number, entry)
    return out


def sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def header(version: int = 7) -> bytes:
    return b"NVR\0" + sized(message((1, version)))


def block(
    *,
    sources: Sequence[bytes] = (),
    results: Sequence[bytes] = (),
    ranges: Sequence[bytes] = (),
    graphs: Sequence[bytes] = (),
    names: Sequence[str] = (),
    details: bytes | None = None,
    process: tuple[int, str] | None = (1234, "node17"),
    announced_results: int | None = None,
) -> bytes:
    payload = b"".join(map(sized, (*sources, *results, *ranges, *graphs)))
    owner = None if process is None else message((1, process[0]), (2, process[1]))
    head = message(
        (1, len(sources)),
        (2, len(results) if announced_results is None else announced_results),
        (3, details),
        (4, message((1, list(names)))),
        (5, len(payload)),
        (6, owner),
        (7, len(ranges)),
        (9, len(graphs)),
    )
    return sized(head) + payload


def source(number: int, code: bytes) -> bytes:
    return message((1, number), (4, code), (5, 90), (6, 0x90000))


def value(entry: Value) -> bytes:
    """A metric value: int as u64, float as double, text as text."""
    if entry is None:
        return b""
    if isinstance(entry, int):
        return field(5, entry)
    return field(3, entry) if isinstance(entry, float) else field(1, entry)


def metric(name_id: int, entry: Value, instances: int = 0) -> bytes:
    """A metric as ncu writes it: name id, value, instances, kind. None has no value field."""
    out = field(1, name_id)
    if entry is not None:
        out += field(2, value(entry))
    for index in range(instances):
        out += field(3, message((1, value(index)), (2, value(index * 2))))
    return out + field(4, 0)


def three(x: int, y: int, z: int) -> bytes:
    return message((1, x), (2, y), (3, z))


def result(
    *,
    name: str | None = "void kernel<float>(float *)",
    function: str | None = "kernel",
    mangled: str | None = "_Z6kernelIfEvPT_",
    grid: tuple[int, int, int] | None = (16, 2, 1),
    threads: tuple[int, int, int] | None = (128, 1, 1),
    metrics: Iterable[bytes] = (),
    nvtx: bytes | None = None,
    thread: int = 1234,
    code: int | None = 1,
    stream: int | None = 7,
    sections: Sequence[bytes] = (),
    more: bytes = b"",
) -> bytes:
    head = message(
        (1, thread),
        (2, 99),
        (3, 4711),
        (4, 4712),
        (5, mangled),
        (6, function),
        (7, name),
        (8, 3),
        (9, three(0, 0, 0)),
        (10, None if grid is None else three(*grid)),
        (11, None if threads is None else three(*threads)),
    )
    tail = message(
        (14, 1_700_000_000),
        (15, None if code is None else message((1, code))),
        (16, 0),
        (17, list(sections)),
        (21, nvtx),
        (22, 1),
        (23, stream),
    )
    return head + b"".join(field(13, entry) for entry in metrics) + tail + more


def range_result(
    metrics: Iterable[bytes] = (), *, nvtx: bytes | None = None, thread: int = 1234
) -> bytes:
    """A result of range replay: no name, no shape, and other numbers of fields."""
    return _whole(metrics, nvtx, thread, message((15, 98784247809)))


def graph_result(
    metrics: Iterable[bytes] = (), *, nvtx: bytes | None = None, thread: int = 1234, stream: int = 7
) -> bytes:
    """A result of a whole graph: as one of a range, and a stream."""
    more = message((12, stream), (13, message((1, 0), (2, 0))), (17, 98784247809))
    return _whole(metrics, nvtx, thread, more)


def _whole(metrics: Iterable[bytes], nvtx: bytes | None, thread: int, more: bytes) -> bytes:
    head = message((1, thread), (2, 99))
    tail = message(
        (5, 1_700_000_000),
        (6, 0),
        (7, [message((1, "section0"), (2, "Command line profiler metrics"))]),
        (10, nvtx),
        (11, 1),
    )
    return head + b"".join(field(4, entry) for entry in metrics) + tail + more


def nvtx_state(
    *,
    pushed: Sequence[tuple[int, int, Sequence[tuple[str, int]]]] = (),
    started: Sequence[tuple[int, Sequence[tuple[int, str]]]] = (),
    domains: Sequence[tuple[int, str]] = ((0, "<default domain>"), (1, "CCCL")),
) -> bytes:
    """An NVTX state.

    Args:
        pushed: (thread, domain, [(range name, API call before it), outermost first]).
        started: (domain, [(id, range name)]) of start/end ranges.
        domains: (id, name).
    """
    threads = sorted({thread for thread, _, _ in pushed})
    stacks = [
        message(
            (1, thread),
            (
                2,
                [
                    message((1, domain), (3, [message((1, n), (3, call)) for n, call in stack]))
                    for owner, domain, stack in pushed
                    if owner == thread
                ],
            ),
        )
        for thread in threads
    ]
    opened = [
        message((1, domain), (3, [message((1, number), (2, n), (5, 1)) for number, n in entries]))
        for domain, entries in started
    ]
    named = [message((1, number), (2, n)) for number, n in domains]
    return message((1, named), (2, stacks), (3, opened), (4, 0))


def device(
    index: int = 0, name: str = "NVIDIA H200", attributes: Sequence[tuple[str, Value]] = ()
) -> bytes:
    rows = [message((1, key), (2, value(entry))) for key, entry in attributes]
    return message((1, index), (2, name), (3, rows))


def version(provider: str, text: str) -> bytes:
    return message((1, provider), (2, text))


#: A version row as ncu writes it from 2020 on.
TOOL = version("Nsight Compute Target", "2025.3.1.0 (build 36398880) (public-release)")


def report(
    results: Sequence[bytes],
    names: Sequence[str] = (),
    *,
    details: bytes = message((8, TOOL)),
    process: tuple[int, str] | None = (1234, "node17"),
) -> bytes:
    """A whole report: session block, one block with one source and all results."""
    return (
        header()
        + block(details=details, process=process)
        + block(sources=[source(1, b"\x7fELF")], results=results, names=names, process=process)
    )
