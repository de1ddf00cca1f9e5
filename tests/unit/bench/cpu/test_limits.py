import tomllib
from importlib import resources

import pytest

from mansard.bench.cpu.limits import Microarchitecture, flop_per_cycle, microarchitecture
from mansard.bench.cpu.recipes import recipes_for

GOLDEN_COVE = frozenset(
    ["avx512f", "avx512_fp16", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"]
)


def per_cycle(name, flags, architecture="x86_64"):
    core = microarchitecture(name, flags)
    return {
        recipe.instruction.split()[0] + " " + recipe.path: flop_per_cycle(recipe, core)
        for recipe in recipes_for(architecture, flags)
    }


def test_two_512_bit_pipes_do_32_double_operations_a_cycle():
    found = per_cycle("sapphirerapids", GOLDEN_COVE)
    assert found["fma vector fp64"] == 32
    assert found["fma vector fp32"] == 64
    assert found["fma vector fp16"] == 128


def test_tiles_do_1024_bf16_and_2048_int8_operations_a_cycle():
    found = per_cycle("sapphirerapids", GOLDEN_COVE)
    assert found["tdpbf16ps tensor bf16"] == 1024
    assert found["tdpbssd tensor int8"] == 2048


def test_zen_4_does_a_512_bit_multiply_add_in_two_halves():
    found = per_cycle("znver4", frozenset(["avx512f", "avx512_bf16"]))
    assert found["fma vector fp64"] == 16


def test_four_neon_pipes_do_16_double_operations_a_cycle():
    assert (
        per_cycle("neoverse-v2", frozenset({"asimd", "sve2"}), "aarch64")["fma vector fp64"] == 16
    )


def test_dot_products_have_no_limit_because_none_is_documented():
    assert per_cycle("sapphirerapids", GOLDEN_COVE)["vdpbf16ps vector bf16"] is None


def test_a_name_that_the_instruction_sets_contradict_gives_no_limit():
    core = microarchitecture("rocketlake", frozenset(["avx512f", "avx512_vnni", "amx_tile"]))
    assert core.fma_bits is None
    assert "calls itself rocketlake but has amx_tile" in core.reason


def test_a_core_that_lacks_what_its_name_has_gives_no_limit():
    core = microarchitecture("haswell", frozenset({"avx2"}))
    assert core.fma_bits is None
    assert "lacks fma" in core.reason


def test_an_unknown_core_gives_no_limit_and_says_so():
    core = microarchitecture("znver9", GOLDEN_COVE)
    assert core == Microarchitecture("znver9", reason=core.reason)
    assert "'znver9' is not in" in core.reason


@pytest.mark.parametrize("name", ["skylake-avx512", "cascadelake", "znver5"])
def test_cores_whose_pipes_depend_on_the_product_are_not_guessed(name):
    assert microarchitecture(name, GOLDEN_COVE).fma_bits is None


def test_every_entry_has_a_source_and_no_name_twice():
    table = tomllib.loads(
        resources.files("mansard.bench.cpu").joinpath("microarchitectures.toml").read_text("utf-8")
    )
    names = [name for core in table["core"] for name in core["names"]]
    assert len(names) == len(set(names))
    assert all(core["source"] and core["fma_bits"] in (256, 512, 1024) for core in table["core"])
