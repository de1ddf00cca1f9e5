import pytest

from mansard.bench.cpu.recipes import PATHS, missing_reason, recipes_for

AVX512 = frozenset(
    [
        "avx",
        "avx2",
        "fma",
        "avx512f",
        "avx512_fp16",
        "avx512_bf16",
        "avx512_vnni",
        "amx_tile",
        "amx_bf16",
        "amx_int8",
    ]
)
NEON = frozenset(["asimd", "asimdhp", "asimddp", "bf16", "i8mm"])


def flop(architecture, flags):
    return {
        (recipe.path, recipe.instruction): recipe.flop
        for recipe in recipes_for(architecture, flags)
    }


def test_avx512_and_amx_operations_are_counted_by_hand():
    # Lanes x 2; products of a 512-bit dot x 2; rows x columns x depth x 2.
    assert flop("x86_64", AVX512) == {
        ("vector fp64", "fma 512-bit"): 8 * 2,
        ("vector fp32", "fma 512-bit"): 16 * 2,
        ("vector fp16", "fma 512-bit"): 32 * 2,
        ("vector bf16", "vdpbf16ps 512-bit"): 32 * 2,
        ("vector int8", "vpdpbusd 512-bit"): 64 * 2,
        ("tensor bf16", "tdpbf16ps 16x16x32"): 16 * 16 * 32 * 2,
        ("tensor int8", "tdpbssd 16x16x64"): 16 * 16 * 64 * 2,
    }


def test_avx2_gives_256_bit_multiply_adds():
    assert flop("x86_64", frozenset({"avx", "avx2", "fma"})) == {
        ("vector fp64", "fma 256-bit"): 8,
        ("vector fp32", "fma 256-bit"): 16,
    }


def test_avx_vnni_without_avx512_gives_a_256_bit_dot():
    found = flop("x86_64", frozenset({"avx2", "fma", "avx_vnni"}))
    assert found["vector int8", "vpdpbusd 256-bit"] == 64


def test_neon_operations_are_counted_by_hand():
    assert flop("aarch64", NEON) == {
        ("vector fp64", "fma 128-bit"): 2 * 2,
        ("vector fp32", "fma 128-bit"): 4 * 2,
        ("vector fp16", "fma 128-bit"): 8 * 2,
        ("vector bf16", "bfdot 128-bit"): 4 * 2 * 2,
        ("vector bf16", "bfmmla 128-bit"): 2 * 2 * 4 * 2,
        ("vector int8", "sdot 128-bit"): 4 * 4 * 2,
        ("vector int8", "smmla 128-bit"): 2 * 2 * 8 * 2,
    }


@pytest.mark.parametrize(
    ("architecture", "flags"),
    [("x86_64", frozenset({"avx"})), ("aarch64", frozenset()), ("riscv64", AVX512)],
)
def test_without_a_fused_multiply_add_there_is_nothing_to_measure(architecture, flags):
    assert recipes_for(architecture, flags) == ()


@pytest.mark.parametrize(("architecture", "flags"), [("x86_64", AVX512), ("aarch64", NEON)])
def test_registers_suffice_for_accumulators_and_operands(architecture, flags):
    for recipe in recipes_for(architecture, flags):
        if recipe.form != "tile":
            assert recipe.accumulators + 2 * recipe.operands <= 31


def test_sixteen_registers_suffice_on_avx2():
    for recipe in recipes_for("x86_64", frozenset({"avx2", "fma", "avx_vnni"})):
        assert recipe.accumulators + 2 * recipe.operands <= 15


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_missing_path_has_a_reason(path, architecture):
    assert missing_reason(path, architecture, frozenset()).endswith(".")


def test_a_missing_path_names_the_instruction_set():
    reason = missing_reason("vector bf16", "x86_64", frozenset({"avx2", "fma"}))
    assert reason == "The processor does not have avx512_bf16."


def test_tiles_on_aarch64_are_not_blamed_on_the_processor():
    assert "this tool" in missing_reason("tensor bf16", "aarch64", NEON)
