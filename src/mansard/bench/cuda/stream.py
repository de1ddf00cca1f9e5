"""Bandwidth of device memory: read, write, copy and triad of arrays far larger than L2."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mansard.bench.cuda.device import Gpu, Memory, check
from mansard.bench.cuda.memory import (
    NULL,
    WARM_S,
    WORD,
    difference,
    fill,
    filled,
    total_of,
    word_sum,
)
from mansard.bench.cuda.session import Arrays, Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task
from mansard.errors import DeviceError

_MOST_BYTES = 4 * 1024**3

Starter = Callable[[int], None]


def stream_arrays(session: Session, arm: str | None) -> Arrays:
    """The three large arrays, filled for an arm.

    Raises:
        DeviceError: device memory does not hold three arrays of four times L2.
    """
    gpu = session.gpu
    least = 4 * int(session.numbers.get("l2_bytes", 0))
    if session.arrays is None:
        size = min(_MOST_BYTES, gpu.free_bytes() // 5)
        size -= size % (1 << 20)
        if size < max(least, 1 << 20):
            raise DeviceError(
                f"three arrays of {least} bytes (4 x L2) do not fit into the "
                f"{gpu.free_bytes()} bytes of free device memory"
            )
        taken: list[Memory] = []
        try:
            taken.extend(gpu.allocate(size) for _ in range(3))
        except DeviceError:
            gpu.free(*taken)
            raise
        session.arrays = Arrays((taken[0], taken[1], taken[2]), size)
    if session.arrays.arm != arm:
        for memory in session.arrays.memory:
            fill(gpu, memory, arm)
        session.arrays.arm = arm
    return session.arrays


def measure_stream(session: Session, task: Task) -> Outcome:
    """Read, write, copy or triad of arrays far larger than L2, by loads and stores."""
    gpu = session.gpu
    arrays = stream_arrays(session, task.arm)
    a, b, c = arrays.memory
    streams = int(task.numbers["streams"])

    def launch(
        variant: Variant, tiles: int, *, passes: int = 1, total: Memory | None = None
    ) -> None:
        grid = (tiles, passes)  # one after the other: a grid starts along its first side
        gpu.start(variant, a, b, c, total or NULL, np.uint64(tiles), blocks=grid)

    def starter(variant: Variant) -> tuple[Starter, float]:
        tiles = arrays.size // tile_bytes(variant)

        def start(passes: int) -> None:
            launch(variant, tiles, passes=passes)

        return start, float(streams * tiles * tile_bytes(variant))

    variant = session.choose(("stream", task.access), list(task.variants), starter, iterations=1)

    def check_once() -> str | None:
        if task.arm == "low-toggle":
            return None  # zeros tell nothing; the other arm checks this kernel
        gpu.zero(c)  # so that a kernel that does nothing is seen
        found = total_of(gpu, lambda total: launch(variant, 64, total=total))
        arrays.arm = None  # the check has written into the arrays
        return _stream_problem(gpu, task, variant, arrays, found)

    problem = session.once(task, check_once)
    stream_arrays(session, task.arm)
    if problem:
        return Outcome(refusal=problem)
    start, work = starter(variant)
    evidence = {
        "geometry": f"one block of {variant.threads} threads a tile of {tile_bytes(variant)} bytes",
        "variant": task.variants.index(variant),
        "array_bytes": arrays.size,
        "bytes_per_pass": {
            "read": int(task.numbers["reads"]) * arrays.size,
            "write": int(task.numbers["writes"]) * arrays.size,
        },
        "result": "equals the CPU's on 64 tiles",
    }
    # A pass takes about a millisecond, and each launch some microseconds more: no bandwidth.
    return session.sample(start, work, warm_s=WARM_S, evidence=evidence)


def tile_bytes(variant: Variant) -> int:
    """Bytes of each stream in a tile of ``stream.cu``."""
    return variant.number("UNROLL") * variant.threads * WORD


def _stream_problem(
    gpu: Gpu, task: Task, variant: Variant, arrays: Arrays, found: int
) -> str | None:
    words = 64 * tile_bytes(variant) // 8
    a = filled(words)
    if task.access == "read":
        return difference(found, word_sum(a))
    stored = gpu.download(arrays.memory[2], np.uint64, words)
    if task.access == "copy":
        expected = a
    elif task.access == "write":
        expected = np.tile(a[: 2 * variant.threads], words // (2 * variant.threads))
    else:
        values = a.view(np.float64)  # a and b hold the same; half of it adds exactly once
        expected = (values + 0.5 * values).view(np.uint64)
    wrong = int(np.count_nonzero(stored != expected))
    return f"wrong result: {wrong} of {words} words differ" if wrong else None


def measure_memcpy(session: Session, task: Task) -> Outcome:
    """Device-to-device copy by the driver."""
    from cuda.bindings import driver  # noqa: PLC0415

    gpu = session.gpu
    arrays = stream_arrays(session, task.arm)
    a, _, c = arrays.memory

    def start(copies: int) -> None:
        for _ in range(copies):
            check(driver.cuMemcpyDtoDAsync(c.address, a.address, arrays.size, gpu.stream.handle))

    gpu.zero(c)
    start(1)
    problem = _copied(gpu, task, a, c)
    if problem:
        return Outcome(refusal=problem)
    return session.sample(
        start,
        2.0 * arrays.size,
        warm_s=WARM_S,
        evidence=_copy_evidence(arrays),
    )


def _copy_evidence(arrays: Arrays) -> dict[str, Any]:
    return {
        "array_bytes": arrays.size,
        "bytes_per_pass": {"read": arrays.size, "write": arrays.size},
        "result": "the copy equals the original in three places",
    }


def _copied(gpu: Gpu, task: Task, source: Memory, target: Memory) -> str | None:
    count = 1 << 16
    for offset in (0, source.size // 2, source.size - 8 * count):
        stored = gpu.download(target, np.uint64, count, offset=offset)
        expected = (
            np.zeros(count, np.uint64)
            if task.arm == "low-toggle"
            else filled(count, first=offset // 8)
        )
        wrong = int(np.count_nonzero(stored != expected))
        if wrong:
            return f"wrong result: {wrong} of {count} words of the copy differ"
    return None
