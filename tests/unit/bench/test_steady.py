"""The measuring loop, driven by a scripted device."""

import pytest

from mansard.bench.messages import Settings
from mansard.bench.steady import POWER_HELD, Steady, Timing, calibrate, fastest, measure


class Device:
    """Takes `cost(n)` seconds for launch number n per iteration, at the clock `clock(n)`."""

    def __init__(self, cost=lambda _: 1e-6, clock=lambda _: 1.98e9, spread=lambda _: 0.0):
        self.cost, self.clock, self.spread = cost, clock, spread
        self.launches = 0
        self.asked = []

    def __call__(self, iterations, repeats):
        self.asked.append((iterations, repeats))
        found = []
        for _ in range(repeats):
            n = self.launches
            found.append(Timing(iterations * self.cost(n), self.clock(n), self.spread(n)))
            self.launches += 1
        return found


ONE_CLOCK = Steady(most_spread=0.001)
SETTINGS = Settings(repeats=20, sample_s=0.004, patience_s=0.5)


@pytest.mark.parametrize("cost", [1e-9, 1e-7, 3e-6, 1e-4])
def test_a_launch_is_made_as_long_as_a_sample_should_be(cost):
    iterations = calibrate(Device(lambda _: cost), 0.004)
    assert iterations * cost == pytest.approx(0.004, rel=0.02)


def test_a_kernel_longer_than_a_sample_runs_once():
    assert calibrate(Device(lambda _: 1.0), 0.004) == 1


def test_a_device_that_takes_no_time_does_not_loop_for_ever():
    assert calibrate(Device(lambda _: 0.0), 0.004) <= 1 << 30


def test_there_are_as_many_samples_as_asked_and_all_are_kept():
    found = measure(Device(), SETTINGS, warm_s=0.0)
    assert len(found.timings) == 20


def test_warm_up_lasts_until_launches_agree():
    # Launch n is slower by 2^-n: five neighbours agree within 1 % from n = 7 on.
    device = Device(lambda n: 1e-6 * (1 + 2.0 ** -(n / 2)))
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000)
    assert found.settled
    assert found.timings[0].seconds == pytest.approx(0.004, rel=0.01)


def test_warm_up_lasts_at_least_as_long_as_asked():
    found = measure(Device(), SETTINGS, warm_s=0.2, iterations=4000)
    assert found.warm_s == pytest.approx(0.2, abs=0.021)


def test_a_clock_that_never_settles_ends_the_patience_and_is_said():
    device = Device(lambda n: 1e-6 * (1 + 0.05 * (n % 2)))
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000)
    assert not found.settled
    assert found.warm_s >= 0.5
    assert len(found.timings) == 20


def test_sms_must_share_a_clock_where_it_matters():
    device = Device(spread=lambda n: 0.01 if n < 12 else 0.0)
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000, until=ONE_CLOCK)
    assert found.settled
    assert {timing.clock_spread for timing in found.timings} == {0.0}
    assert device.launches == 4 * 5 + 20  # the fourth round of five is the first on one clock


def test_a_part_of_the_chip_that_stays_slower_is_not_waited_for():
    device = Device(spread=lambda _: 0.003)
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000, until=ONE_CLOCK)
    assert found.settled
    assert device.launches == 6 * 5 + 20  # five rounds after the first brought it no nearer


def test_a_part_of_the_chip_that_comes_nearer_is_waited_for():
    device = Device(spread=lambda n: 0.02 * 0.96**n)
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000, until=ONE_CLOCK)
    assert found.settled
    assert max(timing.clock_spread for timing in found.timings) <= 0.001


def test_the_dip_after_a_start_beyond_the_power_limit_is_waited_for():
    # As seen on an H200: too fast for 15 launches, too slow for 20, then what lasts.
    def cost(n):
        return 1e-6 * (1.0 if n < 15 else 1.25 if n < 35 else 1.1)

    short = measure(Device(cost), SETTINGS, warm_s=0.0, iterations=4000)
    long = measure(Device(cost), SETTINGS, warm_s=0.0, iterations=4000, until=POWER_HELD)
    assert [t.seconds for t in short.timings] == pytest.approx([0.004] * 10 + [0.005] * 10)
    assert [t.seconds for t in long.timings] == pytest.approx([0.0044] * 20)
    assert long.settled


def test_a_throttled_run_keeps_the_clock_of_each_sample():
    device = Device(
        cost=lambda n: 1e-6 * (1.98 / 1.4 if n >= 15 else 1.0),
        clock=lambda n: 1.4e9 if n >= 15 else 1.98e9,
    )
    found = measure(device, SETTINGS, warm_s=0.0, iterations=4000)
    assert found.timings[0].clock_hz == 1.98e9
    assert found.timings[-1].clock_hz == 1.4e9
    # At equal clock, every sample did the same.
    rates = {round(1 / t.seconds / t.clock_hz, 12) for t in found.timings}
    assert len(rates) == 1


def test_candidates_are_compared_at_equal_clock():
    # The second does more a cycle, but ran when the power limit had lowered the clock.
    first = [Timing(1.0, 1.98e9)]
    second = [Timing(1.2, 1.50e9)]
    assert fastest([first, second], [100.0, 100.0]) == 1


def test_without_clocks_candidates_are_compared_by_time():
    assert fastest([[Timing(1.0)], [Timing(1.2)]], [100.0, 100.0]) == 0


def test_a_candidate_without_timings_cannot_win():
    assert fastest([[], [Timing(1.0, 1e9)]], [1e9, 1.0]) == 1
