"""Clocks that no SM can have had become unknown, and that is said."""

import math

import pytest

from mansard.collect.clocks import without_impossible
from mansard.collect.launches import Trace
from mansard.collect.plan import Counted
from mansard.collect.recording import StepRecording
from mansard.counters.table import load_table
from mansard.model.device import DeviceFacts

CLOCK, DRAM = "sm__cycles_elapsed.avg.per_second", "dram__bytes.sum"
H200 = DeviceFacts(sm_clock_max_hz=1.98e9)


@pytest.fixture
def table():
    return load_table("gh100")


def counted(*clocks):
    return Counted((DRAM, CLOCK), tuple((5.0, clock) for clock in clocks))


def clocks(counters):
    return [None if math.isnan(row[1]) else row[1] for row in counters.rows]


def test_a_clock_above_the_highest_is_unknown_and_the_rest_of_the_launch_stays(make_kernels, table):
    step = StepRecording(
        trace=Trace(make_kernels("a", "b", "c"), (), 0, 1), kernels=counted(1.9e9, 63e9, 1.4e9)
    )
    (found,), (notice,) = without_impossible([step], table, {0: H200})
    assert clocks(found.kernels) == [1.9e9, None, 1.4e9]
    assert [row[0] for row in found.kernels.rows] == [5.0, 5.0, 5.0]
    assert notice.code == "clock-above-highest"
    assert "of 1 launch is" in notice.message
    assert "63.0 GHz" in notice.message
    assert "1.98 GHz" in notice.message


def test_ticks_of_the_counters_and_boosts_are_no_impossible_clocks(make_kernels, table):
    step = StepRecording(trace=Trace(make_kernels("a"), (), 0, 1), kernels=counted(2.4e9))
    assert without_impossible([step], table, {0: H200}) == ([step], [])


def test_each_gpu_has_its_own_highest_clock(make_kernel, table):
    launches = (make_kernel("a", device=0), make_kernel("b", number=1, device=1))
    step = StepRecording(trace=Trace(launches, (), 0, 1), kernels=counted(2.6e9, 2.6e9))
    both = {0: H200, 1: DeviceFacts(sm_clock_max_hz=2.6e9)}
    (found,), _ = without_impossible([step], table, both)
    assert clocks(found.kernels) == [None, 2.6e9]


def test_a_gpu_that_does_not_say_its_highest_clock_keeps_all(make_kernels, table):
    step = StepRecording(trace=Trace(make_kernels("a"), (), 0, 1), kernels=counted(9e9))
    assert without_impossible([step], table, {0: DeviceFacts()}) == ([step], [])


def test_phases_are_looked_at_too(make_kernels, table):
    trace = Trace(make_kernels("a"), (), 0, 1)
    step = StepRecording(trace=trace, segments={0: counted(3e9, 1.9e9)})
    (found,), (_,) = without_impossible([step], table, {0: H200})
    assert clocks(found.segments[0]) == [None, 1.9e9]
