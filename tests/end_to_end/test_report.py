"""The main job from the command line: any input to a report."""

import csv
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
ZOO = DATA / "ncu_csv" / "zoo.raw.csv.gz"
REPORT = DATA / "ncu_rep" / "graph-nodes.ncu-rep.gz"
PAPER = DATA / "paper"

TOTALS = {
    "launches",
    "kernels",
    "duration_s",
    "flop",
    "op_int",
    "zero_flop_launches",
    "zero_flop_duration_s",
    "bytes_shared",
    "bytes_l1",
    "bytes_l2",
    "bytes_dram",
    "floor_s",
    "recoverable_s",
}
KERNEL = {
    "name",
    "short_name",
    "family",
    "launches",
    "duration_s",
    "flop",
    "flop_by_path",
    "bytes",
    "intensity",
    "flop_per_s",
    "floors_s",
    "bound",
    "efficiency",
    "recoverable_s",
}


def mansard(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "mansard", *map(str, arguments)],
        capture_output=True,
        input=stdin,
        check=False,
        env={**os.environ, "COLUMNS": "80", "PYTHONWARNINGS": "error"},
    )


@functools.cache
def report_json(*arguments, code=0, stdin=None):
    done = mansard("report", *arguments, "--json", stdin=stdin)
    assert done.returncode == code, done.stderr.decode()

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    return json.loads(done.stdout, parse_constant=refuse)


def test_a_picture_of_other_rows_says_that_it_shows_kernels(tmp_path):
    picture, table = tmp_path / "x.png", tmp_path / "x.csv"
    done = mansard("report", ZOO, "--by", "family", "-o", picture, "-o", table)
    assert done.stderr.decode().splitlines()[:2] == [
        f"wrote {picture} (of kernels; --by family is for tables)",
        f"wrote {table}",
    ]


def test_two_reports_on_one_standard_output_are_refused():
    done = mansard("report", ZOO, "--json", "-o", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"both write to standard output" in done.stderr


def test_roofs_of_another_gpu_are_told_before_any_number():
    done = mansard("report", ZOO, "--machine", "v100-paper", "--top", "1")
    assert done.stdout.decode().startswith("warning: the run is of NVIDIA H200 (compute")
    done = mansard("report", ZOO, "--machine", "v100-paper", "--json")
    assert done.stderr.decode().startswith("mansard: warning: the run is of NVIDIA H200 (compute")
    assert json.loads(done.stdout)["schema"] == "mansard-report/1"


def test_roofs_of_a_cpu_are_refused_for_a_run_of_a_gpu(tmp_path):
    machine = {
        "schema": "mansard-machine/1",
        "name": "laptop",
        "basis": "measured",
        "device": {"name": "Some CPU"},
        "ceilings": [{"kind": "compute", "value": 1e11, "unit": "flop/s", "path": "vector fp32"}],
        "provenance": {"cpus": [0, 1]},
    }
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    done = mansard("report", ZOO, "--machine", tmp_path / "machine.json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"'laptop' are of a CPU (Some CPU), and zoo.raw.csv.gz is of NVIDIA H200" in done.stderr
    assert b"doctor --explain cpu-machine" in done.stderr


def test_the_json_report_has_every_key_of_its_contract():
    report = report_json(ZOO)
    assert report["schema"] == "mansard-report/1"
    assert {"run", "machine", "totals", "phases", "kernels", "warnings"} <= set(report)
    assert set(report["totals"]) >= TOTALS
    assert all(set(phase) >= TOTALS | {"phase"} for phase in report["phases"])
    assert all(set(kernel) >= KERNEL for kernel in report["kernels"])
    assert all({"code", "message"} <= set(warning) for warning in report["warnings"])


@pytest.mark.parametrize("page", ["raw", "raw-base-units", "details"])
def test_known_work_on_an_h200_is_counted_exactly(page):
    report = report_json(DATA / "ncu_csv" / f"zoo.{page}.csv.gz")
    phases = {phase["phase"]: phase for phase in report["phases"]}
    cube = 2 * 2048**3
    expected = {
        "gemm_fp64": ("tensor fp64", cube),
        "gemm_fp16": ("tensor fp16", cube),
        "gemm_bf16": ("tensor bf16", cube),
        "gemm_tf32": ("tensor tf32", cube),
        "gemm_fp8": ("tensor fp8", cube),
        "gemm_int8": ("tensor int8", cube),
        # 4 B H S S D of the attention, 2 N K C R S P Q of the convolution.
        "sdpa": ("tensor bf16", 68_719_476_736),
        "conv": ("tensor bf16", 7_398_752_256),
        # PyTorch adds as a + alpha * b: one fused multiply-add for each of 2^26 elements.
        "add": ("vector fp32", 2 * 2**26),
    }
    for phase, (path, work) in expected.items():
        assert phases[phase]["flop_by_path"][path] == work, phase


def test_the_pages_of_one_profile_give_the_same_kernels():
    reports = [
        report_json(DATA / "ncu_csv" / f"zoo.{page}.csv.gz")["kernels"]
        for page in ("raw", "raw-base-units", "details")
    ]
    for kernels in zip(*reports, strict=True):
        names = {kernel["name"] for kernel in kernels}
        work = {kernel["flop"] for kernel in kernels}
        assert len(names) == 1
        assert len(work) == 1
        first = kernels[0]["duration_s"]
        # Auto units print two decimals: 2.02 us for 2.016 us.
        assert all(kernel["duration_s"] == pytest.approx(first, rel=3e-3) for kernel in kernels)


def test_a_live_page_without_work_counters_says_what_is_missing():
    report = report_json(DATA / "ncu_csv" / "zoo.live.csv.gz")
    assert report["totals"]["flop"] is None
    assert report["totals"]["bytes_dram"] > 0
    codes = {warning["code"] for warning in report["warnings"]}
    assert {"vector-not-collected", "tensor-not-collected"} <= codes


def test_the_report_file_and_its_csv_give_the_same_numbers():
    native = report_json(REPORT)["kernels"]
    text = report_json(DATA / "ncu_rep" / "graph-nodes.raw-base-units.csv.gz")["kernels"]
    assert [kernel["flop"] for kernel in native] == [kernel["flop"] for kernel in text]
    assert [kernel["bytes"] for kernel in native] == [kernel["bytes"] for kernel in text]


@pytest.mark.parametrize(
    ("folder", "launches", "zero", "flop", "time", "intensity"),
    [
        # reference: the authors' CSVs; FLOP in T, time in ms, AI L1 / L2 / HBM
        ("pytorch-O1-adam-forward", 797, 437, 1.370e12, 104.2e-3, (23, 34, 63)),
        ("pytorch-O1-fusedlamb-optimizer", 35, 5, 1.25e9, 3.9e-3, (0.4, 0.4, 0.4)),
        ("tensorflow-amp-forward", 556, 304, 9.395e12, 200.0e-3, (47, 62, 174)),
    ],
)
def test_the_papers_phase_totals_come_out(folder, launches, zero, flop, time, intensity):
    totals = report_json(PAPER / folder, "--time-rule", "paper")["totals"]
    assert totals["launches"] == launches
    assert totals["zero_flop_launches"] == zero
    assert totals["flop"] == pytest.approx(flop, rel=1e-2)
    assert totals["duration_s"] == pytest.approx(time, rel=5e-3)
    for level, value in zip(("l1", "l2", "dram"), intensity, strict=True):
        assert totals["flop"] / totals[f"bytes_{level}"] == pytest.approx(value, rel=0.07)


def test_the_join_of_the_papers_files_is_recorded():
    report = report_json(PAPER / "tensorflow-amp-forward")
    assert "occurrence" in report["run"]["join"]
    assert "launch order" in report_json(PAPER / "pytorch-O1-adam-forward")["run"]["join"]


def test_standard_input_is_read():
    content = (DATA / "ncu_csv" / "raw-base-units.csv").read_bytes()
    assert report_json("-", stdin=content)["totals"]["launches"] > 0


def test_a_truncated_report_gives_its_whole_launches_and_exit_code_3(tmp_path):
    import gzip

    whole = gzip.decompress(REPORT.read_bytes())
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(whole[: len(whole) * 9 // 10])
    report = report_json(cut, code=3)
    assert 0 < report["totals"]["launches"] < 4
    assert any("report-cut" in warning["code"] for warning in report["warnings"])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty"),
        ("noise.bin", bytes(range(256)) * 40, "neither a run"),
        ("other.json", b'{"a": 1}', "neither a run"),
        ("fake.parquet", b"PAR1xxxxPAR1", "damaged Parquet"),
        ("cut.ncu-rep", b"NVR\0\x02\x00\x00\x00\x08\x07", "no launch"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    done = mansard("report", path)
    assert done.returncode == 2
    lines = done.stderr.decode().splitlines()
    assert len([line for line in lines if line.startswith("mansard:")]) == 1
    assert said in lines[0]
    assert b"Traceback" not in done.stderr


def test_a_missing_file_is_one_line_and_exit_code_2():
    done = mansard("report", "no-such-file")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"does not exist" in done.stderr


def test_import_then_report_gives_the_numbers_of_the_direct_report(tmp_path):
    run = tmp_path / "run.parquet"
    assert mansard("import", ZOO, "-o", run).returncode == 0
    direct, imported = report_json(ZOO), report_json(run)
    assert [k["name"] for k in direct["kernels"]] == [k["name"] for k in imported["kernels"]]
    for key in TOTALS:
        # Sums of floating-point numbers depend on their order in the last digit.
        assert direct["totals"][key] == pytest.approx(imported["totals"][key], rel=1e-12)


def test_an_output_that_cannot_be_written_leaves_what_stood_there(tmp_path):
    target = tmp_path / "report.png"
    target.write_text("mine")
    done = mansard("report", ZOO, "-o", tmp_path / "no-folder" / "report.png")
    assert done.returncode == 2
    assert b"cannot write" in done.stderr
    assert target.read_text() == "mine"


def test_an_unknown_suffix_is_refused_with_the_list_of_formats():
    done = mansard("report", ZOO, "-o", "report.docx")
    assert done.returncode == 2
    assert b".svg" in done.stderr


def test_the_suffix_chooses_the_format(tmp_path):
    outputs = {suffix: tmp_path / f"out{suffix}" for suffix in (".png", ".svg", ".pdf")}
    options = [part for path in outputs.values() for part in ("-o", path)]
    assert mansard("report", ZOO, *options).returncode == 0
    assert outputs[".png"].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in outputs[".svg"].read_bytes()
    assert outputs[".pdf"].read_bytes().startswith(b"%PDF")


def test_the_csv_has_one_row_a_kernel_with_units_in_its_header(tmp_path):
    target = tmp_path / "kernels.csv"
    assert mansard("report", ZOO, "-o", target).returncode == 0
    rows = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == report_json(ZOO)["totals"]["kernels"]
    assert "duration_s" in rows[0]


def test_the_terminal_report_fits_80_columns():
    done = mansard("report", ZOO, PAPER / "pytorch-O1-adam-forward", "--by", "family")
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 80


def test_without_a_machine_everything_but_percentages_is_there():
    report = report_json(ZOO, "--machine", "none")
    assert report["machine"] is None
    assert report["totals"]["floor_s"] is None
    assert report["totals"]["flop"] > 0
    assert all(kernel["bound"] is None for kernel in report["kernels"])


def test_a_folder_of_runs_is_a_run_of_many_ranks(tmp_path):
    for rank in range(2):
        assert mansard("import", ZOO, "-o", tmp_path / f"rank{rank}.parquet").returncode == 0
    one, two = report_json(ZOO)["totals"], report_json(tmp_path)["totals"]
    assert two["launches"] == 2 * one["launches"]
    assert two["flop"] == 2 * one["flop"]


def test_one_bad_file_among_good_ones_is_named_and_the_rest_is_reported(tmp_path):
    assert mansard("import", ZOO, "-o", tmp_path / "a.parquet").returncode == 0
    (tmp_path / "b.parquet").write_bytes(b"PAR1 cut")
    report = report_json(tmp_path, code=3)
    assert report["totals"]["launches"] == 24
    assert any("b.parquet" in warning["message"] for warning in report["warnings"])
