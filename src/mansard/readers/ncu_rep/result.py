"""One result of a report: identity, launch shape, NVTX state and metric values.

A result of ``--set full`` has well over a thousand metrics, so they are decoded here with the
fields of the message, without objects per metric, straight into two flat arrays.
"""

import array
import dataclasses
import struct

from mansard.errors import FormatError
from mansard.readers.ncu_rep.layout import KERNEL, Layout, layout_of
from mansard.readers.ncu_rep.wire import Message, fields, varint

_unpack_double = struct.Struct("<d").unpack_from
#: Key byte of a metric of a kernel, and of the parts of a metric in the order that ncu writes.
_METRIC = KERNEL.metrics << 3 | 2
_NAME_ID = 1 << 3 | 0
_VALUE = 2 << 3 | 2
_FLOAT64 = 3 << 3 | 1
_UINT64 = 5 << 3 | 0
#: Fields of a kernel that are kept beside the metrics; all others are skipped.
_KEPT = KERNEL.others
_LARGEST_ID = 2**32 - 1
#: A result has at least a name and the shape of its launch.
_SHORTEST_RESULT = 24
#: Bytes of a metric with a name id of two bytes and a value of one.
_SHORTEST = 6


@dataclasses.dataclass(slots=True)
class MetricValues:
    """Metric values of many results, flat, in file order.

    Attributes:
        ids: positions in the table of names.
        values: the numbers, in the units of the file. Texts and missing values are left out.
        counts: per result, how many values it has.
    """

    ids: "array.array[int]" = dataclasses.field(default_factory=lambda: array.array("I"))
    values: "array.array[float]" = dataclasses.field(default_factory=lambda: array.array("d"))
    counts: "array.array[int]" = dataclasses.field(default_factory=lambda: array.array("q"))


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a result says beside its metrics.

    Attributes:
        name: demangled name, else the function's, else the mangled one; ``None`` without any, as
            for a range.
        thread: thread that launched it.
        grid: field 10, blocks (threads in 2019) along x, y, z; zeros for a failed launch.
        block: threads along x, y, z.
        has_code: whether it refers to a module, as the launch of one kernel does.
        nvtx: the NVTX state, still encoded.
        context: CUDA context.
        stream: CUDA stream.
        driver: version of the display driver, since 2025.2.
    """

    name: str | None
    thread: int | None
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    has_code: bool
    nvtx: bytes | None
    context: int | None
    stream: int | None
    driver: float | None


def read_result(data: bytes, metrics: MetricValues) -> Result:
    """Decode a result; its metrics are added to ``metrics``.

    Raises:
        FormatError: the message is damaged; ``metrics`` is then as before.
    """
    if len(data) < _SHORTEST_RESULT:
        raise FormatError("a result is too short to be one")
    known = len(metrics.ids)
    try:
        result = _result(_read_fields(data, metrics), KERNEL)
    except (FormatError, IndexError):
        _forget(metrics, known)
        result = None
    if len(metrics.ids) == known and not _is_launch(result):
        result = _of_another_kind(data, metrics) or result
    if result is None:
        raise FormatError("a result is damaged")
    metrics.counts.append(len(metrics.ids) - known)
    return result


def _is_launch(result: Result | None) -> bool:
    """Whether what was read as a kernel is one, though nothing of it was counted."""
    return bool(result and result.name and result.grid and result.block and result.has_code)


def _of_another_kind(data: bytes, metrics: MetricValues) -> Result | None:
    """Decode a result that is no kernel; None for one that is, or is damaged."""
    known = len(metrics.ids)
    try:
        layout = layout_of(data)
        if layout is KERNEL:
            return None
        kept, others = Message(b""), layout.others
        for number, value in fields(data):
            if number == layout.metrics and isinstance(value, bytes):
                _read_metric(value, metrics)
            elif number in others:
                kept.values[number] = [value]
        return _result(kept, layout)
    except FormatError:
        _forget(metrics, known)
        return None


def _forget(metrics: MetricValues, known: int) -> None:
    del metrics.ids[known:]
    del metrics.values[known:]


def _read_fields(data: bytes, metrics: MetricValues) -> Message:
    """Go through a result: metrics into the arrays, kept fields into a message."""
    at, end = 0, len(data)
    kept = Message(b"")
    add_id, add_value = metrics.ids.append, metrics.values.append
    while at < end:
        key = data[at]
        if key != _METRIC:
            at = _read_field(data, at, kept)
            continue
        size = data[at + 1]
        at += 2
        if size >= 0x80:
            size, at = varint(data, at - 1)
        stop = at + size
        if stop > end:
            raise FormatError("a metric is longer than its result")
        # The order that every version writes: name id of one or two bytes, then the value.
        # Instances, which may be thousands, follow and are skipped with the rest.
        start = at
        if size >= _SHORTEST and data[at] == _NAME_ID:
            name = data[at + 1]
            at += 2
            if name >= 0x80:
                name = name & 0x7F | data[at] << 7
                at += 1
            if name < 0x4000 and data[at] == _VALUE:
                size, kind = data[at + 1], data[at + 2]
                after = at + 2 + size
                if after <= stop:
                    if kind == _FLOAT64 and size == 9:
                        add_id(name)
                        add_value(_unpack_double(data, at + 3)[0])
                        at = stop
                        continue
                    if kind == _UINT64 and size > 1:
                        value = data[at + 3]
                        at += 4
                        if value >= 0x80:
                            value, at = varint(data, at - 1)
                        if at == after:
                            add_id(name)
                            add_value(value)
                            at = stop
                            continue
        _read_metric(data[start:stop], metrics)
        at = stop
    return kept


def _read_metric(data: bytes, metrics: MetricValues) -> None:
    """The long way, for what does not have the usual shape."""
    metric = Message(data)
    name, value = metric.integer(1), metric.message(2)
    if name is None or name > _LARGEST_ID or value is None:
        return
    for number in (value.float64(3), value.integer(5), value.integer(4), value.float32(2)):
        if number is not None:
            metrics.ids.append(name)
            metrics.values.append(number)
            return


def _read_field(data: bytes, at: int, kept: Message) -> int:
    """One field that is no metric; gives the position after it."""
    key, at = varint(data, at)
    number, kind = key >> 3, key & 7
    if number == 0:
        raise FormatError("a field has the number 0")
    value: int | bytes
    if kind == 0:
        value, after = varint(data, at)
    else:
        if kind == 2:
            size, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise FormatError(f"a field has the unknown kind {kind}")
        after = at + size
        if after > len(data):
            raise FormatError("a field is longer than its result")
        value = data[at:after] if number in _KEPT else b""
    if number in _KEPT:
        kept.values[number] = [value]
    return after


def _result(message: Message, layout: Layout) -> Result:
    code = message.message(layout.code)
    return Result(
        name=next(filter(None, map(message.text, layout.names)), None),
        thread=message.integer(layout.thread),
        grid=_three(message.message(layout.grid)),
        block=_three(message.message(layout.block)),
        has_code=code is not None and bool(code.integer(1)),
        nvtx=message.chunk(layout.nvtx),
        context=message.integer(layout.context),
        stream=message.integer(layout.stream),
        driver=message.float32(layout.driver),
    )


def _three(message: Message | None) -> tuple[int, int, int] | None:
    if message is None:
        return None
    x, y, z = (message.integer(number) or 0 for number in (1, 2, 3))
    return x, y, z
