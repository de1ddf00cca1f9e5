"""Bandwidth inside the chip (shared memory, L1, L2) and of device memory."""

from collections.abc import Callable
from typing import Any

import numpy

from mansard.bench.cuda.device import Gpu, Memory, check
from mansard.bench.cuda.session import Arrays, Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Test
from mansard.bench.operands import Array
from mansard.errors import DeviceError

_WARM_S = 0.03
_FILL = Variant(source="fill.cu", entry="fill_hash", threads=256, blocks=8)
_SEED = 77
_MOST_BYTES = 4 * 1024**3
_WORD = 16
_NULL = 0

Starter = Callable[[int], None]


def fill(gpu: Gpu, memory: Memory, arm: str | None) -> None:
    """Queue filling with random doubles in [1, 2), or with zeros."""
    if arm == "low-toggle":
        gpu.zero(memory)
    else:
        words = numpy.uint64(memory.size // 8)
        gpu.start(_FILL, memory, words, numpy.uint64(_SEED), numpy.int32(1))


def filled(count: int, *, first: int = 0) -> Array:
    """What ``fill`` writes: ``count`` 64-bit words from word ``first``."""
    with numpy.errstate(over="ignore"):
        x = numpy.arange(first, first + count, dtype=numpy.uint64) + numpy.uint64(_SEED)
        x *= numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x ^= x >> numpy.uint64(31)
    return (x >> numpy.uint64(12)) | numpy.uint64(0x3FF0000000000000)


def word_sum(words: Array) -> int:
    """Sum of the 32-bit words of an array, modulo 2^32, as the kernels form it."""
    return int(words.view(numpy.uint32).sum(dtype=numpy.uint64)) & 0xFFFF_FFFF


def total_of(gpu: Gpu, start: Callable[[Memory], None]) -> int:
    """The total that a launch adds up, from zero."""
    total = gpu.upload(numpy.zeros(4, numpy.uint32))
    try:
        start(total)
        return int(gpu.download(total, numpy.uint32, 1)[0])
    finally:
        gpu.free(total)


# Shared memory ----------------------------------------------------------------------------------


def measure_shared(session: Session, test: Test) -> Outcome:
    """Shared memory: every block passes over its own tile."""
    gpu = session.gpu
    usable = [variant for variant in test.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    blocks = max(variant.blocks for variant in usable) * gpu.sms
    data = gpu.allocate(blocks * usable[0].number("BYTES"))
    try:
        fill(gpu, data, test.arm)

        def starter(variant: Variant) -> tuple[Starter, float]:
            def start(iterations: int) -> None:
                gpu.start(variant, data, _NULL, numpy.int32(iterations))

            return start, variant.work * variant.blocks * gpu.sms

        variant = session.choose((test.level, test.access), usable, starter)
        problem = _shared_problem(session, test, variant, data)
        if problem:
            return Outcome(refusal=problem)
        start, work = starter(variant)
        evidence = {
            "geometry": f"{variant.blocks} x {variant.threads} threads per SM, "
            f"{variant.number('BYTES') // 1024} KiB a block",
            "variant": test.variants.index(variant),
            "result": "equals the CPU's: sum of all words read"
            if test.access == "read"
            else "equals the CPU's: sum of all words left behind",
        }
        return session.sample(start, work, warm_s=_WARM_S, evidence=evidence)
    finally:
        gpu.free(data)


def _shared_problem(session: Session, test: Test, variant: Variant, data: Memory) -> str | None:
    if test.arm == "low-toggle":
        return None  # zeros tell nothing; the other arm has checked this kernel
    gpu, size = session.gpu, variant.number("BYTES")
    rows = size // (_WORD * variant.threads)
    found = total_of(
        gpu, lambda total: gpu.start(variant, data, total, numpy.int32(1), blocks=2)
    )
    if test.access == "read":
        passes = variant.number("ACCESSES") // rows
        expected = passes * word_sum(filled(2 * size // 8))
    else:
        expected = rows * word_sum(filled(2 * variant.threads * _WORD // 8))
    return _difference(found, expected & 0xFFFF_FFFF)


# Caches -----------------------------------------------------------------------------------------


def measure_cache(session: Session, test: Test) -> Outcome:
    """L1 or L2: every block passes over its own part of a working set."""
    gpu = session.gpu
    usable = [variant for variant in test.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    size = max(part_bytes(variant) * variant.blocks for variant in usable) * gpu.sms
    data, target = gpu.allocate(size), None
    try:
        fill(gpu, data, test.arm)
        target = gpu.allocate(size) if test.access != "read" else None

        def starter(variant: Variant) -> tuple[Starter, float]:
            return (
                lambda iterations: start_cache(gpu, variant, data, target, iterations),
                variant.work * variant.blocks * gpu.sms,
            )

        variant = session.choose((test.level, test.access), usable, starter)
        problem = _cache_problem(session, test, variant, data, target)
        if problem:
            return Outcome(refusal=problem)
        start, work = starter(variant)
        part = part_bytes(variant) * variant.blocks
        evidence = {
            "geometry": f"{variant.blocks} x {variant.threads} threads per SM",
            "variant": test.variants.index(variant),
            "working_set_bytes": part * gpu.sms * (2 if test.access == "copy" else 1),
            "bytes_per_sm": part,
            "result": "equals the CPU's: sums and contents",
        }
        return session.sample(start, work, warm_s=_WARM_S, evidence=evidence)
    finally:
        gpu.free(data, target)


def start_cache(
    gpu: Gpu,
    variant: Variant,
    data: Memory,
    target: Memory | None,
    iterations: int,
    *,
    total: Memory | None = None,
    blocks: int | None = None,
) -> None:
    """Queue one launch of a kernel of ``cache.cu``."""
    gpu.start(
        variant,
        data,
        target or _NULL,
        total or _NULL,
        numpy.int32(variant.rows),
        numpy.int32(iterations),
        blocks=blocks,
    )


def part_bytes(variant: Variant) -> int:
    """Bytes of the working set that one block passes over."""
    return variant.rows * variant.threads * _WORD


def _cache_problem(
    session: Session, test: Test, variant: Variant, data: Memory, target: Memory | None
) -> str | None:
    if test.arm == "low-toggle":
        return None  # zeros tell nothing; the other arm has checked this kernel
    gpu = session.gpu
    words = 2 * part_bytes(variant) // 8
    found = total_of(
        gpu,
        lambda total: start_cache(gpu, variant, data, target, 1, total=total, blocks=2),
    )
    if test.access == "read":
        return _difference(found, word_sum(filled(words)))
    if target is None:
        return "there is no target"
    stored = gpu.download(target, numpy.uint64, words)
    if test.access == "copy":
        expected = filled(words)
    else:
        one = filled(2 * variant.threads * 2).reshape(2, 1, -1)
        expected = numpy.broadcast_to(one, (2, variant.rows, one.shape[2])).reshape(-1)
    wrong = int(numpy.count_nonzero(stored != expected))
    return f"wrong result: {wrong} of {words} words differ" if wrong else None


# Device memory ----------------------------------------------------------------------------------


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


def measure_stream(session: Session, test: Test) -> Outcome:
    """Read, write, copy or triad of arrays far larger than L2, by loads and stores."""
    gpu = session.gpu
    arrays = stream_arrays(session, test.arm)
    a, b, c = arrays.memory
    streams = int(test.numbers["streams"])

    def launch(variant: Variant, tiles: int, total: Memory | None = None) -> None:
        gpu.start(variant, a, b, c, total or _NULL, numpy.uint64(tiles), blocks=tiles)

    def starter(variant: Variant) -> tuple[Starter, float]:
        tiles = arrays.size // tile_bytes(variant)
        return lambda _: launch(variant, tiles), float(streams * tiles * tile_bytes(variant))

    variant = session.choose(("stream", test.access), list(test.variants), starter, iterations=1)
    problem = None
    if test.arm != "low-toggle":
        found = total_of(gpu, lambda total: launch(variant, 64, total))
        problem = _stream_problem(gpu, test, variant, arrays, found)
        arrays.arm = None  # the check has written into the arrays
        arrays = stream_arrays(session, test.arm)
    if problem:
        return Outcome(refusal=problem)
    start, work = starter(variant)
    evidence = {
        "geometry": f"one block of {variant.threads} threads a tile of {tile_bytes(variant)} bytes",
        "variant": test.variants.index(variant),
        "array_bytes": arrays.size,
        "bytes_per_stream": {
            "read": int(test.numbers["reads"]) * arrays.size,
            "write": int(test.numbers["writes"]) * arrays.size,
        },
        "result": "equals the CPU's on 64 tiles",
    }
    return session.sample(start, work, warm_s=_WARM_S, iterations=1, evidence=evidence)


def tile_bytes(variant: Variant) -> int:
    """Bytes of each stream in a tile of ``stream.cu``."""
    return variant.number("UNROLL") * variant.threads * _WORD


def _stream_problem(
    gpu: Gpu, test: Test, variant: Variant, arrays: Arrays, found: int
) -> str | None:
    words = 64 * tile_bytes(variant) // 8
    a = filled(words)
    if test.access == "read":
        return _difference(found, word_sum(a))
    stored = gpu.download(arrays.memory[2], numpy.uint64, words)
    if test.access == "copy":
        expected = a
    elif test.access == "write":
        expected = numpy.tile(a[: 2 * variant.threads], words // (2 * variant.threads))
    else:
        values = a.view(numpy.float64)  # a and b hold the same; half of it adds exactly once
        expected = (values + 0.5 * values).view(numpy.uint64)
    wrong = int(numpy.count_nonzero(stored != expected))
    return f"wrong result: {wrong} of {words} words differ" if wrong else None


def measure_memcpy(session: Session, test: Test) -> Outcome:
    """Device-to-device copy by the driver."""
    from cuda.bindings import driver  # noqa: PLC0415

    gpu = session.gpu
    arrays = stream_arrays(session, test.arm)
    a, _, c = arrays.memory

    def start(_: int) -> None:
        check(driver.cuMemcpyDtoDAsync(c.address, a.address, arrays.size, gpu.stream.handle))

    start(1)
    problem = _copied(gpu, test, a, c)
    if problem:
        return Outcome(refusal=problem)
    return session.sample(
        start,
        2.0 * arrays.size,
        warm_s=_WARM_S,
        iterations=1,
        evidence=_copy_evidence(arrays),
    )


def measure_bulk(session: Session, test: Test) -> Outcome:
    """Copy through shared memory by the bulk copy engine."""
    gpu = session.gpu
    arrays = stream_arrays(session, test.arm)
    a, _, c = arrays.memory
    usable = [variant for variant in test.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")

    def starter(variant: Variant) -> tuple[Starter, float]:
        chunk = variant.number("CHUNK")
        chunks = numpy.uint64(arrays.size // chunk)
        return lambda _: gpu.start(variant, a, c, chunks), 2.0 * int(chunks) * chunk

    variant = session.choose("bulk", usable, starter, iterations=1)
    start, work = starter(variant)
    gpu.zero(c)
    start(1)
    problem = _copied(gpu, test, a, c)
    if problem:
        return Outcome(refusal=problem)
    evidence: dict[str, Any] = {
        **_copy_evidence(arrays),
        "geometry": f"{variant.number('STAGES')} chunks of {variant.number('CHUNK')} bytes, "
        f"{variant.blocks} blocks per SM",
        "variant": test.variants.index(variant),
    }
    return session.sample(start, work, warm_s=_WARM_S, iterations=1, evidence=evidence)


def _copy_evidence(arrays: Arrays) -> dict[str, Any]:
    return {
        "array_bytes": arrays.size,
        "bytes_per_stream": {"read": arrays.size, "write": arrays.size},
        "result": "the copy equals the original in three places",
    }


def _copied(gpu: Gpu, test: Test, source: Memory, target: Memory) -> str | None:
    count = 1 << 16
    for offset in (0, source.size // 2, source.size - 8 * count):
        stored = gpu.download(target, numpy.uint64, count, offset=offset)
        expected = (
            numpy.zeros(count, numpy.uint64)
            if test.arm == "low-toggle"
            else filled(count, first=offset // 8)
        )
        wrong = int(numpy.count_nonzero(stored != expected))
        if wrong:
            return f"wrong result: {wrong} of {count} words of the copy differ"
    return None


def _difference(found: int, expected: int) -> str | None:
    if found != expected:
        return f"wrong result: the words read add up to {found:#x}, on the CPU to {expected:#x}"
    return None
