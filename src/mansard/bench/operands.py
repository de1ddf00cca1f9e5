"""Data for compute kernels: random values, zeros, small integers; and how they lie in registers.

A register of an mma instruction, or 16 bytes of a shared-memory tile, is filled by the rules of
the PTX ISA (matrix fragments; 128-byte swizzle). Everything works on raw bits, because NumPy has
no bf16 or fp8.
"""

from typing import Any

import numpy
import numpy.typing

from mansard.bench.kernels import STAGE_BYTES

Array = numpy.typing.NDArray[Any]

#: Bits of 1.0 and of the sign, for the types that NumPy does not know.
_ONE = {"bf16": 0x3F80, "e4m3": 0x38, "e5m2": 0x3C, "e2m3": 0x08, "e2m1": 0x2}
_SIGN = {"bf16": 0x8000, "e4m3": 0x80, "e5m2": 0x80, "e2m3": 0x20, "e2m1": 0x8}
_CODE_BITS = {"bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e2m1": 4}
#: Exponent bits, mantissa bits and bias of the small formats.
_SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e2m1": (2, 1, 1)}
_FLOATS = {"fp64": numpy.float64, "fp32": numpy.float32, "tf32": numpy.float32, "fp16": numpy.float16}
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


def random_bytes(operand: str, count: int, rng: numpy.random.Generator) -> Array:
    """``count`` bytes of random elements: uniform in [-1, 1], integers over their whole range."""
    if operand in ("int8", "int4", "int32"):
        return rng.integers(0, 256, count, dtype=numpy.uint8)
    if operand in _FLOATS:
        dtype = _FLOATS[operand]
        values = rng.uniform(-1, 1, count // numpy.dtype(dtype).itemsize).astype(dtype)
        if operand == "tf32":
            return (values.view(numpy.uint32) & numpy.uint32(_TF32_MASK)).view(numpy.uint8)
        return values.view(numpy.uint8)
    if operand == "bf16":
        wide = rng.uniform(-1, 1, count // 2).astype(numpy.float32).view(numpy.uint32)
        return (wide >> 16).astype(numpy.uint16).view(numpy.uint8)
    per_byte = 2 if operand == "e2m1" else 1
    codes = _nearest(operand, rng.uniform(-1, 1, count * per_byte))
    return _pack_nibbles(codes) if operand == "e2m1" else codes


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
        coded = integers.astype(numpy.int8)
    elif operand == "int4":
        return _pack_nibbles((integers & 15).astype(numpy.uint8)).reshape(rows, -1)
    else:
        codes = numpy.where(
            integers == 0, 0, numpy.where(integers < 0, _SIGN[operand], 0) | _ONE[operand]
        )
        if operand == "e2m1":
            return _pack_nibbles(codes.astype(numpy.uint8)).reshape(rows, -1)
        coded = codes.astype(numpy.uint16 if _CODE_BITS[operand] == 16 else numpy.uint8)
    return numpy.ascontiguousarray(coded).view(numpy.uint8).reshape(rows, -1)


def encode_chunks(operand: str, integers: Array) -> Array:
    """As ``encode``, for tcgen05 tiles in shared memory: six-bit elements lie 16 to 16 bytes.

    The 16 elements fill the first 12 bytes without gaps; four bytes are padding.
    """
    codes = encode(operand, integers)
    if operand != "e2m3":
        return codes
    rows = codes.shape[0]
    bits = numpy.unpackbits(codes.reshape(-1, 16, 1), axis=2, bitorder="little")[:, :, :6]
    packed = numpy.packbits(bits.reshape(len(bits), 96), axis=1, bitorder="little")
    return numpy.pad(packed, ((0, 0), (0, 4))).reshape(rows, -1)


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
    units = matrix.view(numpy.uint64 if double else numpy.uint32)
    eights = max(1, rows // 8)
    count = eights * units.shape[1] // 4
    lane = numpy.arange(32)[:, None]
    register = numpy.arange(count)[None, :]
    return numpy.asarray(
        units[lane // 4 + 8 * (register % eights), lane % 4 + 4 * (register // eights)]
    )


def sums_fragment(sums: Array, accumulator: str) -> Array:
    """Bits of the accumulators of mma.sync, for the 32 lanes of a warp.

    Register r of lane 4 g + t holds row g + 8 (r div 2), column 2 t + r mod 2; fp16 sums lie two
    to a register.
    """
    lane = numpy.arange(32)[:, None]
    register = numpy.arange(sums.shape[0] // 4)[None, :]
    picked = sums[lane // 4 + 8 * (register // 2), 2 * (lane % 4) + register % 2]
    return sums_bits(picked, accumulator)


def warpgroup_fragment(sums: Array, accumulator: str) -> Array:
    """Bits of the accumulators of a 64 x N wgmma, for the 128 lanes of a warp group."""
    lane = numpy.arange(128)[:, None]
    register = numpy.arange(sums.shape[1] // 2)[None, :]
    row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (register // 2 % 2)
    return sums_bits(sums[row, 8 * (register // 4) + 2 * (lane % 4) + register % 2], accumulator)


def sums_bits(sums: Array, accumulator: str) -> Array:
    """Integer sums as the bits of the accumulator type; fp16 two to a word along the last axis."""
    if accumulator == "int32":
        return sums.astype(numpy.int32).view(numpy.uint32)
    dtype = {"fp64": numpy.float64, "fp32": numpy.float32, "fp16": numpy.float16}[accumulator]
    wide = numpy.uint64 if accumulator == "fp64" else numpy.uint32
    return numpy.ascontiguousarray(sums.astype(dtype)).view(wide)


def swizzled(rows: Array) -> Array:
    """A K-major tile as wgmma and tcgen05 read it: chunk c of row r lies at chunk c ^ (r mod 8).

    Args:
        rows: bytes, shape (rows, 128).
    """
    chunks = rows.reshape(-1, STAGE_BYTES // 16, 16)
    row = numpy.arange(len(chunks))[:, None]
    column = numpy.arange(STAGE_BYTES // 16)[None, :]
    placed = numpy.empty_like(chunks)
    placed[row, column ^ (row % 8)] = chunks
    return placed.reshape(-1)


def hashed(words: Array) -> Array:
    """The hash that kernels store of their registers: h = 31 h + bits, over the last axis."""
    result = numpy.zeros(words.shape[:-1], words.dtype)
    factor = words.dtype.type(31)
    for index in range(words.shape[-1]):
        result = result * factor + words[..., index]
    return result


def _nearest(operand: str, values: Array) -> Array:
    """Codes of the nearest values of a small format."""
    exponent_bits, mantissa_bits, bias = _SMALL[operand]
    codes = numpy.arange(1 << (exponent_bits + mantissa_bits))
    exponent, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    known = numpy.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
    )
    small = known[known <= 1.0]  # codes of magnitudes up to 1, in increasing order
    middles = (small[1:] + small[:-1]) / 2
    found = numpy.searchsorted(middles, numpy.abs(values))
    return numpy.where(values < 0, found | _SIGN[operand], found).astype(numpy.uint8)


def _pack_nibbles(codes: Array) -> Array:
    """Two four-bit codes to a byte, the first in the low half."""
    flat = codes.reshape(-1, 2)
    return (flat[:, 0] | (flat[:, 1] << 4)).astype(numpy.uint8)
