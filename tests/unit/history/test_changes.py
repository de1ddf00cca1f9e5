import numpy as np
import pytest

from mansard.history import change_points


def _noise(count, seed, sigma=0.01):
    return list(1 + sigma * np.random.default_rng(seed).normal(size=count))


def test_a_step_is_found_at_its_first_run():
    values = [1.0, 1.001, 0.999, 1.002, 0.998] * 2 + [1.2, 1.201, 1.199, 1.202, 1.198] * 2
    (found,) = change_points(values)
    assert (found.at, found.before, found.after) == (10, 1.0, 1.2)
    assert found.ratio == pytest.approx(1.2)


def test_up_and_down_again_are_two_changes():
    values = _noise(8, 1) + [1.2 * v for v in _noise(14, 2)] + _noise(8, 3)
    assert [change.at for change in change_points(values)] == [8, 22]


def test_one_bad_night_is_no_change():
    values = _noise(30, 4)
    values[13] = 5.0
    assert change_points(values) == ()


def test_the_last_two_runs_are_not_enough_for_a_level_and_three_are():
    values = [1.0, 1.001, 0.999] * 6
    assert change_points([*values, 1.5, 1.5]) == ()
    assert [change.at for change in change_points([*values, 1.5, 1.5, 1.5])] == [18]


def test_nine_runs_are_too_few():
    assert change_points([1.0] * 4 + [2.0] * 5) == ()


def test_what_did_not_run_before_is_new_and_has_no_ratio():
    (found,) = change_points([0.0] * 6 + [2.0] * 6)
    assert (found.at, found.before, found.ratio) == (6, 0.0, None)


def test_a_change_of_two_percent_is_left_alone_however_clear():
    assert change_points([1.0] * 15 + [1.02] * 15) == ()


def test_equal_values_have_no_change():
    assert change_points([3.0] * 20) == ()
    assert change_points([0.0] * 20) == ()


@pytest.mark.parametrize("runs", [10, 30])
def test_no_false_alarm_in_100_clean_histories_of_50_kernels(runs):
    found = [
        seed
        for seed in range(100)
        for kernel in range(50)
        if change_points(_noise(runs, [seed, kernel], 0.05), series=50)
    ]
    assert found == []


def test_a_slowdown_by_a_tenth_is_found_within_one_run_of_where_it_was():
    for seed in range(50):
        place = 5 + seed % 20
        values = [v * (1.1 if n >= place else 1) for n, v in enumerate(_noise(30, seed))]
        (found,) = change_points(values, series=50)
        assert abs(found.at - place) <= 1
