"""One profile in all the spellings that people have; see tests/data/ncu_csv/make_variants.py."""

import gzip
import io
import json

import pytest

from mansard.engine import connect
from mansard.model.capture import CAPTURE_COLUMNS
from mansard.readers.ncu_csv import read_ncu_csv
from mansard.readers.ncu_rep import read_ncu_rep

# From the recorded page in base units, by hand: bytes, seconds, Hz, operations, instructions.
EXPECTED = {
    "0": (208472064, 300000e-9, 1855248888.89, 0, 54884352),
    "1": (17334016, 26016e-9, 1676993644.94, 17179869184, 2364844),
    "7": (807643136, 186496e-9, 1923028733.41, 0, 8912896),
    "15": (5888, 5344e-9, 1942543889.49, 0, 2523136),
    "16": (4205056, 10176e-9, 1964405255.38, 0, 2701458),
    "23": (405163776, 94176e-9, 1941347406.27, 0, 6029312),
}
COUNTERS = (
    "dram__bytes.sum",
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg.per_second",
    "sm__ops_path_tensor_src_fp16.sum",
    "smsp__inst_executed.sum",
)
# Relative precision of what the file itself shows: two decimals of "208.47 Mbyte" or "1.86 Ghz".
TWO_DECIMALS, SIX_DECIMALS, EXACT = 4e-3, 2e-6, 1e-15
VARIANTS = {
    "raw-base-units.csv": EXACT,
    "european-base-units.csv": EXACT,
    "no-thousands.csv": EXACT,
    "narrow-spaces.csv": EXACT,
    "shuffled-columns.csv": EXACT,
    "spreadsheet.csv": EXACT,
    "noisy.csv": EXACT,
    "raw.csv": SIX_DECIMALS,
    "raw.csv.gz": SIX_DECIMALS,
    "european.csv": SIX_DECIMALS,
    "byte-order-mark.csv": SIX_DECIMALS,
    "powershell.csv": SIX_DECIMALS,
    "windows.csv": SIX_DECIMALS,
    "details.csv": TWO_DECIMALS,
    "sorted-by-metric.csv": TWO_DECIMALS,
    "rules.csv": TWO_DECIMALS,
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_spelling_gives_the_same_launches_and_values(read, data_folder, name):
    found = read(data_folder / name)
    assert found.column("id") == list(EXPECTED)
    assert found.column("phase") == ["gemm_fp64", "gemm_fp16", "add", "sort", "sort", "cast"]
    assert found.column("range")[4] == "sort/cub::DeviceRadixSort"
    assert found.column("grid_x") == [16, 2, 65536, 1024, 2112, 65536]
    assert found.column("block_x") == [128, 384, 128, 1024, 128, 128]
    assert set(found.column("process")) == {441}
    assert set(found.column("host")) == {"127.0.0.1"}
    assert set(found.column("stream")) == {7}
    assert set(found.column("kind")) == {"kernel"}
    for place, counter in enumerate(COUNTERS):
        expected = [values[place] for values in EXPECTED.values()]
        assert found.values(counter) == pytest.approx(expected, rel=VARIANTS[name])
    assert found.capture.provenance.lost_launches == 0
    assert not any(notice.partial for notice in found.capture.provenance.notices)


@pytest.mark.parametrize(
    "name", [name for name, exact in VARIANTS.items() if exact != TWO_DECIMALS]
)
def test_a_raw_page_says_which_gpu_it_is_from(read, data_folder, name):
    (device,) = read(data_folder / name).capture.provenance.devices
    assert device.name == "NVIDIA H200"
    assert device.compute_capability == "9.0"
    assert device.sm_count == 132
    assert device.sm_clock_max_hz == 1.98e9


def test_the_columns_of_a_capture_come_first_and_counters_follow(read, data_folder):
    found = read(data_folder / "raw.csv")
    names = list(found.rows[0])
    assert names[: len(CAPTURE_COLUMNS)] == [name for name, _ in CAPTURE_COLUMNS]
    assert names[len(CAPTURE_COLUMNS) :] == [f"counter.{name}" for name in found.capture.counters]
    assert found.capture.counters == (*COUNTERS, "launch__registers_per_thread")


def test_the_types_of_the_columns_are_those_of_a_capture(engine, read, data_folder):
    for name in ("raw.csv", "details.csv"):
        read(data_folder / name)
        types = {row[0]: row[1] for row in engine.execute("DESCRIBE launches").fetchall()}
        for column, sql_type in CAPTURE_COLUMNS:
            assert types.pop(column) == sql_type
        assert set(types.values()) == {"DOUBLE"}


def test_whole_recorded_pages_agree_with_each_other_and_with_the_known_work(read, data_folder):
    known = json.loads((data_folder / "zoo.known-flop.json").read_text())
    for page in ("raw", "raw-base-units", "details"):
        found = read(data_folder / f"zoo.{page}.csv.gz")
        work = dict(
            zip(
                found.column("phase"),
                zip(*(found.values(f"sm__ops_path_tensor_src_{kind}.sum") for kind in (
                    "fp64", "fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp8", "int8",
                )), strict=True),
                strict=True,
            )
        )  # fmt: skip
        assert len(found.rows) == 24
        for place, gemm in enumerate(("fp64", "fp16", "bf16", "tf32", "fp8", "int8")):
            assert work[f"gemm_{gemm}"][place] == known[f"gemm_{gemm}"]
        copied = dict(zip(found.column("phase"), found.values("dram__bytes.sum"), strict=True))
        assert copied["add"] == pytest.approx(known["add_bytes"], rel=0.01)


def test_both_readers_give_identical_launches_for_the_same_profile_b08(data_folder):
    folder = data_folder.parent / "ncu_rep"
    with connect(threads=1) as engine:
        with gzip.open(folder / "graph-nodes.ncu-rep.gz") as report:
            whole = read_ncu_rep(io.BytesIO(report.read()), engine, "report", name="report")
        page = read_ncu_csv(
            folder / "graph-nodes.raw-base-units.csv.gz", engine, "page", name="page"
        )
        # The page shows names in a shorter form: "<4, ..." for "<(int)4, ...".
        columns = (
            "row, host, process, device, id, stream, kind, block_x, grid_x, grid_y, phase, range, "
            "regexp_extract(name, '\\w+') AS word"
        )
        launches = [
            engine.execute(f"SELECT {columns} FROM {table} ORDER BY row").fetchall()
            for table in ("report", "page")
        ]
        assert launches[0] == launches[1]
        shared = [name for name in page.counters if name in whole.counters]
        assert {"dram__bytes.sum", "gpu__time_duration.sum", "launch__grid_size"} <= set(shared)
        for name in shared:
            report, text = (
                [row[0] for row in engine.execute(f'SELECT "counter.{name}" FROM {table} ORDER BY row').fetchall()]
                for table in ("report", "page")
            )  # fmt: skip
            # The page shows two decimals of a base unit; times are shown in ns.
            assert text == pytest.approx(report, rel=1e-6, abs=0.0051), name
        assert whole.provenance.devices[0].sm_count == page.provenance.devices[0].sm_count


def test_a_live_run_says_that_caches_and_clocks_were_left_alone(read, data_folder):
    found = read(data_folder / "zoo.live.csv.gz")
    assert found.capture.provenance.cache_control == "none"
    assert found.capture.provenance.clock_control == "none"
    assert found.codes == []
    assert found.values("gpu__time_duration.sum")[0] == 297344e-9
    assert found.capture.provenance.collector == "Nsight Compute"
    assert found.capture.provenance.sources == ("sample.csv",)
