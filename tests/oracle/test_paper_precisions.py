"""The paper's comparisons of precisions and optimizers, from its published totals.

These are not raw data: of O0, O2, TensorFlow's backward pass, TensorFlow without AMP and Adam no
counters of single launches are at hand, only the totals of each phase that the authors of arXiv
2009.05257 published with their notebooks and tables (DeepCAM on a V100 at 1.30 GHz). So each
phase is made of as many launches as it had, all alike: one kernel that does the FLOP, and one
that does none, in the share of the time that such launches had. What is on trial is the
comparison. Speed-ups and changes of FLOP are the ones stated beside those tables.
"""

import io
import re

import pytest
from rich.console import Console

from mansard import engine
from mansard.analysis.compare import compare
from mansard.analysis.parts import Part
from mansard.charts.compare_view import comparison_view
from mansard.model.provenance import Provenance
from mansard.store import open_run, write_run

#: By configuration and phase: launches, zero-AI launches, their share of the time, ms, TFLOP,
#: GB/s of HBM.
PUBLISHED = {
    "pytorch-O0": {
        "forward": (633, 363, 0.113, 170.5, 1.185, 313),
        "backward": (1424, 689, 0.061, 400.6, 2.321, 210),
        "optimizer": (2709, 0, 0.0, 17.0, 0.002, 311),
    },
    "pytorch-O1": {
        "forward": (797, 437, 0.101, 104.2, 1.370, 210),
        "backward": (1575, 609, 0.052, 228.3, 3.047, 190),
        "optimizer": (2709, 0, 0.0, 17.0, 0.002, 311),
    },
    "pytorch-O1-lamb": {
        "backward": (1273, 308, 0.047, 227.9, 3.047, 189),
        "optimizer": (35, 5, 0.004, 3.9, 0.001, 762),
    },
    "pytorch-O2": {
        "forward": (644, 290, 0.091, 103.0, 1.370, 207),
        "backward": (1426, 605, 0.050, 229.6, 3.047, 183),
        "optimizer": (2709, 0, 0.0, 17.0, 0.002, 311),
    },
    "tensorflow-fp32": {
        "forward": (465, 278, 0.031, 763.6, 4.393, 97),
        "backward": (4718, 1571, 0.035, 999.8, 9.189, 128),
    },
    "tensorflow-amp": {
        "forward": (558, 306, 0.202, 104.5, 4.698, 267),
        "backward": (4563, 1829, 0.161, 214.0, 9.856, 268),
    },
    "tensorflow-amp-batch-2": {
        "forward": (556, 304, 0.204, 200.0, 9.395, 270),
        "backward": (4573, 1833, 0.149, 402.2, 19.677, 291),
    },
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Give a configuration as a run."""
    folder = tmp_path_factory.mktemp("published")
    origin = Provenance(counter_table="paper-volta", sources=("published totals of phases",))

    def run(name):
        path = folder / f"{name}.parquet"
        if not path.exists():
            with engine.connect(threads=1) as connection:
                parts = " UNION ALL ".join(
                    _launches(phase, *totals) for phase, totals in PUBLISHED[name].items()
                )
                write_run(connection, parts, origin, path)
        return open_run(path)

    return run


def _launches(phase, count, zero, zero_share, ms, tflop, gbytes):
    """As many launches as the phase had; together they have its totals."""
    seconds, groups = ms / 1e3, []
    for name, number, share, flop in (
        ("work", count - zero, 1 - zero_share, tflop * 1e12),
        ("no work", zero, zero_share, 0.0),
    ):
        if number:
            groups.append(
                f"SELECT '{name}' AS name, 'kernel' AS kind, '{phase}' AS phase, 0 AS step, "
                f"{seconds * share / number!r}::DOUBLE AS duration_s, "
                f"{flop / number!r}::DOUBLE AS flop_vector_fp32, "
                f"{gbytes * 1e9 * seconds * share / number!r}::DOUBLE AS bytes_dram "
                f"FROM range({number})"
            )
    return " UNION ALL ".join(groups)


def printed(found):
    stream = io.StringIO()
    Console(file=stream, width=100, highlight=False).print(comparison_view(found))
    return stream.getvalue()


def of_phase(published, one, other, phase):
    return compare(Part(published(one), phase=phase), Part(published(other), phase=phase))


@pytest.mark.parametrize(
    ("one", "other", "phase", "speed", "flop"),
    [
        ("pytorch-O0", "pytorch-O1", "forward", "1.64x as fast", 0.16),
        ("pytorch-O0", "pytorch-O1", "backward", "1.75x as fast", 0.31),
        ("tensorflow-fp32", "tensorflow-amp", "forward", "7.31x as fast", 4.698 / 4.393 - 1),
        ("tensorflow-fp32", "tensorflow-amp", "backward", "4.67x as fast", 9.856 / 9.189 - 1),
    ],
)
def test_what_half_precision_gives(published, one, other, phase, speed, flop):
    """1.64x forward and 1.75x backward from O0 to O1, with 16 and 31 % more FLOP; TF 7.3x, 4.7x."""
    found = of_phase(published, one, other, phase)
    assert speed in printed(found).splitlines()[1]
    assert found.totals.changes["flop"].relative == pytest.approx(flop, abs=0.005)
    assert found.totals.changes["flop"].verdict == "changed"


def test_the_terminal_prints_the_papers_forward_pass(published):
    text = printed(of_phase(published, "pytorch-O0", "pytorch-O1", "forward"))
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    # 170.5 ms, of which the sum of so many launches is a little more or less
    headline = (
        r"GPU time 17[01] ms -> 104 ms, -38\.9 %, 1\.64x as fast \(no repeats: noise unknown\)"
    )
    assert re.search(headline, text)
    assert lines["FLOP"][1:] == ["1.19", "TFLOP", "1.37", "TFLOP", "+15.6", "%", "-"]
    assert lines["launches"][1:] == ["633", "797", "+25.9", "%", "-"]
    assert lines["no-FLOP launches"][2:] == ["363", "437", "+20.4", "%", "-"]


def test_rates_alone_overstate_the_gain(published):
    """FLOP/s rises 1.9 times where the time falls 1.64 times: the work has grown."""
    changes = of_phase(published, "pytorch-O0", "pytorch-O1", "forward").totals.changes
    time, flop = changes["gpu_time"], changes["flop"]
    # 6.95 and 13.2 TFLOP/s in the paper's table
    rates = (flop.a / time.a / 1e12, flop.b / time.b / 1e12)
    assert rates == pytest.approx((6.95, 13.2), abs=0.06)
    assert rates[1] / rates[0] > 1.15 * time.a / time.b


def test_whole_steps_take_588_and_350_ms(published):
    found = compare(published("pytorch-O0"), published("pytorch-O1"), by="phase")
    time = found.totals.changes["gpu_time"]
    assert (time.a * 1e3, time.b * 1e3) == pytest.approx((588, 350), abs=0.6)
    rows = {row.key: row for row in found.rows}
    assert list(rows) == ["backward", "forward", "optimizer"]
    assert rows["optimizer"].changes["gpu_time"].verdict == "same"
    assert sum(row.moved_s for row in found.rows) == pytest.approx(time.b - time.a)


def test_o2_moves_less_than_one_run_can_tell(published):
    """1.01x and 0.99x; without repeats nobody knows whether that is a change."""
    for phase, factor in (("forward", 1.01), ("backward", 0.99)):
        time = of_phase(published, "pytorch-O1", "pytorch-O2", phase).totals.changes["gpu_time"]
        assert time.a / time.b == pytest.approx(factor, abs=0.005)
        assert time.verdict == "noise unknown"


def test_o2_drops_about_150_casts_of_the_forward_pass(published):
    found = of_phase(published, "pytorch-O1", "pytorch-O2", "forward").totals.changes
    zero = found["zero_flop_launches"]
    assert (zero.a, zero.b, zero.verdict) == (437, 290, "changed")
    assert found["flop"].verdict == "same"


def test_a_fused_optimizer_takes_35_launches_for_2709(published):
    found = of_phase(published, "pytorch-O1", "pytorch-O1-lamb", "optimizer")
    launches = found.totals.changes["launches"]
    assert (launches.a, launches.b) == (2709, 35)
    assert "4.36x as fast" in printed(found)


def test_the_frameworks_differ_in_work_more_than_in_time(published):
    """TensorFlow's network does 6.5 times the FLOP of PyTorch's backward pass in 1.8 times the time."""
    found = of_phase(published, "pytorch-O1", "tensorflow-amp-batch-2", "backward").totals.changes
    assert found["flop"].b / found["flop"].a == pytest.approx(19.677 / 3.047)
    assert found["gpu_time"].b / found["gpu_time"].a == pytest.approx(402.2 / 228.3)
