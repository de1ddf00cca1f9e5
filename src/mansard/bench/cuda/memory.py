"""Bandwidth inside the chip: shared memory, L1 and L2."""

from collections.abc import Callable

import numpy as np

from mansard.bench.cuda.device import Gpu, Memory
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task
from mansard.bench.operands import Array

WARM_S = 0.03
_FILL = Variant(source="fill.cu", entry="fill_hash", threads=256, blocks=8)
_SEED = 77
WORD = 16
NULL = 0

Starter = Callable[[int], None]


def fill(gpu: Gpu, memory: Memory, arm: str | None) -> None:
    """Queue filling with random doubles in [1, 2), or with zeros."""
    if arm == "low-toggle":
        gpu.zero(memory)
    else:
        words = np.uint64(memory.size // 8)
        gpu.start(_FILL, memory, words, np.uint64(_SEED), np.int32(1))


def filled(count: int, *, first: int = 0) -> Array:
    """What ``fill`` writes: ``count`` 64-bit words from word ``first``."""
    with np.errstate(over="ignore"):
        x = np.arange(first, first + count, dtype=np.uint64) + np.uint64(_SEED)
        x *= np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(12)) | np.uint64(0x3FF0000000000000)


def word_sum(words: Array) -> int:
    """Sum of the 32-bit words of an array, modulo 2^32, as the kernels form it."""
    return int(words.view(np.uint32).sum(dtype=np.uint64)) & 0xFFFF_FFFF


def total_of(gpu: Gpu, start: Callable[[Memory], None]) -> int:
    """The total that a launch adds up, from zero."""
    total = gpu.upload(np.zeros(4, np.uint32))
    try:
        start(total)
        return int(gpu.download(total, np.uint32, 1)[0])
    finally:
        gpu.free(total)


# Shared memory ----------------------------------------------------------------------------------


def measure_shared(session: Session, task: Task) -> Outcome:
    """Shared memory: every block passes over its own tile."""
    gpu = session.gpu
    usable = [variant for variant in task.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    blocks = max(variant.blocks for variant in usable) * gpu.sms
    data = gpu.allocate(blocks * usable[0].number("BYTES"))
    try:
        fill(gpu, data, task.arm)

        def starter(variant: Variant) -> tuple[Starter, float]:
            def start(iterations: int) -> None:
                gpu.start(variant, data, NULL, np.int32(iterations))

            return start, variant.work * variant.blocks * gpu.sms

        variant = session.choose((task.level, task.access), usable, starter)
        problem = session.once(task, lambda: _shared_problem(session, task, variant, data))
        if problem:
            return Outcome(refusal=problem)
        start, work = starter(variant)
        evidence = {
            "geometry": f"{variant.blocks} x {variant.threads} threads per SM, "
            f"{variant.number('BYTES') // 1024} KiB a block",
            "variant": task.variants.index(variant),
            "result": "equals the CPU's: sum of all words read"
            if task.access == "read"
            else "equals the CPU's: sum of all words left behind",
        }
        return session.sample(start, work, warm_s=WARM_S, evidence=evidence)
    finally:
        gpu.free(data)


def _shared_problem(session: Session, task: Task, variant: Variant, data: Memory) -> str | None:
    gpu, size = session.gpu, variant.number("BYTES")
    rows = size // (WORD * variant.threads)
    found = total_of(gpu, lambda total: gpu.start(variant, data, total, np.int32(1), blocks=2))
    if task.access == "read":
        expected = variant.number("PASSES") * word_sum(filled(2 * size // 8))
    else:
        expected = rows * word_sum(filled(2 * variant.threads * WORD // 8))
    return difference(found, expected & 0xFFFF_FFFF)


# L1 ---------------------------------------------------------------------------------------------


def measure_cache(session: Session, task: Task) -> Outcome:
    """L1: every block reads its own part of a working set again and again."""
    gpu = session.gpu
    usable = [variant for variant in task.variants if gpu.resident(variant) >= variant.blocks]
    if not usable:
        return Outcome(refusal="no launch geometry fits on an SM")
    data = gpu.allocate(max(part_bytes(v) * v.blocks for v in usable) * gpu.sms)
    try:
        fill(gpu, data, task.arm)

        def starter(variant: Variant) -> tuple[Starter, float]:
            return (
                lambda iterations: start_cache(gpu, variant, data, iterations),
                variant.work * variant.blocks * gpu.sms,
            )

        variant = session.choose((task.level, task.access), usable, starter)
        problem = session.once(task, lambda: _cache_problem(gpu, variant, data))
        if problem:
            return Outcome(refusal=problem)
        start, work = starter(variant)
        part = part_bytes(variant) * variant.blocks
        evidence = {
            "geometry": f"{variant.blocks} x {variant.threads} threads per SM",
            "variant": task.variants.index(variant),
            "working_set_bytes": part * gpu.sms,
            "bytes_per_sm": part,
            "result": "equals the CPU's: sum of all words read",
        }
        return session.sample(start, work, warm_s=WARM_S, evidence=evidence)
    finally:
        gpu.free(data)


def start_cache(
    gpu: Gpu,
    variant: Variant,
    data: Memory,
    iterations: int,
    *,
    total: Memory | None = None,
    blocks: int | None = None,
) -> None:
    """Queue one launch of a kernel of ``cache.cu``."""
    rows, count = np.int32(variant.rows), np.int32(iterations)
    gpu.start(variant, data, total or NULL, rows, count, blocks=blocks)


def part_bytes(variant: Variant) -> int:
    """Bytes of the working set that one block passes over."""
    return variant.rows * variant.threads * WORD


def _cache_problem(gpu: Gpu, variant: Variant, data: Memory) -> str | None:
    found = total_of(gpu, lambda total: start_cache(gpu, variant, data, 1, total=total, blocks=2))
    return difference(found, word_sum(filled(2 * part_bytes(variant) // 8)))


def difference(found: int, expected: int) -> str | None:
    """What to say when sums differ; None when they agree."""
    if found != expected:
        return f"wrong result: the words read add up to {found:#x}, on the CPU to {expected:#x}"
    return None
