"""L2 seen from the SMs: latency of every line, and bandwidth to the nearest and the farthest."""

import numpy as np

from mansard.bench.cuda.device import Memory
from mansard.bench.cuda.memory import NULL, part_bytes, start_cache
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task
from mansard.bench.operands import Array

#: Lines of an SM's own part of the set.
_LINES = 2048
_LINE_BYTES = 128
#: Lines that are read as the nearest, or as the farthest: a multiple of the 256 of one pass.
_SIDE = 768
#: A load that takes this many times the median was no hit.
_OUTLIER = 1.35
_BIN = 10


def measure_halves(session: Session, task: Task) -> Outcome:
    """Curves only: how far lines are, what near and far ones give, and what merged requests do."""
    gpu = session.gpu
    timer, reader = task.variants[0], task.variants[1]
    sms = 2 * gpu.sms  # identifiers may have gaps; parts of SMs that do not exist are never touched
    data = gpu.allocate(sms * _LINES * _LINE_BYTES)
    cycles = gpu.allocate(sms * _LINES * 4)
    try:
        gpu.zero(data)
        gpu.zero(cycles)
        gpu.start(timer, data, np.uint32(_LINES), cycles, blocks=gpu.sms)
        seen = gpu.download(cycles, np.uint32, sms * _LINES).reshape(sms, _LINES)
        sides = {
            "columns": ["side", "latency_cycles", "byte_per_s", "sm_clock_hz"],
            "meaning": f"each SM its own lines; side 0: all of {_LINES}, 1: the {_SIDE} that "
            f"answer it first, 2: the {_SIDE} that answer it last",
            "rows": [
                [float(kind), *_side(session, reader, data, seen, lines)]
                for kind, lines in enumerate(side_lines(seen))
            ],
        }
        merged = _merged(session, task.variants[2:])
        return Outcome(
            curves={"l2 latency": _histogram(seen), "l2 sides": sides, "l2 merged": merged}
        )
    finally:
        gpu.free(data, cycles)


def side_lines(cycles: Array) -> tuple[Array, Array, Array]:
    """Line numbers for each SM: all, the nearest, the farthest.

    Args:
        cycles: shape (SMs, lines): latency of each line; a row of zeros is an SM that did not run.

    Returns:
        Three arrays of shape (SMs, count). Lines that missed L2 are not among the farthest.
    """
    every = np.broadcast_to(np.arange(cycles.shape[1]), cycles.shape)
    order = np.argsort(cycles, axis=1, kind="stable")
    near = np.sort(order[:, :_SIDE], axis=1)
    far = np.zeros_like(near)
    for index, row in enumerate(cycles):
        hits = int((row < _OUTLIER * np.median(row)).sum()) if row.any() else _SIDE
        far[index] = np.sort(order[index, max(0, hits - _SIDE) : max(hits, _SIDE)])
    return every, near, far


def _side(
    session: Session, reader: Variant, data: Memory, seen: Array, lines: Array
) -> list[float | None]:
    """Median latency, bandwidth and clock of some lines of each SM."""
    gpu = session.gpu
    count = lines.shape[1]
    lists = gpu.upload(lines.astype(np.uint16))

    def start(iterations: int) -> None:
        gpu.start(
            reader,
            data,
            lists,
            NULL,
            np.uint32(_LINES),
            np.uint32(count),
            np.int32(iterations),
            blocks=gpu.sms,
        )

    try:
        rate, clock = session.rate(start, float(gpu.sms * count * _LINE_BYTES))
    finally:
        gpu.free(lists)
    ran = seen.any(axis=1)
    latency = float(np.median(np.take_along_axis(seen, lines, axis=1)[ran]))
    return [latency, rate, clock]


def _histogram(cycles: Array) -> dict[str, object]:
    values = cycles[cycles.any(axis=1)].reshape(-1)
    edges = np.arange(0, 2000, _BIN)
    counts, _ = np.histogram(values, bins=edges)
    rows = [[float(edge), float(n)] for edge, n in zip(edges, counts, strict=False) if n]
    return {
        "columns": ["cycles_from", "lines"],
        "meaning": "lines of L2 by the time from one value to the next, each SM its own lines; "
        f"bins of {_BIN} cycles",
        "rows": rows,
    }


def _merged(session: Session, variants: tuple[Variant, ...]) -> dict[str, object]:
    gpu = session.gpu
    rows: list[list[float | None]] = []
    for variant in variants:
        if gpu.resident(variant) < variant.blocks:
            continue
        size = part_bytes(variant) * variant.blocks * gpu.sms
        data = gpu.allocate(size)
        try:
            gpu.zero(data)
            rate, clock = session.rate(
                lambda n, v=variant, d=data: start_cache(gpu, v, d, n),  # type: ignore[misc]
                variant.work * variant.blocks * gpu.sms,
            )
        finally:
            gpu.free(data)
        rows.append([float(size), rate, clock])
    return {
        "columns": ["bytes", "byte_per_s", "sm_clock_hz"],
        "meaning": "all SMs read all of the set in turns; requests of several SMs for one line "
        "may be merged on the way, so this is what arrives at the SMs, not what L2 delivers",
        "rows": rows,
    }
