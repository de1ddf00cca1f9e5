"""L2 seen from the SMs: latency of every line, and bandwidth to the near and the far half."""

from collections.abc import Callable

import numpy as np

from mansard.bench.cuda.device import Memory
from mansard.bench.cuda.memory import part_bytes, start_cache
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Test
from mansard.bench.operands import Array

_LINES = 2048
_LINE_BYTES = 128
#: Lines that one pass of `partition_read` takes: UNROLL * 128.
_PASS = 256
#: Two halves are told apart when the slower lines take this much longer.
_APART = 1.1


def measure_halves(session: Session, test: Test) -> Outcome:
    """Curves only: what the halves of L2 give, and what merged requests look like."""
    gpu = session.gpu
    timer, reader = test.variants[0], test.variants[1]
    sms = int(session.numbers.get("sm_identifiers", 0)) or 2 * gpu.sms
    data = gpu.allocate(sms * _LINES * _LINE_BYTES)
    cycles = gpu.allocate(sms * _LINES * 4)
    lists: Memory | None = None
    try:
        gpu.zero(data)
        gpu.zero(cycles)
        gpu.start(timer, data, np.uint32(_LINES), cycles, blocks=gpu.sms)
        seen = gpu.download(cycles, np.uint32, sms * _LINES).reshape(sms, _LINES)
        curves = {"l2 latency": _histogram(seen)}
        limit = split(seen[seen.any(axis=1)])
        rows = []
        picks = _picks(limit)
        for kind, pick in picks.items():
            chosen, count = line_lists(seen, [pick(row) for row in seen])
            if count == 0:
                continue
            lists = gpu.upload(chosen)

            def start(iterations: int, lists: Memory = lists, count: int = count) -> None:
                gpu.start(
                    reader,
                    data,
                    lists,
                    0,
                    np.uint32(_LINES),
                    np.uint32(count),
                    np.int32(iterations),
                    blocks=gpu.sms,
                )

            work = float(gpu.sms * count * _LINE_BYTES)
            rate, clock = session.rate(start, work)
            mean = float(np.mean([row[pick(row)].mean() for row in seen if row.any()]))
            rows.append([float(kind), mean, rate, clock])
            gpu.free(lists)
        curves["l2 halves"] = {
            "columns": ["half", "latency_cycles", "byte_per_s", "sm_clock_hz"],
            "meaning": "half: 0 near lines, 1 far lines, 2 all lines, each SM its own",
            "rows": rows,
        }
        curves["l2 merged requests"] = _merged(session, test.variants[2:])
        return Outcome(curves=curves)
    finally:
        gpu.free(data, cycles, lists)


def _picks(limit: float | None) -> dict[int, Callable[[Array], Array]]:
    """Which lines count as near (0), far (1), or both (2), by their latency."""

    def every(cycles: Array) -> Array:
        return np.ones(cycles.shape, bool)

    if limit is None:
        return {2: every}

    def near(cycles: Array) -> Array:
        return np.asarray(cycles <= limit)

    def far(cycles: Array) -> Array:
        return np.asarray(cycles > limit)

    return {0: near, 1: far, 2: every}


def split(cycles: Array) -> float | None:
    """Latency that parts near from far lines; None when there is one kind only.

    Two means: the limit lies midway between the mean of those below and of those above it.
    """
    values = cycles.reshape(-1).astype(float)
    values = values[values < 3 * np.median(values)]
    limit = float(values.mean())
    for _ in range(20):
        low, high = values[values <= limit], values[values > limit]
        if not len(low) or not len(high):
            return None
        limit = float(low.mean() + high.mean()) / 2
    low, high = values[values <= limit], values[values > limit]
    if not len(low) or not len(high) or high.mean() < _APART * low.mean():
        return None
    return limit if min(len(low), len(high)) > len(values) // 10 else None


def line_lists(cycles: Array, picked: list[Array]) -> tuple[Array, int]:
    """Line numbers for each SM that ran, equally many for all; SMs that did not run get zeros."""
    ran = [index for index, row in enumerate(cycles) if row.any()]
    count = min((int(picked[index].sum()) for index in ran), default=0) // _PASS * _PASS
    lists = np.zeros((len(cycles), max(count, 1)), np.uint16)
    for index in ran if count else []:
        lists[index] = np.flatnonzero(picked[index])[:count]
    return lists, count


def _histogram(cycles: Array) -> dict[str, object]:
    values = cycles[cycles.any(axis=1)].reshape(-1)
    edges = np.arange(0, 2000, 10)
    counts, _ = np.histogram(values, bins=edges)
    rows = [
        [float(edge), float(count)] for edge, count in zip(edges, counts, strict=False) if count
    ]
    return {
        "columns": ["cycles_from", "lines"],
        "meaning": "lines of L2 by load latency, each SM its own lines; bins of 10 cycles",
        "rows": rows,
    }


def _merged(session: Session, variants: tuple[Variant, ...]) -> dict[str, object]:
    gpu = session.gpu
    rows = []
    for variant in variants:
        if gpu.resident(variant) < variant.blocks:
            continue
        size = part_bytes(variant) * variant.blocks * gpu.sms
        data = gpu.allocate(size)
        try:
            gpu.zero(data)
            rate, clock = session.rate(
                lambda n, v=variant, d=data: start_cache(gpu, v, d, None, n),  # type: ignore[misc]
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
