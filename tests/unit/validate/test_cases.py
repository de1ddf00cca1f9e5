"""The cases: their expectations worked out by hand, and which chip has which."""

import pytest

from mansard.bench.messages import Opened
from mansard.counters.table import table_for
from mansard.errors import UsageError
from mansard.model.device import DeviceFacts
from mansard.validate.cases import OTHER_WORK, Case, KernelLaunch, Lacking
from mansard.validate.catalogue import all_cases, batches, chosen
from mansard.validate.memory_cases import stream_bytes

GIB = 1 << 30


def expected(case, quantity):
    (found,) = (each for each in case.expected if each.quantity == quantity)
    return found


def cases_of(capability, chip, sms=100, l2_bytes=4 << 20, free_bytes=40e9):
    opened = Opened(
        facts=DeviceFacts(compute_capability=capability, sm_count=sms, l2_bytes=l2_bytes),
        numbers={"free_bytes": free_bytes},
    )
    found = all_cases(opened, table_for(chip=chip, compute_capability=capability))
    return (
        {c.name: c for c in found if isinstance(c, Case)},
        {c.name: c.reason for c in found if isinstance(c, Lacking)},
    )


@pytest.mark.parametrize(
    ("name", "quantity", "flop"),
    [
        # 132 SMs x 4 blocks x 256 threads, 8 chains x 64 steps, 64 iterations.
        ("fp64 fma", "flop_vector_fp64", 135168 * 512 * 64 * 2),
        ("fp32 fma", "flop_vector_fp32", 135168 * 512 * 64 * 2),
        ("fp32 add", "flop_vector_fp32", 135168 * 512 * 64),
        ("fp16 fma f16x2", "flop_vector_fp16", 135168 * 512 * 64 * 4),
        ("bf16 fma bf16x2", "flop_vector_fp16", 135168 * 512 * 64 * 4),
        ("fp32 fma, half predicated off", "flop_vector_fp32", 135168 * 512 * 64),
        ("fp64 mul, half branched off", "flop_vector_fp64", 135168 * 512 * 64 // 2),
        # 132 blocks of 8 warps, 4 x 16 instructions, 64 iterations, 2 x 16 x 8 x 16 each.
        ("bf16 mma.sync", "flop_tensor_bf16", 132 * 8 * 64 * 64 * 4096),
        # 132 blocks of 2 warp groups, 4 stages x 4 instructions, 64 iterations, 2 x 64 x 256 x 16.
        ("bf16 wgmma", "flop_tensor_bf16", 132 * 2 * 16 * 64 * 524288),
        ("GEMM bf16 3072", "flop_tensor_bf16", 2 * 3072**3),
        ("add", "flop_vector_fp64", 2 * (1 << 26)),
    ],
)
def test_the_work_of_a_case_is_what_arithmetic_gives(cases, name, quantity, flop):
    found = expected(cases[name], quantity)
    assert found.low == flop
    assert found.tolerance == 0


@pytest.mark.parametrize(
    ("name", "quantity", "low", "high"),
    [
        ("copy", "bytes_l2", GIB, GIB),
        ("copy", "bytes_dram_write", GIB / 2, GIB / 2),
        ("add", "bytes_dram", 1.5 * GIB, 1.5 * GIB),
        ("fill", "bytes_dram_read", 0, 0.015 * GIB),
        ("read", "bytes_l1", GIB / 2, GIB / 2),
        # 132 blocks x 512 threads x 4 words of 16 bytes, 512 times.
        ("L2-resident read", "bytes_l2", 132 * 32768 * 512, 132 * 32768 * 512),
        ("L2-resident read", "bytes_dram", 0, 0.03 * 132 * 32768 * 512),
        # 2 words of 16 bytes; 16 warps may be answered with one line.
        ("L2-resident read, lines shared", "bytes_l1", 132 * 16384 * 512, 132 * 16384 * 512),
        ("L2-resident read, lines shared", "bytes_l2", 132 * 1024 * 512, 132 * 16384 * 512),
        ("L1-resident read", "bytes_l1", 132 * 16384 * 2048, 132 * 16384 * 2048),
        ("shared read", "bytes_shared", 132 * 32768 * 4 * 256, 132 * 32768 * 4 * 256),
        ("bulk copy", "bytes_l1", GIB / 2, GIB / 2),
        ("bulk multicast", "bytes_l1", GIB, GIB),
        ("bulk multicast", "bytes_l2", GIB / 2, GIB / 2),
    ],
)
def test_the_bytes_of_a_case_are_those_that_it_moves(cases, name, quantity, low, high):
    found = expected(cases[name], quantity)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_what_happens_once_is_far_below_the_tolerance(cases):
    # The tile of a shared-memory case is filled once; a resident set comes from memory once.
    assert 1 / (4 * 256) < 0.03 / 10
    assert expected(cases["L2-resident read"], "bytes_dram").high > 10 * 132 * 16384


def test_a_ragged_product_may_count_what_hangs_over_and_says_so(cases):
    found = expected(cases["GEMM fp16 1000"], "flop_tensor_fp16")
    assert found.low == 2e9
    assert found.high == 2.0 * 1256 * 1256 * 1128
    assert "hangs over" in found.why


def test_fp32_products_may_scale_what_they_store(cases):
    found = expected(cases["GEMM fp32 3072"], "flop_vector_fp32")
    assert (found.low, found.high) == (2.0 * 3072**3, 2.0 * 3072**3 + 4 * 3072**2)


def test_a_product_in_parts_may_scale_and_add_each_part(cases):
    case = cases["GEMM fp32 3072"]
    assert expected(case, "flop_vector_fp32").per_part == 5 * 3072**2


def test_every_case_expects_no_other_work_and_says_why_of_all(cases):
    for case in cases.values():
        assert any(each.quantity == OTHER_WORK for each in case.expected), case.name
        assert all(each.why and each.low <= each.high for each in case.expected), case.name


def test_work_of_the_case_itself_is_not_other_work(cases):
    for case in cases.values():
        own = {c for e in case.expected if e.quantity != OTHER_WORK for c in e.summed}
        assert own.isdisjoint(expected(case, OTHER_WORK).columns), case.name


def test_an_h200_has_every_precision_of_both_ways_to_the_tensor_cores(cases):
    for precision in ("tf32", "fp16", "bf16", "fp8", "int8"):
        assert f"{precision} wgmma" in cases
        assert f"{precision} mma.sync" in cases
    assert "fp64 mma.sync" in cases


def test_what_some_chips_emulate_is_inspected(cases):
    inspected = {name for name, case in cases.items() if case.inspect}
    assert {"fp8 mma.sync", "int4 mma.sync", "fp32 fma, half predicated off"} <= inspected
    assert {"bf16 mma.sync", "bf16 wgmma", "fp32 fma", "copy"}.isdisjoint(inspected)


def test_a_turing_says_what_it_lacks():
    cases, lacking = cases_of("7.5", "TU102")
    assert {"tensor fp64", "tensor bf16", "tensor fp8", "bulk copy", "bulk multicast"} <= {*lacking}
    assert "7.5" in lacking["bulk copy"]
    assert "fp16 mma.sync" in cases
    assert not any("bf16 fma" in name for name in cases)


def test_a_geforce_blackwell_has_bulk_copies_but_no_clusters():
    cases, lacking = cases_of("12.0", "GB202")
    assert "bulk copy" in cases
    assert lacking["bulk multicast"]


def test_a_chip_that_cannot_tell_narrow_formats_apart_counts_their_sum():
    cases, _ = cases_of("10.0", "GB100")
    assert expected(cases["GEMM fp8 3072"], "flop_tensor_fp4_fp6_fp8").low == 2.0 * 3072**3


def test_streams_are_skipped_where_they_do_not_fit():
    cases, lacking = cases_of("8.6", "GA102", free_bytes=1e9)
    assert {"copy", "add", "fill", "read", "bulk copy", "bulk multicast"} <= {*lacking}
    assert "1000000000 bytes of free memory" in lacking["copy"]
    assert "shared read" in cases


def test_streams_grow_with_the_l2():
    assert stream_bytes(4 << 20) == 512 << 20
    assert stream_bytes(60 << 20) == 512 << 20
    assert stream_bytes(126 << 20) == 1 << 30


def test_the_counted_stream_reads_nothing_that_the_one_before_read_last(cases):
    for name in ("copy", "read", "bulk copy"):
        case = cases[name]
        assert case.before
        assert case.before[-1].arguments[0] != case.launch.arguments[0]


def test_two_blocks_of_a_cluster_cannot_be_on_one_sm(cases):
    # Of the 228 KiB of a Hopper SM; each block also takes 1 KiB for the system.
    launch = cases["bulk multicast"].launch
    assert 2 * (launch.variant.shared_bytes + 1024) > 228 * 1024
    assert launch.variant.shared_bytes <= 227 * 1024
    assert launch.blocks == 132


def test_every_buffer_holds_what_its_kernel_touches(cases):
    for case in cases.values():
        if isinstance(case.launch, KernelLaunch) and case.group == "wgmma":
            operands, out = case.launch.arguments[:2]
            assert operands.size >= case.launch.variant.shared_bytes
            assert out.size >= 4 * case.launch.blocks * case.launch.variant.threads


def test_names_are_unique_and_groups_become_batches(cases, table, opening):
    found = all_cases(opening.opened, table)
    assert len({each.name for each in found}) == len(found)
    groups = [batch[0].group for batch in batches(found)]
    assert groups == [
        "vector",
        "vector, half off",
        "mma",
        "wgmma",
        "library",
        "memory",
        "bulk",
    ]
    assert sum(len(batch) for batch in batches(found)) == len(cases)


def test_cases_are_chosen_by_part_of_name_or_group_or_by_pattern(cases):
    assert {c.name for c in chosen(cases.values(), ("bulk",))} == {"bulk copy", "bulk multicast"}
    assert {c.group for c in chosen(cases.values(), ("LIBRARY",))} == {"library"}
    assert {c.name for c in chosen(cases.values(), ("fp8 w*",))} == {"fp8 wgmma", "fp8 wgmma e5m2"}


def test_a_choice_of_nothing_names_what_there_is(cases):
    with pytest.raises(UsageError, match=r"no case matches fp5; there are: .*bulk copy"):
        chosen(cases.values(), ("fp5",))
