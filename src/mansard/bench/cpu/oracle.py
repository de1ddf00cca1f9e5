"""Independent recomputation of what the compute kernels do, and the values they start from.

Floating-point recurrences are recomputed with exact rational numbers, rounded once a step, as a
fused multiply-add must: results agree to the last bit. Dot, matrix and tile instructions are
checked with small whole numbers, whose sums are exact in any order.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from mansard.bench.cpu.compute_kernels import COMPUTE_UNROLL
from mansard.bench.cpu.recipes import ELEMENT_BITS, TILE_ROWS, Recipe

Array = np.ndarray[Any, Any]

_RAW = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": np.uint16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
}
# Palette 1; rows and bytes of a row of eight full tiles (Intel 64 manual, LDTILECFG).
_TILE_CONFIG = bytes([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[TILE_ROWS] * 8, *[0] * 8])


def initial_memory(recipe: Recipe, seed: int, *, bounded: bool) -> Array:
    """Bytes that a compute kernel starts from: accumulators, then a, then b.

    Args:
        recipe: the instruction.
        seed: of the random values.
        bounded: whether the second half of b is the first half negated, so that accumulators come
            back after each iteration and can run for hours. A check needs them to move on.
    """
    random = np.random.default_rng(seed)
    operands = recipe.operands
    lanes = 8 * recipe.register_bytes // _bits(recipe.result)
    a = [_values(recipe.first, recipe, random) for _ in range(operands)]
    b = [_values(recipe.second, recipe, random) for _ in range(operands)]
    if bounded:
        half = operands // 2
        b[half:] = [_negated(recipe.second, values) for values in b[:half]]
    if recipe.form == "fma":
        start = [_values(recipe.first, recipe, random) for _ in range(recipe.accumulators)]
    else:
        start = [np.zeros(lanes, _RAW[recipe.result]) for _ in range(recipe.accumulators)]
    parts = [part.view(np.uint8) for part in (*start, *a, *b)]
    if recipe.form == "tile":
        parts.append(np.frombuffer(_TILE_CONFIG, dtype=np.uint8))
    return np.concatenate(parts)


def expected_accumulators(recipe: Recipe, memory: Array, iterations: int) -> Array:
    """The accumulators after some iterations, as the bytes that the kernel must leave.

    Args:
        recipe: the instruction.
        memory: what ``initial_memory`` made.
        iterations: of the loop of the kernel.
    """
    size = recipe.register_bytes
    registers = [memory[start : start + size] for start in range(0, len(memory) - size + 1, size)]
    chains, operands = recipe.accumulators, recipe.operands
    a = [_decoded(recipe.first, part) for part in registers[chains : chains + operands]]
    b = [_decoded(recipe.second, part) for part in registers[chains + operands :][:operands]]
    results: list[Array] = []
    for k in range(chains):
        value = _decoded(recipe.result, registers[k])
        for step in range(COMPUTE_UNROLL * iterations):
            other = b[(k // operands + step % COMPUTE_UNROLL) % operands]
            value = _step(recipe, value, a[k % operands], other)
        results.append(np.asarray(value, _RAW[recipe.result]).view(np.uint8))
    return np.concatenate(results)


def _step(recipe: Recipe, value: Array, a: Array, b: Array) -> Array:
    if recipe.form == "fma":
        return _fused(value, a, b)
    per_word = 32 // ELEMENT_BITS[recipe.first]
    if recipe.form == "dot":
        return _wrapped(recipe, value + (a * b).reshape(-1, per_word).sum(axis=1))
    if recipe.form == "matrix":
        depth = 2 * per_word
        rows, columns = a.reshape(-1, 2, depth), b.reshape(-1, 2, depth)
        return _wrapped(recipe, value + np.einsum("vik,vjk->vij", rows, columns).reshape(-1))
    # A tile of b keeps neighbours in depth together: word n of row k holds b[k*g .. k*g+g-1, n].
    left = a.reshape(TILE_ROWS, -1)
    right = b.reshape(TILE_ROWS, TILE_ROWS, per_word).transpose(0, 2, 1).reshape(-1, TILE_ROWS)
    return _wrapped(recipe, value + (left @ right).reshape(-1))


def _fused(value: Array, a: Array, b: Array) -> Array:
    exact = (
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, value, strict=True)
    )
    # float() rounds to the nearest double; half and single then round what is exact in a double.
    return np.array([float(number) for number in exact]).astype(value.dtype)


def _wrapped(recipe: Recipe, value: Array) -> Array:
    return value.astype(np.int32).astype(np.int64) if recipe.result == "int32" else value


def _values(element: str, recipe: Recipe, random: np.random.Generator) -> Array:
    count = 8 * recipe.register_bytes // ELEMENT_BITS[element]
    if recipe.form == "fma":
        values = 0.5 + 0.5 * random.random(count)
        negative = random.integers(0, 2, count) == 1
        return np.where(negative, -values, values).astype(_RAW[element])
    if element == "bf16":
        whole = random.integers(-8, 9, count).astype(np.float32)
        return np.right_shift(whole.view(np.uint32), 16).astype(np.uint16)
    low, high = (0, 256) if element == "uint8" else (-127, 128)
    return random.integers(low, high, count).astype(_RAW[element])


def _negated(element: str, values: Array) -> Array:
    if element == "bf16":
        return values ^ np.uint16(0x8000)
    return np.negative(values)


def _decoded(element: str, part: Array) -> Array:
    raw: Array = np.ascontiguousarray(part).view(_RAW[element])
    if element == "bf16":
        single: Array = np.left_shift(raw.astype(np.uint32), 16).view(np.float32)
        return single.astype(np.float64)
    if element in ("int8", "uint8", "int32"):
        return raw.astype(np.int64)
    return raw


def _bits(result: str) -> int:
    return 32 if result == "int32" else ELEMENT_BITS[result]
