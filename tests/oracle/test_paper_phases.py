"""The paper's own data, analysed again: do its tables come out?

The authors of arXiv 2009.05257 published the raw counters of their DeepCAM runs on a V100 (one
program run per counter) and their own table per kernel. The launches are put together here with
a few lines of their own, not with Mansard's readers, so that only the analysis is on trial.
"""

import collections
import csv
import functools
import gzip
from pathlib import Path

import pytest

from mansard import engine
from mansard.analysis import AnalysisOptions, analyze
from mansard.analysis.census import census
from mansard.model.provenance import Definition, Provenance
from mansard.store import load_machine, open_run, write_run
from mansard.units import BINARY_GIGA

DATA = Path(__file__).parents[1] / "data" / "paper"
PYTORCH = "pytorch-O1-adam-forward"
LAMB = "pytorch-O1-fusedlamb-optimizer"
TENSORFLOW = "tensorflow-amp-forward"
PHASES = (PYTORCH, LAMB, TENSORFLOW)

SASS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
OPERATIONS = ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma")
#: The authors' definitions; half instructions count as one or two operations.
COLUMNS = {
    "sm_clock_hz": "sm__cycles_elapsed.avg.per_second",
    "bytes_l1": "l1tex__t_bytes.sum",
    "bytes_l2": "lts__t_bytes.sum",
    "bytes_dram": "dram__bytes.sum",
}
CYCLES = "sm__cycles_elapsed.avg"
TENSOR = "sm__inst_executed_pipe_tensor.sum"
WHAT_IS_MADE = dict.fromkeys(
    ("flop_vector_fp32", "flop_vector_fp16", "flop_tensor_fp16", *COLUMNS, "duration_s"),
    Definition("see the paper"),
)


def counters(phase):
    """By counter, then by kernel name: the values in order of launch."""
    found = {}
    for path in sorted((DATA / phase).glob("*.txt.gz")):
        values = collections.defaultdict(list)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = iter(file)
            # What the program printed comes first; the table begins with its header.
            header = next(line for line in lines if line.startswith('"ID"'))
            names = next(csv.reader([header]))
            for row in csv.reader(lines):
                values[row[names.index("Kernel Name")]].append(
                    float(row[names.index("Metric Value")])
                )
        found[path.name.removesuffix(".txt.gz")] = values
    return found


@functools.cache
def launches(phase):
    """The n-th launch of a name in each run is taken for the same one (their order may differ)."""
    found = counters(phase)
    rows = []
    for name, cycles in found[CYCLES].items():
        for nth in range(len(cycles)):
            value = {counter: values[name][nth] for counter, values in found.items()}
            sass = {op: value[SASS.format(op)] for op in OPERATIONS}
            rows.append(
                {
                    "name": name,
                    "phase": phase,
                    "duration_s": value[CYCLES] / value[COLUMNS["sm_clock_hz"]],
                    "flop_vector_fp32": sass["fadd"] + sass["fmul"] + 2 * sass["ffma"],
                    "flop_vector_fp16": sass["hadd"] + sass["hmul"] + 2 * sass["hfma"],
                    "flop_tensor_fp16": 512 * value[TENSOR],
                    **{column: value[counter] for column, counter in COLUMNS.items()},
                }
            )
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All three phases as one run."""
    if not DATA.is_dir():
        pytest.skip("the authors' raw data are not in tests/data/paper")
    path = tmp_path_factory.mktemp("paper") / "v100.parquet"
    rows = [row for phase in PHASES for row in launches(phase)]
    provenance = Provenance(
        counter_table="paper-volta",
        definitions=WHAT_IS_MADE,
        missing={"flop_vector_fp64": tuple(SASS.format(op) for op in ("dadd", "dmul", "dfma"))},
    )
    with engine.connect(threads=1) as connection:
        columns = ", ".join(
            f"unnest(${number}::{'VARCHAR' if name in ('name', 'phase') else 'DOUBLE'}[]) AS {name}"
            for number, name in enumerate(rows[0], start=1)
        )
        connection.execute(
            f"CREATE TABLE rows AS SELECT {columns}",
            [[row[name] for row in rows] for name in rows[0]],
        )
        write_run(connection, "SELECT * FROM rows", provenance, path)
    return open_run(path)


@pytest.fixture(scope="module")
def as_the_authors(run):
    options = AnalysisOptions(time_rule="paper")
    return analyze(run, load_machine("v100-paper"), options=options)


@pytest.fixture(scope="module")
def by_default(run):
    return analyze(run, load_machine("v100-paper"))


def phase_of(analysis, name):
    return {phase.key: phase for phase in analysis.phases}[name]


#: Kernel names, launches, zero-AI launches, share of time in them, ms, TFLOP, share of FLOP on
#: the tensor cores, TFLOP/s, FLOP per byte of L1, L2, HBM, GB/s of HBM. Launches and zero-AI
#: launches are printed in the authors' notebooks; the rest are sums over their tables.
TABLE = {
    TENSORFLOW: (52, 556, 304, 0.204, 200.0, 9.395, 0.995, 47.0, (47.23, 61.65, 173.75), 270),
    PYTORCH: (45, 797, 437, 0.101, 104.2, 1.370, 0.824, 13.2, (22.48, 34.12, 62.78), 210),
    LAMB: (5, 35, 5, 0.004, 3.9, 0.001, 0.0, 0.32, (0.427, 0.427, 0.422), 762),
}


@pytest.mark.parametrize("name", PHASES)
def test_the_whole_phases_come_out_as_the_authors_have_them(as_the_authors, name):
    names, count, zero, zero_time, ms, tflop, tensor, rate, intensity, gbytes = TABLE[name]
    phase = phase_of(as_the_authors, name)
    found = census(phase)
    assert (phase.kernels, phase.launches, phase.zero_flop_launches) == (names, count, zero)
    assert found.zero_flop_time == pytest.approx(zero_time, abs=0.0005)
    assert phase.duration_s * 1e3 == pytest.approx(ms, abs=0.05)
    assert phase.flop / 1e12 == pytest.approx(tflop, abs=0.0005)
    assert found.tensor_flop == pytest.approx(tensor, abs=0.0005)
    assert phase.flop_per_s / 1e12 == pytest.approx(rate, rel=0.005)
    found_intensity = [phase.intensity[level] for level in ("l1", "l2", "dram")]
    assert found_intensity == pytest.approx(intensity, rel=0.002)
    assert phase.bytes_by_level["dram"] / phase.duration_s / 1e9 == pytest.approx(gbytes, abs=0.5)


@pytest.mark.parametrize("name", PHASES)
def test_every_kernel_has_the_authors_numbers(run, name):
    """Time, FLOP, intensities and rate of each kernel name, to six digits of their own table."""
    options = AnalysisOptions(time_rule="paper")
    kernels = {kernel.key: kernel for kernel in analyze(run, options=options).kernels}
    # One name occurs in two phases, and is another kernel there: it is left to the phase tests.
    shared = collections.Counter(
        row["name"] for phase in PHASES for row in {r["name"]: r for r in launches(phase)}.values()
    )
    checked = 0
    with (DATA / name / "authors-table.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if shared[row["Kernel Name"]] > 1:
                continue
            checked += 1
            kernel = kernels[row["Kernel Name"]]
            assert kernel.launches == int(row["Count"])
            assert kernel.duration_s == pytest.approx(float(row["Time"]), rel=1e-6)
            assert kernel.flop == float(row["all FLOPs"])
            assert (kernel.flop_by_path["tensor fp16"]) == float(row["TC FLOPs"])
            for level, column in (("l1", "AI L1"), ("l2", "AI L2"), ("dram", "AI HBM")):
                assert kernel.intensity[level] == pytest.approx(float(row[column]), rel=1e-6)
            rate = kernel.flop_per_s / BINARY_GIGA  # their "GFLOP/s"
            assert rate == pytest.approx(float(row["GFLOP/s"]), rel=1e-6)
    assert checked >= 0.8 * TABLE[name][0]


@pytest.mark.parametrize("name", PHASES)
def test_exact_time_of_every_launch_differs_by_a_quarter_percent_at_most(
    as_the_authors, by_default, name
):
    theirs, exact = phase_of(as_the_authors, name), phase_of(by_default, name)
    assert exact.duration_s != theirs.duration_s
    assert exact.duration_s == pytest.approx(theirs.duration_s, rel=0.0025)
    assert exact.flop == theirs.flop


def test_counted_by_launch_two_more_of_pytorch_do_no_work(run):
    """A cast kernel of PyTorch counts FLOP on six of its eight launches."""
    by_launch = analyze(run, options=AnalysisOptions(zero_flop_by="launch"))
    found = {phase.key: phase.zero_flop_launches for phase in by_launch.phases}
    assert found == {PYTORCH: 439, LAMB: 5, TENSORFLOW: 304}


@pytest.mark.parametrize(
    ("name", "share"), [(TENSORFLOW, 0.14), (PYTORCH, 0.28)], ids=["tensorflow", "pytorch"]
)
def test_short_launches_are_as_many_as_the_raw_data_have(by_default, name, share):
    assert census(phase_of(by_default, name)).short_launches == pytest.approx(share, abs=0.005)


def test_the_dominant_kernel_of_tensorflow(run, as_the_authors):
    """33.1 % of the time in 8 launches, 83.9 TFLOP/s, intensities 63, 85 and 924."""
    name = "Volta_hmma_implicit_gemm_fprop_fp32_nhwc_128x128x64x1_1x3x3x0x1"
    rows = [row for row in launches(TENSORFLOW) if row["name"] == name]
    assert len(rows) == 8
    kernel = next(kernel for kernel in as_the_authors.kernels if kernel.key == name)
    # Two more launches of this name are PyTorch's.
    assert kernel.launches == 10
    assert kernel.family == "conv"
    assert kernel.bound == "tensor"
    # 83.9 of 103.7 TFLOP/s
    assert kernel.efficiency == pytest.approx(0.81, abs=0.005)


def test_the_fused_optimizer_is_bound_by_memory(by_default):
    """762 GB/s of 828.8, and launching takes next to nothing: 35 x 4.2 us against 3.9 ms."""
    phase = phase_of(by_default, LAMB)
    assert phase.bound == "dram"
    assert phase.efficiency == pytest.approx(762 / 828.758, abs=0.01)
    found = census(phase, by_default.machine)
    assert found.launch_cost_s == pytest.approx(0.147e-3)
    assert found.launch_cost_time == pytest.approx(0.038, abs=0.001)


def test_the_paths_that_volta_lacks_are_not_missing_but_fp64_is(by_default):
    codes = [notice.code for notice in by_default.notices]
    assert "vector-not-collected" in codes
    assert "tensor-not-collected" not in codes
    assert not by_default.totals.flop_complete
    assert by_default.totals.bound == "tensor"
