"""A report read natively equals what Nsight Compute itself printed of the very same file.

The CSV is parsed here, on its own. The small pair under tests/data is the original without
machine code and personal fields; the originals are compared too where they are at hand.
"""

import csv
import gzip
import json
import math
import re
from pathlib import Path

import pytest

from mansard.engine import connect
from mansard.readers.ncu_rep import read_ncu_rep
from mansard.units import unit_factor

SMALL = Path(__file__).parents[1] / "data" / "ncu_rep"
ORIGINAL = Path(__file__).parents[2] / "../shared/data/h200"
#: Columns of the wide page that are no metrics.
IDENTITY = 11
#: Printed without a unit, in kHz as the driver gives them.
KILOHERTZ = re.compile(r"device__attribute_(\w+_frequency_khz|\w*clock_rate)")


def _folder(kind: str) -> Path:
    folder = SMALL if kind == "small" else ORIGINAL
    if not (folder / "graph-nodes.ncu-rep.gz").exists():
        pytest.skip(f"the original report is not here: {folder}")
    return folder


@pytest.fixture(scope="module", params=["small", "original"])
def folder(request):
    return _folder(request.param)


@pytest.fixture(scope="module")
def rows(folder):
    with connect() as connection:
        capture = read_ncu_rep(
            folder / "graph-nodes.ncu-rep.gz", connection, "launches", name="graph-nodes.ncu-rep"
        )
        found = connection.execute("SELECT * FROM launches ORDER BY row")
        names = [entry[0] for entry in found.description]
        return capture, [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _page(folder: Path, units: str):
    with gzip.open(folder / f"graph-nodes.{units}.csv.gz", "rt", newline="") as file:
        head, unit_row, *lines = csv.reader(file)
    return head, unit_row, lines


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _printed_step(text: str) -> float:
    """Half of the last digit that was printed."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


@pytest.mark.parametrize("units", ["raw-base-units", "raw"])
def test_every_metric_of_every_launch_equals_the_printed_one(folder, rows, units):
    _, launches = rows
    head, unit_row, lines = _page(folder, units)
    assert len(launches) == len(lines) == 4
    compared = 0
    for launch, line in zip(launches, lines, strict=True):
        for metric, unit, text in list(zip(head, unit_row, line, strict=True))[IDENTITY:]:
            number = _number(text)
            if number is None:
                continue
            factor = 1e3 if KILOHERTZ.fullmatch(metric) else unit_factor(unit)[0]
            value = launch[f"counter.{metric}"]
            step = _printed_step(text) * factor
            assert math.isclose(value, number * factor, rel_tol=1e-12, abs_tol=step), metric
            compared += 1
    # 374 metrics, of which 6 are text.
    assert compared == 4 * 368


def test_no_counter_is_read_that_the_page_does_not_have(folder, rows):
    capture, _ = rows
    head, _, _ = _page(folder, "raw-base-units")
    assert set(capture.counters) <= set(head)


def _plain_name(name: str) -> str:
    """Without casts and namespaces, which the page leaves out to shorten names."""
    return re.sub(r"\w+::|\((?:unsigned )?(?:int|long|bool)\)", "", name)


def test_identity_of_every_launch_equals_the_printed_one(folder, rows):
    _, launches = rows
    head, _, lines = _page(folder, "raw")
    for number, (launch, line) in enumerate(zip(launches, lines, strict=True)):
        printed = dict(zip(head[:IDENTITY], line[:IDENTITY], strict=True))
        assert launch["row"] == number
        assert launch["id"] == printed["ID"]
        assert launch["process"] == int(printed["Process ID"])
        assert launch["host"] == printed["Host Name"]
        assert launch["stream"] == int(printed["Stream"])
        assert launch["device"] == int(printed["Device"])
        assert launch["kind"] == "kernel"
        assert _plain_name(launch["name"]) == _plain_name(printed["Kernel Name"])
        for what in ("grid", "block"):
            shape = tuple(launch[f"{what}_{axis}"] for axis in "xyz")
            assert str(shape) == printed[f"{what.title()} Size"]


def test_device_facts_equal_the_printed_attributes(folder, rows):
    capture, _ = rows
    head, _, lines = _page(folder, "raw-base-units")
    printed = dict(zip(head, lines[0], strict=True))

    def attribute(name):
        return _number(printed[f"device__attribute_{name}"])

    (device,) = capture.provenance.devices
    assert device.name == printed["device__attribute_display_name"] == "NVIDIA H200"
    assert device.compute_capability == printed["CC"] == "9.0"
    assert device.sm_count == attribute("multiprocessor_count") == 132
    assert device.sm_clock_max_hz == attribute("clock_rate") * 1e3 == 1.98e9
    assert device.dram_clock_hz == attribute("memory_clock_rate") * 1e3 == 3.201e9
    assert device.dram_bus_bits == attribute("global_memory_bus_width")
    assert device.l2_bytes == attribute("l2_cache_size")
    assert device.dram_bytes == attribute("total_memory")
    assert device.chip == "GH100"


def test_conditions_of_the_recording_are_read(rows):
    origin = rows[0].provenance
    assert origin.collector == "Nsight Compute"
    assert origin.collector_version == "2025.3.1.0"
    assert origin.cuda_version == "13.0"
    # nvidia-smi of that machine said 580.159.04; the report keeps two parts of it.
    assert origin.driver_version == "580.159"
    assert (origin.clock_control, origin.cache_control, origin.replay) == ("none", "none", "kernel")
    assert origin.lost_launches == 0
    assert origin.notices == ()


@pytest.mark.parametrize(
    ("phase", "counter"),
    [
        ("gemm_fp64", "sm__ops_path_tensor_src_fp64.sum"),
        ("gemm_fp16", "sm__ops_path_tensor_src_fp16.sum"),
        ("gemm_bf16", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"),
        ("gemm_tf32", "sm__ops_path_tensor_src_tf32_dst_fp32.sum"),
        ("gemm_int8", "sm__ops_path_tensor_src_int8.sum"),
        ("gemm_fp8", "sm__ops_path_tensor_src_fp8_sparsity_off.sum"),
    ],
)
def test_operations_of_the_whole_original_report_equal_the_known_work(zoo, phase, counter):
    work, launches = zoo
    counted = [launch[f"counter.{counter}"] for launch in launches if launch["phase"] == phase]
    assert sum(counted) == work[phase]


def test_vector_operations_follow_from_rates_and_cycles(zoo):
    work, launches = zoo
    (launch,) = [launch for launch in launches if launch["phase"] == "gemm_fp32"]
    clock = launch["counter.sm__cycles_elapsed.avg.per_second"]
    cycles = launch["counter.gpu__time_duration.sum"] * clock

    def count(kind):
        metric = f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum.per_cycle_elapsed"
        return launch[f"counter.{metric}"] * cycles

    # The epilogue of the product scales each of the 2048^2 results.
    assert 2 * count("ffma") == pytest.approx(work["gemm_fp32"], rel=1e-3)


@pytest.fixture(scope="module")
def zoo():
    path = ORIGINAL / "zoo.set-roofline.ncu-rep.xz"
    if not path.exists():
        pytest.skip(f"the original report is not here: {path}")
    work = json.loads((ORIGINAL / "zoo.known-flop.json").read_text())
    with connect() as connection:
        read_ncu_rep(path, connection, "zoo", name=path.name)
        found = connection.execute("SELECT * FROM zoo ORDER BY row")
        names = [entry[0] for entry in found.description]
        return work, [dict(zip(names, row, strict=True)) for row in found.fetchall()]
