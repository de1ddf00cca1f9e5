"""The text of the kernels, compiled for processors that we need not have."""

import pytest

from mansard.bench.cpu import jit
from mansard.bench.cpu.compute_kernels import (
    compute_kernel,
    compute_module,
    instructions_per_iteration,
)
from mansard.bench.cpu.machine_code import innermost_loop
from mansard.bench.cpu.recipes import recipes_for
from mansard.bench.cpu.stream_kernels import STREAMS, stream_kernel
from mansard.errors import DeviceError

AVX512 = "avx512f avx512_fp16 avx512_bf16 avx512_vnni amx_tile amx_bf16 amx_int8"
AVX2 = "avx2 fma avx_vnni"
NEON = "asimd asimdhp asimddp bf16 i8mm"
TARGETS = {
    "avx512": (
        "x86_64",
        AVX512,
        jit.Target(
            "x86_64-unknown-linux-gnu",
            "sapphirerapids",
            "+avx512f,+avx512fp16,+avx512bf16,+avx512vnni,+amx-tile,+amx-bf16,+amx-int8",
        ),
        64,
    ),
    "avx2": (
        "x86_64",
        AVX2,
        jit.Target("x86_64-unknown-linux-gnu", "alderlake", "+avx2,+fma,+avxvnni"),
        32,
    ),
    "neon": (
        "aarch64",
        NEON,
        jit.Target(
            "aarch64-unknown-linux-gnu", "neoverse-v2", "+neon,+fullfp16,+bf16,+dotprod,+i8mm"
        ),
        16,
    ),
}


def compiled(text, target):
    try:
        return jit.assembly(text, target)
    except DeviceError as error:
        pytest.skip(str(error))


def compute_cases():
    for name, (architecture, flags, _, _) in TARGETS.items():
        for recipe in recipes_for(architecture, frozenset(flags.split())):
            yield pytest.param(name, recipe, id=f"{name} {recipe.path} {recipe.instruction}")


@pytest.mark.parametrize(("name", "recipe"), list(compute_cases()))
def test_a_compute_loop_has_only_its_instruction_and_stays_in_registers(name, recipe):
    architecture, _, target, _ = TARGETS[name]
    text = compiled(compute_kernel(recipe, architecture), target)
    loop = innermost_loop(text, architecture)
    assert loop.count(recipe.mnemonic) == instructions_per_iteration(recipe)
    # Beside them: a decrement and a jump, perhaps a comparison.
    assert len(loop.instructions) <= instructions_per_iteration(recipe) + 3
    assert loop.memory_operands == 0
    assert loop.stack_operands == 0


@pytest.mark.parametrize("access", STREAMS)
@pytest.mark.parametrize("name", TARGETS)
def test_a_memory_loop_moves_exactly_the_bytes_of_its_streams(name, access):
    architecture, _, target, width = TARGETS[name]
    loop = innermost_loop(compiled(stream_kernel(access, width), target), architecture)
    reads, writes = {"read": (1, 0), "write": (0, 1), "copy": (1, 1), "triad": (2, 1)}[
        access.removesuffix(" nt")
    ]
    assert loop.vector_bytes(width) == (reads * 16 * width, writes * 16 * width)
    assert loop.stack_operands == 0


@pytest.mark.parametrize(
    ("name", "store"), [("avx512", "vmovntp[sd]"), ("avx2", "vmovntp[sd]"), ("neon", "stnp")]
)
def test_non_temporal_stores_are_real_ones(name, store):
    architecture, _, target, width = TARGETS[name]
    around = innermost_loop(compiled(stream_kernel("copy nt", width), target), architecture)
    through = innermost_loop(compiled(stream_kernel("copy", width), target), architecture)
    assert around.count(store) == 16
    assert through.count(store) == 0


def test_additions_are_spread_between_the_instructions_that_load_the_core():
    architecture, flags, target, _ = TARGETS["avx512"]
    recipe = recipes_for(architecture, frozenset(flags.split()))[0]
    text = compiled(compute_module(recipe, architecture, additions=100), target)
    loop = innermost_loop(text, architecture)
    names = [line.split()[0] for line in loop.instructions]
    assert names.count("addq") == 100
    assert names.count("vfmadd231pd") == 80
    middle = names[: len(names) // 2]
    assert 45 <= middle.count("addq") <= 55


def test_inline_assembly_for_another_architecture_is_refused_not_fatal():
    name = "neon" if jit.host_target().triple.startswith("x86_64") else "avx512"
    architecture, flags, target, _ = TARGETS[name]
    recipe = recipes_for(architecture, frozenset(flags.split()))[0]
    with pytest.raises(DeviceError, match="Inline assembly cannot be compiled"):
        jit.assembly(compute_module(recipe, architecture), target)


def test_text_that_llvm_does_not_accept_is_an_error_of_ours():
    with pytest.raises(DeviceError, match="LLVM does not accept the kernel"):
        jit.assembly("define nonsense", jit.host_target())


def test_an_unknown_target_is_an_error_of_ours():
    with pytest.raises(DeviceError, match="LLVM has no target 'pdp11-dec-unix'"):
        jit.assembly("", jit.Target("pdp11-dec-unix", "", ""))
