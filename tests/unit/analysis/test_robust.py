import numpy as np
import pytest

from mansard.analysis import robust


def test_median_and_deviation_ignore_one_wild_value():
    found = robust.spread([1.0, 2.0, 3.0, 4.0, 1000.0])
    # Distances from 3: 2 1 0 1 997, their median is 1.
    assert (found.median, found.deviation, found.least, found.most) == (3.0, 1.4826, 1.0, 1000.0)


def test_with_few_values_nothing_is_judged():
    among = robust.spread([1.0] * 6 + [5.0])
    assert robust.score(5.0, among) is None
    assert not robust.stands_out(5.0, among)


def test_values_that_agree_perfectly_leave_a_resolution_of_half_a_percent():
    among = robust.spread([1.0] * 100)
    assert robust.score(1.05, among) == pytest.approx(10)
    assert robust.stands_out(1.05, among)


def test_a_small_effect_never_stands_out_however_small_the_spread():
    among = robust.spread([1.0] * 5000)
    assert not robust.stands_out(1.029, among)


def test_a_fast_value_does_not_stand_out():
    assert not robust.stands_out(0.5, robust.spread([1.0] * 100))


@pytest.mark.parametrize(("count", "sets"), [(8, 3000), (64, 3000), (1024, 500), (4096, 100)])
def test_normal_values_exceed_the_limit_less_than_once_in_500_sets(count, sets):
    noise = np.random.default_rng(count)
    alarms = 0
    for _ in range(sets):
        values = noise.normal(1.0, 0.05, count)
        median = np.median(values)
        deviation = 1.4826 * np.median(abs(values - median))
        alarms += (values.max() - median) / deviation > robust.limit(count)
    assert alarms <= max(1, sets / 500)
