"""The paper's results as data agree with its authors' own counters, which come with Mansard."""

import pytest

from mansard.analysis import AnalysisOptions, analyze
from mansard.demo import shipped_run
from mansard.store import load_machine
from mansard.study.paper import paper
from mansard.study.plan import deepcam

CELLS = deepcam("cuda:0")


@pytest.fixture(scope="module")
def forward():
    """PyTorch, apex O1, forward."""
    options = AnalysisOptions(time_rule="paper")
    run = shipped_run("v100-deepcam-forward")
    return analyze(run, load_machine("v100-paper"), options=options).totals


@pytest.fixture(scope="module")
def quoted():
    return next(p for p in paper().phase if p.run == "PyTorch O1" and p.phase == "forward")


def test_the_launches_are_those_of_the_raw_data(forward, quoted):
    assert forward.launches == quoted.launches
    assert forward.zero_flop_launches == quoted.zero_flop_launches


def test_time_and_work_are_those_of_the_raw_data(forward, quoted):
    assert quoted.duration_s == pytest.approx(forward.duration_s, rel=0.003)
    assert quoted.flop == pytest.approx(forward.flop, rel=0.001)
    share = forward.zero_flop_duration_s / forward.duration_s
    assert quoted.zero_flop_time_share == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize("level", ["l1", "l2", "dram"])
def test_intensities_are_those_of_the_raw_data(forward, quoted, level):
    assert quoted.intensity[level] == pytest.approx(forward.intensity[level], rel=0.03)


@pytest.mark.parametrize("phase", paper().phase, ids=lambda phase: f"{phase.run} {phase.phase}")
def test_each_of_its_phases_stands_beside_one_cell(phase):
    assert sum(phase.is_beside(cell.configuration) for cell in CELLS) == 1


def test_the_speed_up_of_mixed_precision_is_the_published_one():
    time = {(p.run, p.phase): p.duration_s for p in paper().phase}
    for phase, ratio in (("forward", 1.64), ("backward", 1.75)):
        found = time["PyTorch O0", phase] / time["PyTorch O1", phase]
        assert found == pytest.approx(ratio, abs=0.005)
