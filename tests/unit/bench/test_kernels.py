"""The table of compute kernels and what follows from it."""

import pytest

from mansard.bench.kernels import flop_of, kernels, mma_ptx, registers
from mansard.bench.variants import variants


def one(path, instruction, capability="9.0"):
    major, minor = (int(part) for part in capability.split("."))
    return next(
        kernel
        for kernel in kernels()
        if (kernel.path, kernel.instruction) == (path, instruction)
        and kernel.runs_on((major, minor))
    )


@pytest.mark.parametrize(
    ("path", "instruction", "capability", "flop"),
    [
        ("tensor bf16", "mma.sync", "9.0", 4096),
        ("tensor tf32", "mma.sync", "9.0", 2048),
        ("tensor fp64", "mma.sync", "9.0", 4096),
        ("tensor fp64", "mma.sync", "8.0", 512),
        ("tensor int8", "mma.sync", "8.0", 8192),
        ("tensor fp16", "wgmma", "9.0", 524_288),
        ("tensor fp8", "wgmma", "9.0", 1_048_576),
        ("tensor tf32", "wgmma", "9.0", 262_144),
        ("tensor fp16", "tcgen05", "10.0", 1_048_576),
        ("tensor fp4", "tcgen05 mxf4nvf4", "10.0", 4_194_304),
        ("vector fp64", "fma", "9.0", 2),
        ("vector fp16", "fma f16x2", "9.0", 4),
        ("vector fp16", "add", "9.0", 2),
    ],
)
def test_flop_of_an_instruction_are_those_of_the_vendor(path, instruction, capability, flop):
    assert flop_of(one(path, instruction, capability)) == flop


@pytest.mark.parametrize(
    ("path", "instruction", "capability", "expected"),
    [
        ("tensor bf16", "mma.sync", "9.0", (4, 2, 4)),
        ("tensor fp16", "mma.sync fp16-acc", "9.0", (4, 2, 2)),
        ("tensor fp16", "mma.sync", "7.5", (2, 1, 4)),
        ("tensor fp64", "mma.sync", "9.0", (8, 4, 4)),
        ("tensor fp64", "mma.sync", "8.0", (1, 1, 2)),
        ("tensor int8", "mma.sync", "7.5", (1, 1, 2)),
        ("tensor fp4", "mma.sync mxf4nvf4", "12.0", (4, 2, 4)),
    ],
)
def test_registers_of_a_fragment_are_those_of_the_ptx_isa(path, instruction, capability, expected):
    assert registers(one(path, instruction, capability)) == expected


def test_mma_instructions_are_spelled_as_ptx_wants_them():
    assert mma_ptx(one("tensor bf16", "mma.sync")) == (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    )
    assert mma_ptx(one("tensor fp4", "mma.sync mxf4nvf4", "12.0")) == (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".f32.e2m1.e2m1.f32.ue4m3"
    )


def test_a_vector_variant_counts_its_unrolled_loop():
    variant = variants(one("vector fp64", "fma"))[0]
    assert variant.count == 8 * 128
    assert variant.work == 2.0 * 8 * 128 * variant.threads


def test_a_wgmma_variant_fits_the_shared_memory_of_an_sm():
    for variant in variants(one("tensor bf16", "wgmma")):
        assert variant.count == 16
        assert variant.shared_bytes <= 227 * 1024
        assert variant.work == 16 * 524_288 * variant.number("GROUPS")


def test_wgmma_exists_on_hopper_and_tcgen05_on_data_centre_blackwell_only():
    for kernel in kernels():
        if kernel.form == "wgmma":
            assert [kernel.runs_on(c) for c in ((8, 0), (9, 0), (10, 0))] == [False, True, False]
        if kernel.form == "tcgen05":
            assert [kernel.runs_on(c) for c in ((9, 0), (10, 0), (12, 0))] == [False, True, False]


def test_every_kernel_has_a_variant_and_no_two_kernels_one_name_on_a_chip():
    for capability in ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)):
        names = [(k.path, k.instruction) for k in kernels() if k.runs_on(capability)]
        assert len(names) == len(set(names))
    assert all(variants(kernel) for kernel in kernels())


def test_every_extra_a_kernel_needs_is_its_own_architecture():
    for kernel in kernels():
        needs = kernel.form in ("wgmma", "tcgen05") or kernel.kind is not None
        assert kernel.feature is needs, kernel
