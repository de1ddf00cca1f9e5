"""Statistics of repeated measurements."""

import pytest

from mansard.bench.samples import Summary, settled


def test_the_median_is_the_value_and_the_highest_is_the_best():
    summary = Summary((1.0, 5.0, 2.0, 4.0, 3.0))
    assert (summary.median, summary.best) == (3.0, 5.0)


def test_spread_is_the_scaled_median_deviation_over_the_median():
    # Deviations from 10 are 1, 0, 1, 2, 3; their median is 1.
    assert Summary((9.0, 10.0, 11.0, 8.0, 13.0)).spread == pytest.approx(0.14826)


def test_one_wild_sample_does_not_move_the_spread():
    assert Summary((10.0,) * 9 + (1000.0,)).spread == 0.0


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([1.0] * 4, False),  # fewer than the window
        ([9.0, 1.0, 1.0, 1.0, 1.0, 1.0], True),
        ([1.0, 1.0, 1.0, 1.0, 1.031], False),
        ([0.0] * 5, False),
    ],
)
def test_warm_up_is_over_when_the_last_five_agree_within_3_percent(samples, expected):
    assert settled(samples) is expected
