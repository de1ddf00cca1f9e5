"""Launches without floating-point work, as the paper counts them and with stray instructions."""

from types import SimpleNamespace

import pytest

from mansard.analysis import analyze
from mansard.demo import shipped_run
from mansard.study.sections_census import workless


def kernel(flop, *, dram=1000.0, launches=3, zero=0, complete=True):
    """A kernel that moves a kilobyte in three launches."""
    return SimpleNamespace(
        flop=flop,
        flop_complete=complete,
        bytes_by_level={"dram": dram},
        launches=launches,
        zero_flop_launches=zero,
        duration_s=1.0,
    )


def counted(*kernels):
    totals = SimpleNamespace(launches=sum(each.launches for each in kernels), duration_s=9.0)
    return workless(SimpleNamespace(kernels=kernels, totals=totals))


def test_on_the_papers_own_data_the_count_is_the_papers():
    found = workless(analyze(shipped_run("v100-deepcam-forward")))
    assert (found.launches, found.of_launches) == (437, 797)
    assert found.duration_s / found.of_duration_s == pytest.approx(0.101, abs=0.001)


@pytest.mark.parametrize(
    ("flop", "launches"),
    [
        (9.0, 3),  # below an operation for 100 bytes
        (11.0, 0),
        (None, 0),
    ],
)
def test_less_than_an_operation_for_a_hundred_bytes_is_next_to_none(flop, launches):
    assert counted(kernel(flop)).launches == launches


def test_no_work_at_all_needs_no_bytes():
    assert counted(kernel(0.0, dram=None, zero=3)).launches == 3


@pytest.mark.parametrize("unknown", [{"dram": None}, {"complete": False}])
def test_what_is_not_known_is_not_counted_as_no_work(unknown):
    assert counted(kernel(1.0, **unknown)).launches == 0


def test_times_of_such_launches_are_added():
    found = counted(kernel(1.0), kernel(0.0, zero=3), kernel(5000.0))
    assert (found.duration_s, found.of_duration_s) == (2.0, 9.0)
    assert (found.launches, found.of_launches) == (6, 9)
