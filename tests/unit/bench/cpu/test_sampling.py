import dataclasses

import pytest

from mansard.bench.cpu.sampling import Effort, measure, warm_up

EFFORT = Effort(
    sample_s=0.01,
    samples=4,
    samples_alone=2,
    samples_sweep=1,
    warm_up_s=0.05,
    rounds=1,
    sweep_factor=2.0,
)
STEADY = (1e9, 1.0)


def runs_of_a_steady_warm_up(scripted):
    workload = scripted([STEADY])
    warm_up(workload, EFFORT)
    return len(workload.amounts)


def test_warm_up_finds_the_amount_that_takes_the_wished_time(scripted):
    # 1000 work a unit at 1e9 a second: a unit takes a microsecond, 10 ms are 10000 units.
    assert warm_up(scripted([STEADY]), EFFORT) == (10_000, True)


def test_one_unit_that_takes_longer_than_a_sample_is_the_amount(scripted):
    amount, _ = warm_up(scripted([(1e3, 1.0)]), EFFORT)
    assert amount == 1


def test_an_interrupted_first_run_does_not_make_every_sample_too_short(scripted):
    # The first run takes 16 ms instead of 16 us, long enough for a sample.
    amount, _ = warm_up(scripted([(1e6, 0.1), STEADY]), EFFORT)
    assert amount == 10_000


def test_every_sample_is_kept_in_order(scripted):
    script = [STEADY] * runs_of_a_steady_warm_up(scripted)
    script += [(1.00e9, 1.0), (1.04e9, 1.0), (0.98e9, 1.0), (1.01e9, 1.0)]
    series = measure(scripted(script), effort=EFFORT, samples=4)
    assert series.rates.samples == pytest.approx((1.00e9, 1.04e9, 0.98e9, 1.01e9))
    assert series.rates.median == pytest.approx(1.005e9)
    assert series.evidence()["best"] == pytest.approx(1.04e9)
    assert series.settled
    assert series.work_per_call == pytest.approx(1e7)


def test_warm_up_goes_on_until_samples_agree(scripted):
    steady = runs_of_a_steady_warm_up(scripted)
    workload = scripted([*[STEADY] * (steady - 2), (2e9, 1.0), (2e9, 1.0), STEADY])
    assert warm_up(workload, EFFORT) == (10_000, True)
    assert len(workload.amounts) > steady


def test_warm_up_that_never_agrees_is_said(scripted):
    unsteady = [(1e9, 1.0), (2e9, 1.0)] * 50
    assert not measure(scripted(unsteady), effort=EFFORT, samples=4).settled


def test_disturbed_samples_are_taken_again_whatever_their_value(scripted):
    warm = runs_of_a_steady_warm_up(scripted)
    script = [STEADY] * warm + [(3e9, 0.5), (1e9, 1.0), (0.2e9, 0.9), *[(1e9, 1.0)] * 3]
    series = measure(scripted(script), effort=EFFORT, samples=4)
    assert series.rates.samples == pytest.approx((1e9,) * 4)
    assert series.disturbed == 2
    assert series.disturbed_kept == 0


def test_a_system_that_is_never_quiet_gives_disturbed_samples_and_says_how_many(scripted):
    workload = scripted([(1e9, 0.5)])
    series = measure(workload, effort=EFFORT, samples=4)
    assert len(series.rates.samples) == 4
    assert series.disturbed_kept == 4
    assert series.disturbed == 12
    assert series.core_share == 0.5


def test_an_unsteady_round_is_repeated_and_the_highest_median_counts(scripted):
    effort = dataclasses.replace(EFFORT, rounds=3)
    warm = runs_of_a_steady_warm_up(scripted)
    wild = [(1e9, 1.0), (0.2e9, 1.0), (0.6e9, 1.0), (0.4e9, 1.0)]
    script = [STEADY] * warm + wild + [STEADY]
    series = measure(scripted(script), effort=effort, samples=4)
    assert series.rounds == 2
    assert series.rates.median == pytest.approx(1e9)


def test_a_steady_round_is_not_repeated(scripted):
    assert measure(scripted([STEADY]), effort=EFFORT, samples=4).rounds == 1
