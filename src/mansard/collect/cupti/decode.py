"""Activity records to launches and named ranges."""

from collections.abc import Iterable, Sequence
from typing import Any

from mansard.collect.cupti import activity
from mansard.collect.demangle import demangle
from mansard.collect.launches import Launch, in_launch_order
from mansard.collect.marks import Range
from mansard.readers.ncu_rep.vocabulary import is_library_domain

#: Directions of CUpti_ActivityMemcpyKind.
_COPY_KINDS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_MARK_START, _MARK_END = 1 << 1, 1 << 2


def launches(records: Sequence[Any]) -> tuple[Launch, ...]:
    """What ran, in the order of the calls, with the time of each call where it was recorded."""
    calls: dict[int, int] = {}
    for record in records:
        if record.kind in (activity.RUNTIME, activity.DRIVER):
            known = calls.get(record.correlationId)
            calls[record.correlationId] = min(known or record.start, record.start)
    found = [_launch(record, calls.get(record.correlationId)) for record in _work(records)]
    return in_launch_order(found)


def named_ranges(records: Iterable[Any], end_ns: int) -> tuple[Range, ...]:
    """Ranges that the program announced through NVTX; those still open end at ``end_ns``.

    Those that libraries (NCCL, cuDNN, ...) open for themselves are left out: they are no phases.
    """
    opened: dict[int, tuple[str, int]] = {}
    closed: list[Range] = []
    for record in sorted(
        (each for each in records if each.kind == activity.MARKER), key=lambda each: each.timestamp
    ):
        if record.flags & _MARK_START:
            name, domain = (
                (text or b"").decode(errors="replace") for text in (record.name, record.domain)
            )
            if not is_library_domain(domain):
                opened[record.id] = (name, record.timestamp)
        elif record.flags & _MARK_END and record.id in opened:
            name, start = opened.pop(record.id)
            closed.append(Range(name, start, record.timestamp))
    closed += [Range(name, start, end_ns) for name, start in opened.values()]
    return tuple(sorted(closed, key=lambda each: (each.start_ns, -each.end_ns)))


def _work(records: Iterable[Any]) -> Iterable[Any]:
    kinds = (activity.KERNEL, activity.MEMCPY, activity.MEMSET, activity.PEER_COPY)
    return (record for record in records if record.kind in kinds)


def _launch(record: Any, launch_ns: int | None) -> Launch:
    common = {
        "device": record.deviceId,
        "stream": record.streamId,
        "start_ns": record.start,
        "end_ns": record.end,
        "launch_ns": launch_ns,
        "correlation": record.correlationId,
        "graph": record.graphId if record.graphNodeId else 0,
    }
    if record.kind == activity.KERNEL:
        return Launch(
            kind="kernel",
            name=demangle((record.name or b"").decode(errors="replace")),
            grid=(record.gridX, record.gridY, record.gridZ),
            block=(record.blockX, record.blockY, record.blockZ),
            **common,
        )
    if record.kind == activity.MEMSET:
        return Launch(kind="memset", name="memset", bytes_moved=record.bytes, **common)
    direction = _COPY_KINDS.get(record.copyKind, f"kind {record.copyKind}")
    name = f"memcpy {direction}"
    return Launch(kind="memcpy", name=name, bytes_moved=record.bytes, **common)
