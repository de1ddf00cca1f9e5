"""Data for compute kernels: random values, zeros, small integers; and how they lie in registers.

A register of an mma instruction, or 16 bytes of a shared-memory tile, is filled by the rules of
the PTX ISA (matrix fragments; 128-byte swizzle). Everything works on raw bits, because NumPy has
no bf16 or fp8.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mansard.bench.kernels import STAGE_BYTES

Array = npt.NDArray[Any]

#: Bits of 1.0 and of the sign, for the types that NumPy does not know.
_ONE = {"bf16": 0x3F80, "e4m3": 0x38, "e5m2": 0x3C, "e2m3": 0x08, "e2m1": 0x2}
_SIGN = {"bf16": 0x8000, "e4m3": 0x80, "e5m2": 0x80, "e2m3": 0x20, "e2m1": 0x8}
_CODE_BITS = {"bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e2m1": 4}
#: Exponent bits, mantissa bits and bias of the small formats.
_SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e2m1": (2, 1, 1)}
_FLOATS = {
    "fp64": np.float64,
    "fp32": np.float32,
    "tf32": np.float32,
    "fp16": np.float16,
}
_TF32_MASK = 0xFFFFE000

#: What turns every element of a 32-bit word into (nearly) its negative; 64 bits for fp64.
NEGATIVE = {
    "fp64": 0x8000_0000_0000_0000,
    "tf32": 0x8000_0000,
    "fp16": 0x8000_8000,
    "bf16": 0x8000_8000,
    "e4m3": 0x8080_8080,
    "e5m2": 0x8080_8080,
    "e2m3": 0x2020_2020,
    "e2m1": 0x8888_8888,
    "int8": 0xFFFF_FFFF,
    "int4": 0xFFFF_FFFF,
}


def random_bytes(operand: str, count: int, rng: np.random.Generator) -> Array:
    """``count`` bytes of random elements: uniform in [-1, 1], integers over their whole range."""
    if operand in ("int8", "int4", "int32"):
        return np.asarray(rng.integers(0, 256, count, dtype=np.uint8))
    if operand in _FLOATS:
        dtype = _FLOATS[operand]
        values = rng.uniform(-1, 1, count // np.dtype(dtype).itemsize).astype(dtype)
        if operand == "tf32":
            return (values.view(np.uint32) & np.uint32(_TF32_MASK)).view(np.uint8)
        return values.view(np.uint8)
    if operand == "bf16":
        wide = rng.uniform(-1, 1, count // 2).astype(np.float32).view(np.uint32)
        return (wide >> 16).astype(np.uint16).view(np.uint8)
    per_byte = 2 if operand == "e2m1" else 1
    codes = _nearest(operand, rng.uniform(-1, 1, count * per_byte))
    return _pack_nibbles(codes) if operand == "e2m1" else codes


def decode(operand: str, raw: Array) -> Array:
    """The values of bytes of elements, as float64."""
    if operand in _FLOATS:
        return raw.view(_FLOATS[operand]).astype(np.float64)
    if operand == "int8":
        return raw.view(np.int8).astype(np.float64)
    if operand == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(float)
    sign = _SIGN[operand]
    magnitudes = _magnitudes(operand)[raw & (sign - 1)]
    return np.asarray(np.where(raw & sign, -magnitudes, magnitudes))


def encode(operand: str, integers: Array) -> Array:
    """Bytes of small integers (-1, 0, 1) row by row.

    Args:
        operand: type of the elements.
        integers: shape (rows, k).

    Returns:
        Shape (rows, bytes of k elements). Elements of less than a byte lie two to a byte (4 bits)
        or one to a byte (6 bits).
    """
    rows = integers.shape[0]
    if operand in _FLOATS:
        coded = integers.astype(_FLOATS[operand])
    elif operand == "int8":
        coded = integers.astype(np.int8)
    elif operand == "int4":
        return _pack_nibbles((integers & 15).astype(np.uint8)).reshape(rows, -1)
    else:
        codes = np.where(
            integers == 0, 0, np.where(integers < 0, _SIGN[operand], 0) | _ONE[operand]
        )
        if operand == "e2m1":
            return _pack_nibbles(codes.astype(np.uint8)).reshape(rows, -1)
        coded = codes.astype(np.uint16 if _CODE_BITS[operand] == 16 else np.uint8)
    return np.ascontiguousarray(coded).view(np.uint8).reshape(rows, -1)


def encode_chunks(operand: str, integers: Array) -> Array:
    """As ``encode``, for tcgen05 tiles in shared memory: six-bit elements lie 16 to 16 bytes.

    The 16 elements fill the first 12 bytes without gaps; four bytes are padding.
    """
    codes = encode(operand, integers)
    if operand != "e2m3":
        return codes
    rows = codes.shape[0]
    bits = np.unpackbits(codes.reshape(-1, 16, 1), axis=2, bitorder="little")[:, :, :6]
    packed = np.packbits(bits.reshape(len(bits), 96), axis=1, bitorder="little")
    return np.pad(packed, ((0, 0), (0, 4))).reshape(rows, -1)


def fragment(matrix: Array, rows: int, *, double: bool) -> Array:
    """Registers of an operand of mma.sync, for the 32 lanes of a warp.

    Args:
        matrix: bytes, shape (rows, bytes of K): A as it is, B transposed.
        rows: M or N.
        double: registers of 64 bits.

    Returns:
        Shape (32, registers). Register r of lane 4 g + t holds row g + 8 (r mod rows/8), and of
        that row the register-wide unit t + 4 (r div rows/8).
    """
    units = matrix.view(np.uint64 if double else np.uint32)
    eights = max(1, rows // 8)
    count = eights * units.shape[1] // 4
    lane = np.arange(32)[:, None]
    register = np.arange(count)[None, :]
    return np.asarray(
        units[lane // 4 + 8 * (register % eights), lane % 4 + 4 * (register // eights)]
    )


def sums_fragment(sums: Array, accumulator: str) -> Array:
    """Bits of the accumulators of mma.sync, for the 32 lanes of a warp.

    Register r of lane 4 g + t holds row g + 8 (r div 2), column 2 t + r mod 2; fp16 sums lie two
    to a register.
    """
    lane = np.arange(32)[:, None]
    register = np.arange(sums.shape[0] // 4)[None, :]
    picked = sums[lane // 4 + 8 * (register // 2), 2 * (lane % 4) + register % 2]
    return sums_bits(picked, accumulator)


def warpgroup_fragment(sums: Array, accumulator: str) -> Array:
    """Bits of the accumulators of a 64 x N wgmma, for the 128 lanes of a warp group."""
    lane = np.arange(128)[:, None]
    register = np.arange(sums.shape[1] // 2)[None, :]
    row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (register // 2 % 2)
    return sums_bits(sums[row, 8 * (register // 4) + 2 * (lane % 4) + register % 2], accumulator)


def sums_bits(sums: Array, accumulator: str) -> Array:
    """Integer sums as the bits of the accumulator type; fp16 two to a word along the last axis."""
    if accumulator == "int32":
        return sums.astype(np.int32).view(np.uint32)
    dtype = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}[accumulator]
    wide = np.uint64 if accumulator == "fp64" else np.uint32
    return np.ascontiguousarray(sums.astype(dtype)).view(wide)


def swizzled(rows: Array) -> Array:
    """A K-major tile as wgmma and tcgen05 read it: chunk c of row r lies at chunk c ^ (r mod 8).

    Args:
        rows: bytes, shape (rows, 128).
    """
    chunks = rows.reshape(-1, STAGE_BYTES // 16, 16)
    row = np.arange(len(chunks))[:, None]
    column = np.arange(STAGE_BYTES // 16)[None, :]
    placed = np.empty_like(chunks)
    placed[row, column ^ (row % 8)] = chunks
    return placed.reshape(-1)


def hashed(words: Array) -> Array:
    """The hash that kernels store of their registers: h = 31 h + bits, over the last axis."""
    result = np.zeros(words.shape[:-1], words.dtype)
    factor = words.dtype.type(31)
    for index in range(words.shape[-1]):
        result = result * factor + words[..., index]
    return result


def _magnitudes(operand: str) -> Array:
    """Values of the positive codes of a small format, in increasing order."""
    exponent_bits, mantissa_bits, bias = _SMALL[operand]
    codes = np.arange(1 << (exponent_bits + mantissa_bits))
    exponent, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    return np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
    )


def _nearest(operand: str, values: Array) -> Array:
    """Codes of the nearest values of a small format, of magnitudes up to 1."""
    known = _magnitudes(operand)
    small = known[known <= 1.0]
    middles = (small[1:] + small[:-1]) / 2
    found = np.searchsorted(middles, np.abs(values))
    return np.where(values < 0, found | _SIGN[operand], found).astype(np.uint8)


def _pack_nibbles(codes: Array) -> Array:
    """Two four-bit codes to a byte, the first in the low half."""
    flat = codes.reshape(-1, 2)
    return np.asarray(flat[:, 0] | (flat[:, 1] << 4), np.uint8)
