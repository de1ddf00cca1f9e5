import dataclasses

import numpy as np
import pytest

from mansard.bench.cpu import oracle
from mansard.bench.cpu.recipes import Recipe, recipes_for

FLAGS = {
    "x86_64": "avx512f avx512_fp16 avx512_bf16 avx512_vnni amx_tile amx_bf16 amx_int8",
    "aarch64": "asimd asimdhp asimddp bf16 i8mm",
}


def recipe(architecture: str, start: str) -> Recipe:
    flags = frozenset(FLAGS[architecture].split())
    return next(it for it in recipes_for(architecture, flags) if it.instruction.startswith(start))


def single(base: Recipe) -> Recipe:
    """The same instruction with one accumulator and one operand of each kind."""
    return dataclasses.replace(base, accumulators=1, operands=1)


def after_one_iteration(base: Recipe, acc, a, b):
    memory = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in (acc, a, b)])
    return oracle.expected_accumulators(single(base), memory, 1)


def test_a_fused_multiply_add_rounds_once():
    # (1 + 2^-30)^2 = 1 + 2^-29 + 2^-60: a product that is rounded first loses 2^-60, and the sum
    # with -(1 + 2^-29) would be 0. Only the last of the four steps has a b that is not zero.
    base = dataclasses.replace(recipe("x86_64", "fma"), accumulators=1, operands=4)
    value, nothing = np.full(8, 1 + 2.0**-30), np.zeros(8)
    start = np.full(8, -(1 + 2.0**-29))
    memory = np.concatenate([start, *[value] * 4, nothing, nothing, nothing, value])
    found = oracle.expected_accumulators(base, memory.view(np.uint8), 1).view(np.float64)
    assert np.all(found == 2.0**-60)


def test_a_bf16_dot_adds_two_products_to_each_single():
    one, two, three = 0x3F80, 0x4000, 0x4040
    a = np.tile(np.array([one, two], np.uint16), 16)
    b = np.tile(np.array([three, two], np.uint16), 16)
    found = after_one_iteration(recipe("x86_64", "vdpbf16ps"), np.zeros(16, np.float32), a, b)
    assert np.all(found.view(np.float32) == 4 * (1 * 3 + 2 * 2))


def test_an_int8_dot_takes_the_first_operand_unsigned():
    a = np.full(64, 255, np.uint8)
    b = np.full(64, -1, np.int8)
    found = after_one_iteration(recipe("x86_64", "vpdpbusd"), np.zeros(16, np.int32), a, b)
    assert np.all(found.view(np.int32) == 4 * 4 * -255)


def test_integer_sums_wrap_as_registers_do():
    a, b = np.full(64, 255, np.uint8), np.full(64, 127, np.int8)
    start = np.full(16, 2**31 - 1, np.int32)
    found = after_one_iteration(recipe("x86_64", "vpdpbusd"), start, a, b)
    assert np.all(found.view(np.int32) == 2**31 - 1 + 16 * 255 * 127 - 2**32)


def test_a_matrix_instruction_multiplies_rows_with_rows():
    # a = rows (1..8), (0..0); b = rows (1..1), (2..2): products 36 and 72 in the first row.
    a = np.array([*range(1, 9), *[0] * 8], np.int8)
    b = np.array([*[1] * 8, *[2] * 8], np.int8)
    found = after_one_iteration(recipe("aarch64", "smmla"), np.zeros(4, np.int32), a, b)
    assert found.view(np.int32).tolist() == [4 * 36, 4 * 72, 0, 0]


def test_a_tile_of_b_interleaves_neighbours_in_depth():
    # a has a single 1 at row 2, depth 5; b a single 3 at depth 5, column 7: word 7 of row 5 // 4,
    # byte 5 % 4.
    a, b = np.zeros((16, 64), np.int8), np.zeros((16, 64), np.int8)
    a[2, 5] = 1
    b[1, 7 * 4 + 1] = 3
    base = recipe("x86_64", "tdpbssd")
    found = after_one_iteration(base, np.zeros(256, np.int32), a.reshape(-1), b.reshape(-1))
    expected = np.zeros((16, 16), np.int32)
    expected[2, 7] = 4 * 3
    assert np.array_equal(found.view(np.int32).reshape(16, 16), expected)


@pytest.mark.parametrize(
    ("architecture", "start"),
    [
        (arch, it.instruction)
        for arch, text in FLAGS.items()
        for it in recipes_for(arch, frozenset(text.split()))
    ],
)
def test_bounded_values_come_back_after_an_iteration(architecture, start):
    base = recipe(architecture, start)
    memory = oracle.initial_memory(base, 3, bounded=True)
    kind = {"fp64": "f8", "fp32": "f4", "fp16": "f2", "int32": "i4"}[base.result]
    size = base.accumulators * base.register_bytes
    before = memory[:size].view(kind).astype(float)
    after = oracle.expected_accumulators(base, memory, 1).view(kind).astype(float)
    assert np.max(np.abs(after - before)) < 0.01


def test_values_of_a_check_move_on():
    base = recipe("x86_64", "fma")
    memory = oracle.initial_memory(base, 3, bounded=False)
    after = oracle.expected_accumulators(base, memory, 1).view(np.float64)
    before = memory[: after.nbytes].view(np.float64)
    assert np.all(np.abs(after - before) > 1e-6)


def test_a_tile_configuration_describes_eight_tiles_of_16_rows_and_64_bytes():
    memory = oracle.initial_memory(recipe("x86_64", "tdpbf16ps"), 0, bounded=True)
    config = memory[8 * 1024 :]
    assert len(config) == 64
    assert config[0] == 1
    assert config[16:32].view(np.uint16).tolist() == [64] * 8
    assert config[48:56].tolist() == [16] * 8
    assert not config[1:16].any()
    assert not config[32:48].any()
    assert not config[56:].any()
