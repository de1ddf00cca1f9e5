import itertools

import pytest

from mansard.bench.cpu.levels import contradictions, plan_levels, sweep_sizes
from mansard.bench.cpu.processor import Cache

KIB, MIB, GIB = 1024, 1024**2, 1024**3


def cache(level, size, *cpus):
    return Cache(level, size, frozenset(cpus))


def by_name(caches, cpus, memory=64 * GIB):
    return {level.name: level for level in plan_levels(caches, cpus, memory)}


def test_the_first_cache_is_measured_at_half_its_size(caches):
    assert by_name(caches(1), [0])["l1"].footprint_bytes == 24 * KIB


def test_a_cache_is_measured_in_the_geometric_middle_of_itself_and_the_one_below(caches):
    # sqrt(48 KiB x 2 MiB) = 313 KiB, more than 4 x 48 KiB and less than 1 MiB.
    footprint = by_name(caches(1), [0])["l2"].footprint_bytes
    assert footprint == pytest.approx(313.5 * KIB, rel=0.001)


def test_threads_share_a_common_cache(caches):
    levels = by_name(caches(4), [0, 1, 2, 3])
    assert levels["l3"].capacity_bytes == 16 * MIB
    assert levels["l3"].footprint_bytes == 8 * MIB
    assert by_name(caches(4), [0])["l3"].capacity_bytes == 64 * MIB


def test_main_memory_takes_four_times_all_last_level_caches(caches):
    levels = by_name(caches(4), [0, 1, 2, 3])
    assert levels["dram"].capacity_bytes is None
    assert levels["dram"].footprint_bytes * 4 == 4 * 64 * MIB


def test_two_sockets_count_both_last_level_caches():
    caches = [cache(3, 32 * MIB, 0, 1), cache(3, 32 * MIB, 2, 3)]
    assert by_name(caches, [0, 2])["dram"].footprint_bytes == 4 * 64 * MIB // 2


def test_a_small_share_of_a_victim_cache_is_measured_with_a_remark():
    # 2 MiB below and a share of 1.875 MiB: together they hold 3 MiB.
    caches = [
        *[cache(2, 2 * MIB, cpu) for cpu in range(4)],
        cache(3, 15 * MIB // 2, 0, 1, 2, 3),
    ]
    level = by_name(caches, [0, 1, 2, 3])["l3"]
    assert level.footprint_bytes == 3 * MIB
    assert not level.reason
    assert "less than four times the cache below" in level.remark


def test_a_share_that_is_far_smaller_than_the_cache_below_is_refused():
    caches = [*[cache(2, 2 * MIB, cpu) for cpu in range(4)], cache(3, 2 * MIB, 0, 1, 2, 3)]
    assert "too small beside the cache below" in by_name(caches, [0, 1, 2, 3])["l3"].reason


def test_too_little_memory_refuses_main_memory_and_says_what_is_needed(caches):
    level = by_name(caches(4), [0, 1, 2, 3], memory=100 * MIB)["dram"]
    assert "31.5 MB can be taken of 105 MB free memory" in level.reason
    assert "134 MB are needed" in level.reason


def test_some_memory_gives_a_smaller_working_set(caches):
    level = by_name(caches(4), [0, 1, 2, 3], memory=600 * MIB)["dram"]
    assert not level.reason
    assert level.footprint_bytes * 4 == pytest.approx(180 * MIB, rel=0.001)


def test_a_system_without_a_cache_description_has_main_memory_alone():
    (level,) = plan_levels([], [0, 1], None)
    assert level.name == "dram"
    assert level.footprint_bytes == GIB // 2
    assert level.remark == "The system does not describe its caches."


def test_a_sweep_goes_from_a_quarter_of_the_first_cache_to_main_memory(caches):
    sizes = sweep_sizes(plan_levels(caches(1), [0], 64 * GIB), 2.0)
    assert sizes[0] == 12 * KIB
    assert sizes[-1] == 256 * MIB
    assert all(1 < b / a <= 2.0001 for a, b in itertools.pairwise(sizes))


SWEEP = [
    (24 * KIB, 900e9),
    (320 * KIB, 300e9),
    (8 * MIB, 60e9),
    (32 * MIB, 58e9),
    (256 * MIB, 20e9),
]


def test_a_sweep_that_shows_every_level_contradicts_nothing(caches):
    assert contradictions(plan_levels(caches(1), [0], 64 * GIB), SWEEP) == {}


def test_a_fall_inside_a_described_cache_is_said(caches):
    levels = plan_levels(caches(1), [0], 64 * GIB)
    small = [*SWEEP[:2], (11.6 * MIB, 60e9), (24 * MIB, 22e9), (256 * MIB, 20e9)]
    said = contradictions(levels, small)
    assert list(said) == ["l3"]
    assert "falls from 60.0 GB/s" in said["l3"]
    assert "to 22.0 GB/s at 25.2 MB" in said["l3"]


def test_a_level_that_makes_no_difference_is_said(caches):
    levels = plan_levels(caches(1), [0], 64 * GIB)
    flat = [(24 * KIB, 900e9), (320 * KIB, 300e9), (11 * MIB, 60e9), (256 * MIB, 59e9)]
    assert "does not show this level" in contradictions(levels, flat)["l3"]


def test_without_a_sweep_nothing_is_claimed(caches):
    assert contradictions(plan_levels(caches(1), [0], 64 * GIB), []) == {}
