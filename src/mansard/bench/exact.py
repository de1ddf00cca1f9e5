"""Vector chains recomputed on the CPU, bit by bit: products and sums exact, then rounded once.

Values are pairs (m, e), meaning m * 2^e with whole m: no floating-point arithmetic of the host
takes part, so fused multiply-adds of every format come out as IEEE 754 has them.
"""

import dataclasses
from collections.abc import Callable

Number = tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    Attributes:
        bits: of the whole number.
        precision: bits of the significand, the hidden one included.
    """

    bits: int
    precision: int

    @property
    def bias(self) -> int:
        """Of the exponent."""
        return (1 << (self.bits - self.precision - 1)) - 1

    def decode(self, code: int) -> Number:
        """The value of a code; infinities and NaN have none."""
        field = code >> (self.precision - 1) & (2 * self.bias + 1)
        fraction = code & ((1 << (self.precision - 1)) - 1)
        sign = -1 if code >> (self.bits - 1) & 1 else 1
        if field == 2 * self.bias + 1:
            raise OverflowError("not a finite number")
        if field == 0:
            return sign * fraction, 2 - self.bias - self.precision
        return sign * (fraction | 1 << (self.precision - 1)), field - self.bias - self.precision + 1

    def encode(self, number: Number) -> int:
        """The code of the nearest value, ties to even; zero is +0."""
        m, e = number
        if m == 0:
            return 0
        sign, size = (1 << (self.bits - 1) if m < 0 else 0), abs(m)
        lowest = 2 - self.bias - self.precision  # exponent of the last bit of a subnormal
        shift = max(size.bit_length() - self.precision, lowest - e)
        if shift > 0:
            half = 1 << (shift - 1)
            rest = size & ((1 << shift) - 1)
            size >>= shift
            if rest > half or (rest == half and size & 1):
                size += 1
        else:
            size <<= -shift
        e += shift
        if size >> self.precision:  # rounding up made one bit more
            size >>= 1
            e += 1
        if not size >> (self.precision - 1):
            return sign | size
        field = e - lowest + 1
        if field > 2 * self.bias:
            raise OverflowError("rounds to infinity")
        return sign | field << (self.precision - 1) | size & ((1 << (self.precision - 1)) - 1)


FORMATS = {
    "fp64": Format(64, 53),
    "fp32": Format(32, 24),
    "fp16": Format(16, 11),
    "bf16": Format(16, 8),
}

#: Operand of a vector kernel: format of an element and elements of a register.
_PACKED = {
    "fp64": ("fp64", 1),
    "fp32": ("fp32", 1),
    "fp32x2": ("fp32", 2),
    "fp16x2": ("fp16", 2),
    "bf16x2": ("bf16", 2),
}


def chain(
    operand: str, instruction: str, start: int, *, factor: int, addend: int, steps: int
) -> int:
    """Bits of a register after a chain of steps.

    Args:
        operand: type of the register, e.g. ``fp16x2``.
        instruction: ``fma ...`` (x*x + addend), ``add`` and ``mul`` (factor and addend in turn) or
            ``mad`` (x*factor + addend on integers).
        start: bits of x.
        factor: bits of the factor.
        addend: bits of the addend.
        steps: how many.
    """
    if operand == "int32":
        for _ in range(steps):
            start = (start * factor + addend) & 0xFFFF_FFFF
        return start
    name, count = _PACKED[operand]
    form = FORMATS[name]
    mask = (1 << form.bits) - 1
    result = 0
    for part in range(count):
        shift = part * form.bits
        codes = [value >> shift & mask for value in (start, factor, addend)]
        result |= _walk(form, instruction, codes, steps) << shift
    return result


def _walk(form: Format, instruction: str, codes: list[int], steps: int) -> int:
    x, factor, addend = (form.decode(code) for code in codes)
    operation = instruction.split(maxsplit=1)[0]
    step: Callable[[Number, int], Number] = {
        "fma": lambda x, _: add(multiply(x, x), addend),
        "add": lambda x, i: add(x, addend if i % 2 else factor),
        "mul": lambda x, i: multiply(x, addend if i % 2 else factor),
    }[operation]
    code = codes[0]
    for index in range(steps):
        code = form.encode(step(x, index))
        x = form.decode(code)
    return code


def multiply(x: Number, y: Number) -> Number:
    """The exact product."""
    return x[0] * y[0], x[1] + y[1]


def add(x: Number, y: Number) -> Number:
    """The exact sum."""
    low = min(x[1], y[1])
    return (x[0] << (x[1] - low)) + (y[0] << (y[1] - low)), low
