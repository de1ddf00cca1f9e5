"""Chains recomputed bit by bit, against NumPy where NumPy rounds once, and by hand where not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.bench.exact import FORMATS, chain


def bits(value, dtype, word):
    return int(np.array([value], dtype).view(word)[0])


@given(st.integers(0, 2**16 - 1))
@settings(max_examples=200)
def test_every_finite_half_decodes_to_its_value_and_back(code):
    value = np.array([code], np.uint16).view(np.float16)[0]
    if not np.isfinite(value):
        with pytest.raises(OverflowError):
            FORMATS["fp16"].decode(code)
        return
    m, e = FORMATS["fp16"].decode(code)
    assert m * 2.0**e == float(value)
    if value != 0:
        assert FORMATS["fp16"].encode((m, e)) == code


@given(st.floats(-1e30, 1e30))
@settings(max_examples=200)
def test_rounding_a_double_to_single_is_what_numpy_does(value):
    number = FORMATS["fp64"].decode(bits(value, np.float64, np.uint64))
    rounded = bits(np.float32(value), np.float32, np.uint32)
    if np.float32(value) != 0:  # the sign of a zero is not kept
        assert FORMATS["fp32"].encode(number) == rounded


def test_ties_go_to_even():
    # 2049 lies midway between the halves 2048 and 2050; 2051 between 2050 and 2052.
    half = FORMATS["fp16"]
    assert half.decode(half.encode((2049, 0))) == (1024, 1)
    assert half.decode(half.encode((2051, 0))) == (1026, 1)


def test_rounding_up_may_carry_into_the_next_power_of_two():
    half = FORMATS["fp16"]
    assert half.decode(half.encode((4095, 0))) == (1024, 2)


def test_subnormal_results_are_kept():
    half = FORMATS["fp16"]
    assert half.encode((1, -24)) == 1
    assert half.encode((1, -25)) == 0  # a tie: to even
    assert half.encode((3, -25)) == 2


def test_a_fused_multiply_add_rounds_once():
    # x = 1 + 2^-10 in FP16: x*x = 1 + 2^-9 + 2^-20. Minus (1 + 2^-9) leaves 2^-20, which two
    # roundings would have lost.
    x = bits(1 + 2**-10, np.float16, np.uint16)
    c = bits(-(1 + 2**-9), np.float16, np.uint16)
    packed = chain("fp16x2", "fma f16x2", x | x << 16, factor=0, addend=c | c << 16, steps=1)
    assert np.array([packed], np.uint32).view(np.float16).tolist() == [2**-20, 2**-20]


def test_the_two_halves_of_a_register_are_chains_of_their_own():
    one, two = bits(1, np.float16, np.uint16), bits(2, np.float16, np.uint16)
    zero = bits(0, np.float16, np.uint16)
    packed = chain("fp16x2", "fma f16x2", one | two << 16, factor=0, addend=zero, steps=3)
    assert np.array([packed], np.uint32).view(np.float16).tolist() == [1.0, 256.0]


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_adds_take_factor_and_addend_in_turn(steps):
    start, up, down = np.float32(0.7), np.float32(0.3), np.float32(-0.3)
    x = start
    for index in range(steps):
        x = np.float32(x + (down if index % 2 else up))
    words = [bits(v, np.float32, np.uint32) for v in (start, up, down)]
    found = chain("fp32", "add", words[0], factor=words[1], addend=words[2], steps=steps)
    assert found == bits(x, np.float32, np.uint32)


def test_integer_chains_wrap_at_32_bits():
    assert chain("int32", "mad", 3, factor=2**31 + 1, addend=5, steps=1) == (
        (3 * (2**31 + 1) + 5) % 2**32
    )


def test_the_logistic_chain_of_doubles_agrees_with_big_fractions():
    from fractions import Fraction

    x, c = 0.3, -1.85
    expected = x
    for _ in range(50):  # float() of a Fraction rounds correctly
        expected = float(Fraction(expected) ** 2 + Fraction(c))
    found = chain(
        "fp64",
        "fma",
        bits(x, np.float64, np.uint64),
        factor=0,
        addend=bits(c, np.float64, np.uint64),
        steps=50,
    )
    assert found == bits(expected, np.float64, np.uint64)
