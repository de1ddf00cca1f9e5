"""The paper's comparisons, redone: TensorFlow against PyTorch on DeepCAM's forward pass.

Of the configurations of arXiv 2009.05257 the raw counters of three are in tests/data/paper: the
forward passes of TensorFlow (AMP) and of PyTorch (O1), and the FusedLAMB optimizer. The paper's
other comparisons (O0 against O1, hand-written fp16 against AMP, Adam against FusedLAMB) need raw
data of configurations that are not there; of the last one the totals are at hand below.

The numbers are sums over the authors' own tables, at their rule for the time of a kernel name;
launches and zero-AI launches are printed in their notebooks.
"""

import csv
from pathlib import Path

import pytest

from mansard import readers
from mansard.analysis import AnalysisOptions, analyze
from mansard.analysis.advice import advise
from mansard.analysis.compare import compare
from mansard.store import load_machine

DATA = Path(__file__).parents[1] / "data" / "paper"
PYTORCH, TENSORFLOW = DATA / "pytorch-O1-adam-forward", DATA / "tensorflow-amp-forward"
LAMB = DATA / "pytorch-O1-fusedlamb-optimizer"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the authors' raw data are not in tests/data/paper"
)


@pytest.fixture(scope="module")
def runs():
    return readers.open(PYTORCH), readers.open(TENSORFLOW)


@pytest.fixture(scope="module")
def frameworks(runs):
    pytorch, tensorflow = runs
    return compare(pytorch, tensorflow, by="family", options=AnalysisOptions(time_rule="paper"))


def test_the_totals_are_those_of_the_paper(frameworks):
    """104.2 against 200.0 ms, 1.370 against 9.395 TFLOP, 797 against 556 launches."""
    changes = frameworks.totals.changes
    time = changes["gpu_time"]
    assert (time.a * 1e3, time.b * 1e3) == pytest.approx((104.2, 200.0), abs=0.05)
    assert time.relative == pytest.approx(200.0 / 104.2 - 1, abs=0.002)
    flop = changes["flop"]
    assert (flop.a / 1e12, flop.b / 1e12) == pytest.approx((1.370, 9.395), abs=0.0005)
    assert (changes["launches"].a, changes["launches"].b) == (797, 556)
    zero = changes["zero_flop_launches"]
    assert (zero.a, zero.b) == (437, 304)
    # 210 against 270 GB/s of HBM
    moved = changes["bytes_dram"]
    assert moved.a / time.a / 1e9 == pytest.approx(210, abs=0.5)
    assert moved.b / time.b / 1e9 == pytest.approx(270, abs=0.5)


def test_one_step_of_each_proves_no_difference_in_time(frameworks):
    assert frameworks.totals.changes["gpu_time"].verdict == "noise unknown"
    assert "no-repeats" in {notice.code for notice in frameworks.notices}
    assert frameworks.totals.changes["flop"].verdict == "changed"


def test_families_add_up_to_the_difference(frameworks):
    """TensorFlow's network does 6.9 times the FLOP in 1.9 times the time: convolutions carry it."""
    assert sum(row.moved_s for row in frameworks.rows) * 1e3 == pytest.approx(95.8, abs=0.3)
    conv = frameworks.rows[0]
    assert conv.key == "conv"
    assert conv.changes["flop"].b / frameworks.totals.changes["flop"].b > 0.85


def test_the_kernel_that_both_frameworks_share_is_found_by_its_name(runs):
    """cuDNN's implicit product: 33.1 % of TensorFlow's time in 8 launches at 83.9 TFLOP/s."""
    pytorch, tensorflow = runs
    options = AnalysisOptions(time_rule="paper")
    rows = compare(pytorch, tensorflow, options=options).rows
    name = "Volta_hmma_implicit_gemm_fprop_fp32_nhwc_128x128x64x1_1x3x3x0x1"
    row = next(row for row in rows if row.key == name)
    assert row.matched_by == "name"
    time, flop = row.changes["gpu_time"], row.changes["flop"]
    assert time.b * 1e3 == pytest.approx(0.331 * 200.0, abs=0.1)
    assert flop.b / time.b / 1e12 == pytest.approx(83.9, abs=0.05)
    assert row.changes["launches"].b == 8


def test_layout_changes_of_tensorflow_are_what_to_do_first(runs):
    """The paper's largest zero-AI kernels there: padding, transposes, space-to-batch and back.

    Their own table gives 36.9 ms, 18.5 % of the time.
    """
    _, tensorflow = runs
    first = advise(analyze(tensorflow, load_machine("v100-paper")))[0]
    assert first.rule == "layout-changes"
    assert first.recoverable_s == pytest.approx(_tabled(TENSORFLOW, first.kernels), rel=0.003)
    assert first.recoverable_s * 1e3 == pytest.approx(36.9, abs=0.05)


def test_the_longest_kernel_of_pytorch_should_run_on_tensor_cores(runs):
    """The paper's finding: the most expensive kernel does no tensor work (8.2 TFLOP/s)."""
    pytorch, _ = runs
    found = {advice.rule: advice for advice in advise(analyze(pytorch, load_machine("v100-paper")))}
    assert "implicit_convolve_sgemm" in found["off-tensor"].sentence
    assert found["off-tensor"].recoverable_s / 0.1042 > 0.2
    assert found["latency-bound"].kernels[0].startswith("void at::native::col2im_kernel")


def test_the_fused_optimizer_needs_no_advice():
    """35 launches at 762 of 828.8 GB/s, against 2709 launches and 17.0 ms of Adam."""
    assert advise(analyze(readers.open(LAMB), load_machine("v100-paper"))) == ()


def _tabled(folder, names):
    """Time of kernels in the authors' own table."""
    with (folder / "authors-table.csv").open(encoding="utf-8") as file:
        return sum(float(r["Time"]) for r in csv.DictReader(file) if r["Kernel Name"] in names)
