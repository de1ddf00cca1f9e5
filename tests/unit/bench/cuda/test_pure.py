"""Arithmetic of the measuring child that needs no GPU."""

import numpy as np
import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

from mansard.bench.cuda.device import sm_clock
from mansard.bench.cuda.halves import side_lines
from mansard.bench.cuda.memory import filled, word_sum
from mansard.bench.cuda.sensors import reason_names


def stamps(*sms):
    """Per SM: (cycles, nanoseconds) before and after; None for an SM without stamps."""
    table = np.zeros((2, 8, 2), np.uint64)
    for index, sm in enumerate(sms):
        if sm is not None:
            table[0, index], table[1, index] = sm
    return table


def test_the_clock_is_cycles_over_time_as_a_median_over_sms():
    slow, fast = ((100, 1000), (1_500_100, 1_001_000)), ((7, 1000), (1_980_007, 1_001_000))
    clock, spread, slowest = sm_clock(stamps(fast, fast, slow, None))
    assert clock == pytest.approx(1.98e9)
    assert spread == pytest.approx(0.48 / 1.98)
    assert slowest == pytest.approx(1.5e9)


def test_without_stamps_there_is_no_clock():
    assert sm_clock(stamps(None)) == (None, None, None)


def test_a_counter_that_was_reset_gives_no_clock():
    assert sm_clock(stamps(((5_000_000, 1000), (10, 1_001_000)))) == (None, None, None)


def test_the_fill_can_be_recomputed_anywhere():
    assert (filled(100)[40:50] == filled(10, first=40)).all()
    values = filled(10_000).view(np.float64)
    assert (values >= 1).all()
    assert (values < 2).all()


def test_word_sums_wrap_at_32_bits():
    assert word_sum(np.array([0xFFFFFFFF, 2], np.uint32)) == 1


def test_reasons_of_the_driver_have_names_and_idle_has_none():
    assert reason_names(0x1) == ()
    assert reason_names(0x4 | 0x40) == ("power cap", "thermal slowdown (hardware)")


def test_near_and_far_lines_are_those_that_answer_first_and_last():
    cycles = np.zeros((3, 2048), np.uint32)
    cycles[0] = np.where(np.arange(2048) % 2 == 0, 350, 390)
    cycles[2] = 400 - np.arange(2048) // 64
    every, near, far = side_lines(cycles)
    assert every.shape == (3, 2048)
    assert set(near[0] % 2) == {0}
    assert set(far[0] % 2) == {1}
    assert near[2].min() == 2048 - 768
    assert far[2].max() == 767


def test_lines_that_missed_l2_do_not_count_as_far():
    cycles = np.full((1, 2048), 350, np.uint32)
    cycles[0, :100] = 900
    cycles[0, 1000:2000] = 390
    _, _, far = side_lines(cycles)
    assert far.min() >= 1000
