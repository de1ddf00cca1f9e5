"""What is planned for a GPU."""

import msgspec
import pytest

from mansard.bench.messages import Opened
from mansard.bench.plan import Choice, make_plan, matches
from mansard.errors import UsageError
from mansard.model.device import DeviceFacts


def gpu(capability="9.0", **numbers):
    facts = DeviceFacts(
        name="GPU",
        compute_capability=capability,
        sm_count=132,
        sm_clock_max_hz=1.98e9,
        dram_clock_hz=3.201e9,
        dram_bus_bits=6016,
        l2_bytes=60 * 1024**2,
    )
    known = {
        "shared_per_sm_bytes": 228.0 * 1024,
        "threads_per_sm": 2048.0,
        "pcie_generation": 5.0,
        "pcie_width": 16.0,
    }
    return Opened(facts=facts, numbers={**known, **numbers})


def names(opened, **choice):
    return [test.name for test in make_plan(opened, Choice(**choice))]


def test_names_are_unique():
    for capability in ("7.0", "7.5", "8.0", "8.9", "9.0", "10.0", "12.0"):
        planned = names(gpu(capability), everything=True)
        assert len(planned) == len(set(planned))


def test_hopper_gets_wgmma_and_ampere_does_not():
    assert "tensor bf16 wgmma random" in names(gpu("9.0"))
    assert not [name for name in names(gpu("8.0")) if "wgmma" in name]


def test_volta_gets_the_wmma_roof_for_its_tensor_pipe():
    assert "tensor fp16 wmma random" in names(gpu("7.0"))
    assert not [name for name in names(gpu("7.0")) if "bf16" in name]


def test_blackwell_gets_packed_fp32_and_fp4():
    planned = names(gpu("10.0"))
    assert "vector fp32 fma f32x2 random" in planned
    assert "tensor fp4 tcgen05 mxf4nvf4 random" in planned
    assert "tensor fp4 mma.sync mxf4nvf4 random" in names(gpu("12.0"))


def test_memory_is_measured_before_the_compute_kernels_that_its_ridges_judge():
    planned = names(gpu())
    assert planned.index("dram read random") < planned.index("vector fp64 fma low-toggle")


def test_all_of_one_arm_comes_before_the_other_so_that_the_clock_can_recover_once():
    tests = [test for test in make_plan(gpu(), Choice()) if test.recipe == "compute"]
    arms = [test.arm for test in tests]
    assert arms == sorted(arms)  # low-toggle, then random
    assert set(arms) == {"low-toggle", "random"}


def test_add_and_multiply_roofs_come_with_all():
    assert "vector fp32 add random" not in names(gpu())
    assert {"vector fp32 add random", "vector fp32 mul random"} <= set(
        names(gpu(), everything=True)
    )


def test_quick_leaves_out_the_curves():
    assert not [t for t in make_plan(gpu(), Choice(quick=True)) if t.recipe == "intensity"]


def test_intensity_reaches_from_a_sixteenth_to_beyond_the_ridge():
    test = next(t for t in make_plan(gpu(), Choice()) if t.name == "intensity vector fp64 dram")
    intensities = [variant.work / 64 for variant in test.variants]
    assert intensities[0] == 1 / 16
    assert intensities[-1] > 4 * 33.4 / 4.6
    mma = next(t for t in make_plan(gpu(), Choice()) if t.name == "intensity tensor bf16 dram")
    assert [variant.work / 64 for variant in mma.variants][:2] == [2.0, 4.0]
    assert mma.variants[-1].work / 64 > 650 / 4.6


def test_library_sizes_shrink_where_a_product_would_take_too_long():
    test = next(t for t in make_plan(gpu("7.5"), Choice()) if t.name == "vector fp32 library")
    assert max(test.numbers.values()) == 8192
    weak = msgspec.structs.replace(
        gpu("7.5"), facts=msgspec.structs.replace(gpu("7.5").facts, sm_count=1)
    )
    test = next(t for t in make_plan(weak, Choice()) if t.name == "vector fp32 library")
    assert max(test.numbers.values()) == 1024


def test_the_fp16_study_is_the_four_versions_and_the_roofs_beside_them():
    planned = names(gpu(), study="fp16")
    assert planned[:4] == [f"vector fp16 v{version}" for version in (1, 2, 3, 4)]
    assert {"vector fp16 fma f16x2 random", "vector fp16 add random"} <= set(planned)


def test_a_study_that_does_not_exist_is_refused_by_name():
    with pytest.raises(UsageError, match="there is fp16"):
        make_plan(gpu(), Choice(study="fp17"))


def test_memory_that_is_shared_with_the_host_has_no_link():
    assert [name for name in names(gpu()) if name.startswith("link")]
    assert not [name for name in names(gpu(integrated=1.0)) if name.startswith("link")]


def test_a_neighbour_is_measured_over_nvlink():
    planned = names(gpu(peer=1.0, peer_is_nvlink=1.0))
    assert {f"link {access} NVLink" for access in ("read", "write", "copy")} <= set(planned)


def test_a_neighbour_whose_link_is_not_told_is_measured_under_no_name_of_a_bus():
    planned = [name for name in names(gpu(peer=1.0, peer_is_nvlink=0.0)) if "link" in name]
    assert {f"link {access} peer link" for access in ("read", "write", "copy")} <= set(planned)
    assert not [name for name in planned if "peer" in name and "PCIe" in name]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("BF16", True), ("tensor*random", True), ("tensor", True), ("fp8", False), ("*fp8*", False)],
)
def test_only_takes_part_of_a_name_or_a_pattern(pattern, expected):
    assert matches("tensor bf16 wgmma random", pattern) is expected


def test_sets_of_l2_fit_into_it_and_are_larger_than_what_an_l1_holds():
    for test in make_plan(gpu(), Choice(only=("l2 *",))):
        if test.recipe != "l2":
            continue
        sides = 2 if test.access == "copy" else 1
        for variant in test.variants:
            size = sides * variant.rows * variant.threads * 16 * variant.blocks * 132
            assert 0 < size <= 0.85 * 60 * 1024**2


def test_the_l1_set_fits_into_l1_and_not_into_a_quarter_of_it():
    test = next(t for t in make_plan(gpu(), Choice()) if t.name == "l1 read random")
    sizes = [v.rows * v.threads * 16 * v.blocks for v in test.variants]
    assert max(sizes) == 192 * 1024
    assert min(sizes) > 64 * 1024


def test_a_gpu_without_a_known_l2_gets_no_l2_ceiling():
    opened = gpu()
    facts = msgspec.structs.replace(opened.facts, l2_bytes=None)
    planned = names(msgspec.structs.replace(opened, facts=facts))
    assert not [name for name in planned if name.startswith("l2 read")]


def test_small_sms_get_one_block_where_two_do_not_fit():
    test = next(
        t
        for t in make_plan(gpu("8.9", threads_per_sm=1536.0), Choice())
        if t.name == "l2 read random"
    )
    assert {variant.blocks for variant in test.variants} == {1}


def test_bytes_of_every_stream_are_stated():
    streams = {t.access: t.numbers for t in make_plan(gpu(), Choice()) if t.recipe == "stream"}
    assert {access: (n["reads"], n["writes"]) for access, n in streams.items()} == {
        "read": (1, 0),
        "write": (0, 1),
        "copy": (1, 1),
        "triad": (2, 1),
    }
