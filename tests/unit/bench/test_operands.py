"""Bits of operands, and where the PTX ISA places them."""

import numpy as np
import pytest

from mansard.bench import operands

FORMATS = ["fp64", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e2m3", "int8"]


@pytest.mark.parametrize("operand", FORMATS)
def test_small_integers_survive_encoding(operand):
    values = np.array([[-1, 0, 1, 1]])
    assert operands.decode(operand, operands.encode(operand, values)[0]).tolist() == [-1, 0, 1, 1]


@pytest.mark.parametrize(
    ("operand", "code", "value"),
    [
        ("e4m3", 0x7E, 448.0),  # the largest number of E4M3
        ("e4m3", 0x01, 2.0**-9),  # the smallest subnormal
        ("e5m2", 0x7B, 57344.0),
        ("e2m3", 0x1F, 7.5),
        ("bf16", None, None),
    ],
)
def test_codes_of_small_formats_have_the_values_of_their_standards(operand, code, value):
    if code is None:
        assert operands.decode("bf16", np.array([0x80, 0x3F], np.uint8)).tolist() == [1.0]
        return
    assert operands.decode(operand, np.array([code], np.uint8)).tolist() == [value]


@pytest.mark.parametrize("operand", [*FORMATS, "int4", "e2m1"])
def test_random_data_fill_the_bytes_asked_for(operand):
    data = operands.random_bytes(operand, 4096, np.random.default_rng(0))
    assert (data.dtype, len(data)) == (np.uint8, 4096)
    assert len(np.unique(data)) > 10


@pytest.mark.parametrize("operand", ["fp64", "tf32", "fp16", "bf16", "e4m3", "e5m2"])
def test_random_numbers_are_finite_within_1_and_of_both_signs(operand):
    data = operands.random_bytes(operand, 8192, np.random.default_rng(0))
    values = operands.decode("fp32" if operand == "tf32" else operand, data)
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 1
    assert 0.3 < (values < 0).mean() < 0.7


@pytest.mark.parametrize("operand", ["fp16", "bf16", "e4m3", "e5m2"])
def test_the_negative_mask_negates_every_element(operand):
    word = operands.encode(operand, np.ones((1, 8), int)).view(np.uint32)
    negated = (word ^ np.uint32(operands.NEGATIVE[operand])).view(np.uint8).reshape(-1)
    assert (operands.decode(operand, negated) == -1).all()


def test_fragment_of_a_16_by_16_half_tile_follows_the_ptx_isa():
    # Element (row, k) is 100 row + k. Lane 4 g + t holds in register 0 the pair (g, 2t), in
    # register 1 row g + 8, in register 2 column + 8, in register 3 both.
    tile = (100 * np.arange(16)[:, None] + np.arange(16)).astype(np.uint16)
    registers = operands.fragment(tile.view(np.uint8), 16, double=False)
    pairs = registers.view(np.uint16).reshape(32, 4, 2)
    assert pairs[0].tolist() == [[0, 1], [800, 801], [8, 9], [808, 809]]
    assert pairs[4 * 3 + 2].tolist() == [[304, 305], [1104, 1105], [312, 313], [1112, 1113]]


def test_fragment_of_an_8_column_operand_has_columns_over_groups():
    transposed = (100 * np.arange(8)[:, None] + np.arange(16)).astype(np.uint16)
    registers = operands.fragment(transposed.view(np.uint8), 8, double=False)
    pairs = registers.view(np.uint16).reshape(32, 2, 2)
    assert pairs[4 * 7 + 1].tolist() == [[702, 703], [710, 711]]


def test_fragment_of_doubles_follows_the_ptx_isa_for_m16n8k16():
    tile = (100.0 * np.arange(16)[:, None] + np.arange(16)).view(np.uint8)
    registers = operands.fragment(tile, 16, double=True).view(np.float64)
    # Even registers row g, odd ones row g + 8; columns t, t, t + 4, t + 4, t + 8, ...
    assert registers[4 * 2 + 1].tolist() == [201, 1001, 205, 1005, 209, 1009, 213, 1013]


def test_sums_of_a_warp_lie_two_neighbours_to_a_lane():
    sums = 100 * np.arange(16)[:, None] + np.arange(8)
    bits = operands.sums_fragment(sums, "int32")
    assert bits[4 * 5 + 3].tolist() == [506, 507, 1306, 1307]


def test_half_sums_are_packed_low_first():
    sums = np.array([[1, 2]] * 16).repeat(4, axis=1)[:, [0, 4] * 4]
    bits = operands.sums_fragment(sums, "fp16")
    assert bits.shape == (32, 2)
    assert bits[0, 0] == 0x4000_3C00  # 1.0 low, 2.0 high


def test_sums_of_a_warp_group_lie_16_rows_to_a_warp():
    sums = 1000 * np.arange(64)[:, None] + np.arange(256)
    bits = operands.warpgroup_fragment(sums, "int32")
    assert bits.shape == (128, 128)
    # Thread 32 w + 4 g + t, register i: row 16 w + g + 8 (i/2 mod 2), column 8 (i/4) + 2 t + i mod 2
    assert bits[32 * 2 + 4 * 3 + 1, 7].item() == 1000 * (32 + 3 + 8) + 8 + 2 + 1


def test_swizzling_exchanges_16_byte_chunks_by_the_row_within_8():
    tile = np.arange(256, dtype=np.int64).reshape(16, 16)[:, :8].repeat(16, axis=1)
    placed = operands.swizzled(tile.astype(np.uint8)).reshape(16, 8, 16)[:, :, 0]
    assert placed[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert placed[1].tolist() == [17, 16, 19, 18, 21, 20, 23, 22]
    assert placed[9].tolist() == [145, 144, 147, 146, 149, 148, 151, 150]


def test_six_bit_elements_fill_12_of_16_bytes():
    packed = operands.encode_chunks("e2m3", np.ones((1, 32), int))
    assert packed.shape == (1, 32)
    # 1.0 is 001000: four of them in three bytes, 0b001000_001000_001000_001000.
    assert packed[0, :3].tolist() == [0x08, 0x82, 0x20]
    assert packed[0, 12:16].tolist() == [0, 0, 0, 0]


def test_the_hash_weighs_positions():
    words = np.array([[1, 2], [2, 1]], np.uint32)
    assert operands.hashed(words).tolist() == [33, 63]
    assert operands.hashed(np.array([[2**31, 5]], np.uint32)).tolist() == [(2**31 * 31 + 5) % 2**32]
