"""Inputs of the compute kernels, by source; and for a check run, the output that they must give."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mansard.bench import exact, operands
from mansard.bench.kernels import ELEMENT_BITS, STAGE_BYTES, Variant
from mansard.bench.messages import Task
from mansard.bench.operands import NEGATIVE, Array

Arm = Literal["random", "low-toggle"]

#: Elements of the arrays of a vector chain, and records of an mma chain; powers of two.
_VECTOR_ELEMENTS = 1 << 16
_MMA_RECORDS = 1 << 11
_CHECK_RECORDS = 1 << 7
_WORD_TYPES = {32: np.uint32, 64: np.uint64}


@dataclasses.dataclass(frozen=True, slots=True)
class Inputs:
    """What a kernel is called with.

    Attributes:
        arrays: device arrays before the output, in the order of the arguments.
        mask: argument after the output, for the kernels that have one.
    """

    arrays: tuple[Array, ...]
    mask: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A run of one iteration whose output is known.

    Attributes:
        inputs: of the kernel.
        expected: words that the given threads store.
        threads: indices of those threads within the grid.
        what: what was recomputed, for the evidence.
    """

    inputs: Inputs
    expected: Array
    threads: Array
    what: str


def inputs(task: Task, variant: Variant, arm: Arm, rng: np.random.Generator) -> Inputs:
    """Data of one arm: random, or all zero."""
    made = _MAKERS[variant.source](task, variant, rng)
    if arm == "random":
        return made
    return Inputs(tuple(np.zeros_like(array) for array in made.arrays), made.mask)


def check_case(task: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    """A check run: one iteration of ``blocks`` blocks on data whose result the CPU knows."""
    make: Callable[[Task, Variant, int, np.random.Generator], Case] = {
        "vector.cu": _vector_case,
        "mma.cu": _mma_case,
        "wmma.cu": _wmma_case,
        "wgmma.cu": _wgmma_case,
        "tcgen05.cu": _tcgen05_case,
    }[variant.source]
    return make(task, variant, blocks, rng)


def output_words(variant: Variant, blocks: int) -> tuple[Any, int]:
    """Type and number of the words that a launch stores."""
    if variant.source == "wmma.cu":
        return np.uint32, blocks * variant.threads // 32 * 256
    wide = variant.defines.get("HASH") == "unsigned long long"
    return np.uint64 if wide else np.uint32, blocks * variant.threads


# Vector -----------------------------------------------------------------------------------------


def _vector_inputs(task: Task, _: Variant, rng: np.random.Generator) -> Inputs:
    """Start in [-1, 1]; the constants keep it bounded: see the head of ``vector.cu``."""
    operand = str(task.operand)
    element = {"fp32x2": "fp32", "fp16x2": "fp16", "bf16x2": "bf16"}.get(operand, operand)
    size = _VECTOR_ELEMENTS * ELEMENT_BITS[operand] // 8
    word = _WORD_TYPES[ELEMENT_BITS[operand]]
    start = operands.random_bytes(element, size, rng).view(word)
    if operand == "int32":
        factors = operands.random_bytes(operand, size, rng).view(word) | word(1)
        return Inputs(
            (start, factors, operands.random_bytes(operand, size, rng).view(word)),
            _VECTOR_ELEMENTS - 1,
        )
    count = size * 8 // ELEMENT_BITS[element]
    operation = str(task.instruction).split(maxsplit=1)[0]
    if operation == "fma":
        first, second = np.zeros(count), rng.uniform(-1.9, -1.8, count)
    elif operation == "add":
        first = rng.uniform(0.25, 1.0, count)
        second = -first
    else:
        first = rng.uniform(1.25, 1.75, count)
        second = 1.0 / first
    return Inputs(
        (start, _coded(element, first).view(word), _coded(element, second).view(word)),
        _VECTOR_ELEMENTS - 1,
    )


def _vector_case(task: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    made = _vector_inputs(task, variant, rng)
    start, factors, addends = made.arrays
    ilp, steps = variant.number("ILP"), variant.number("STEPS")
    threads = np.array([0, blocks * variant.threads - 1])
    words = np.zeros((len(threads), ilp), start.dtype)
    for index, thread in enumerate(threads.tolist()):
        for i in range(ilp):
            words[index, i] = exact.chain(
                str(task.operand),
                str(task.instruction),
                int(start[(thread * ilp + i) & (_VECTOR_ELEMENTS - 1)]),
                factor=int(factors[thread & (_VECTOR_ELEMENTS - 1)]),
                addend=int(addends[thread & (_VECTOR_ELEMENTS - 1)]),
                steps=steps,
            )
    what = f"{len(threads)} threads x {ilp} chains x {steps} steps, bit for bit"
    return Case(made, operands.hashed(words), threads, what)


def _coded(element: str, values: Array) -> Array:
    """Bytes of real numbers in a format."""
    if element == "bf16":
        wide = values.astype(np.float32).view(np.uint32)
        return (wide >> 16).astype(np.uint16).view(np.uint8)
    dtype = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}[element]
    return np.ascontiguousarray(values.astype(dtype)).view(np.uint8)


# mma.sync ---------------------------------------------------------------------------------------


def _tiles_of(variant: Variant) -> tuple[int, int, int]:
    """A tiles, B tiles, and words of a thread's record."""
    a, b = variant.number("A_TILES"), variant.number("B_TILES")
    return a, b, a * variant.number("A_REGS") + b * variant.number("B_REGS")


def _mma_inputs(task: Task, variant: Variant, rng: np.random.Generator) -> Inputs:
    """The second half of the A tiles is the negative of the first, so that sums stay bounded."""
    operand = str(task.operand)
    a_tiles, _, width = _tiles_of(variant)
    word = _WORD_TYPES[64 if operand == "fp64" else 32]
    size = _MMA_RECORDS * width * np.dtype(word).itemsize
    records = operands.random_bytes(operand, size, rng).view(word).reshape(-1, width).copy()
    half = a_tiles // 2 * variant.number("A_REGS")
    records[:, half : 2 * half] = records[:, :half] ^ word(NEGATIVE[operand])
    return Inputs((records,), _MMA_RECORDS - 1)


def _mma_case(task: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    """Small integers: every product and sum is exact in every format and order."""
    operand, accumulator = str(task.operand), str(task.accumulator)
    m, n, k = task.shape or (0, 0, 0)
    a_tiles, b_tiles, _ = _tiles_of(variant)
    warps = _CHECK_RECORDS // 32
    double = operand == "fp64"
    records, expected = [], []
    for _ in range(warps):
        a = rng.integers(-1, 2, (a_tiles, m, k))
        b = rng.integers(-1, 2, (b_tiles, k, n))
        parts = [operands.fragment(operands.encode(operand, tile), m, double=double) for tile in a]
        parts += [
            operands.fragment(
                operands.encode(operand, np.ascontiguousarray(tile.T)), n, double=double
            )
            for tile in b
        ]
        records.append(np.concatenate(parts, axis=1))
        sums = [
            sum(
                a[step % a_tiles] @ b[(step + i) % b_tiles]
                for step in range(variant.number("STEPS"))
            )
            for i in range(variant.number("ILP"))
        ]
        bits = [operands.sums_fragment(one, accumulator) for one in sums]
        expected.append(operands.hashed(np.concatenate(bits, axis=1)))
    threads = np.arange(blocks * variant.threads)
    return Case(
        Inputs((np.concatenate(records),), _CHECK_RECORDS - 1),
        np.concatenate(expected)[threads % _CHECK_RECORDS],
        threads,
        f"all {variant.number('ILP')} accumulators of {len(threads) // 32} warps, integer data",
    )


# wmma -------------------------------------------------------------------------------------------


def _wmma_inputs(_task: Task, _: Variant, rng: np.random.Generator) -> Inputs:
    tiles = operands.random_bytes("fp16", 4 * 512, rng).view(np.uint16).copy()
    tiles[256:512] = tiles[:256] ^ np.uint16(0x8000)
    return Inputs((tiles,))


def _wmma_case(_: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    a, b = rng.integers(-1, 2, (2, 16, 16)), rng.integers(-1, 2, (2, 16, 16))
    total = np.zeros((16, 16), np.int64)
    for i in range(variant.number("ILP")):
        for step in range(variant.number("STEPS")):
            total += (i + 1) * (a[step % 2] @ b[(step // 2 + i) % 2])
    columns = np.ascontiguousarray(b.transpose(0, 2, 1))
    halves = [operands.encode("fp16", one.reshape(32, 16)).reshape(-1) for one in (a, columns)]
    count = blocks * variant.threads // 32
    return Case(
        Inputs((np.concatenate(halves).view(np.uint16),)),
        np.tile(operands.sums_bits(total, "fp32").reshape(-1), count),
        np.arange(count * 256),
        f"the sums of {variant.number('ILP')} accumulators of {count} warps, integer data",
    )


# wgmma and tcgen05 ------------------------------------------------------------------------------


def _tile_inputs(task: Task, variant: Variant, rng: np.random.Generator) -> Inputs:
    """B stages repeat and the second half of the A stages is the negative of the first half."""
    operand = str(task.operand)
    stages = variant.number("STAGES")
    m, n, _ = task.shape or (0, 0, 0)
    groups = variant.number("GROUPS") if variant.source == "wgmma.cu" else 1
    half = max(1, stages // 2)

    def random(rows: int) -> Array:
        size = rows * STAGE_BYTES
        if operand == "e2m3":  # packed: every bit pattern is a number
            return rng.integers(0, 256, size, dtype=np.uint8)
        return operands.random_bytes(operand, size, rng)

    b = np.concatenate([random(half * n)] * (stages // half))
    parts = [b]
    mask = np.uint32(NEGATIVE[operand])
    for _ in range(groups):
        a = random(half * m).view(np.uint32)
        parts.append(np.concatenate([a, a ^ mask][: stages // half]).view(np.uint8))
    return Inputs((np.concatenate(parts),))


def _stage_tiles(
    task: Task, count: int, rows: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Integer tiles of one stage each: values, and their bytes in the order of shared memory."""
    bits = 8 if task.operand == "e2m3" else ELEMENT_BITS[str(task.operand)]
    values = rng.integers(-1, 2, (count, rows, STAGE_BYTES * 8 // bits))
    images = [operands.swizzled(operands.encode_chunks(str(task.operand), one)) for one in values]
    return values, np.concatenate(images)


def _product(a: Array, b: Array) -> Array:
    """Sum over stages of A times B transposed; exact, for the integers are small."""
    wide = (a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)).sum(axis=0)
    return np.asarray(wide.astype(np.int64))


def _wgmma_case(task: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    stages, groups = variant.number("STAGES"), variant.number("GROUPS")
    m, n, _ = task.shape or (0, 0, 0)
    b, image = _stage_tiles(task, stages, n, rng)
    images, expected = [image], []
    for _ in range(groups):
        a, image = _stage_tiles(task, stages, m, rng)
        images.append(image)
        sums = _product(a, b)
        expected.append(operands.hashed(operands.warpgroup_fragment(sums, str(task.accumulator))))
    threads = np.arange(blocks * variant.threads)
    return Case(
        Inputs((np.concatenate(images),)),
        np.tile(np.concatenate(expected), blocks),
        threads,
        f"all accumulators of {len(threads) // 128} warp groups, integer data",
    )


def _tcgen05_case(task: Task, variant: Variant, blocks: int, rng: np.random.Generator) -> Case:
    stages, sets = variant.number("STAGES"), variant.number("SETS")
    m, n, _ = task.shape or (0, 0, 0)
    b, b_image = _stage_tiles(task, stages, n, rng)
    a, a_image = _stage_tiles(task, stages, m, rng)
    sums = [_product(a[i::sets], b[i::sets]) for i in range(sets)]
    words = operands.sums_bits(np.concatenate(sums, axis=1), str(task.accumulator))
    threads = np.arange(blocks * variant.threads)
    return Case(
        Inputs((np.concatenate([b_image, a_image]),)),
        np.tile(operands.hashed(words), blocks),
        threads,
        f"all accumulators of {blocks} blocks, integer data",
    )


_MAKERS: dict[str, Callable[[Task, Variant, np.random.Generator], Inputs]] = {
    "vector.cu": _vector_inputs,
    "mma.cu": _mma_inputs,
    "wmma.cu": _wmma_inputs,
    "wgmma.cu": _tile_inputs,
    "tcgen05.cu": _tile_inputs,
}
