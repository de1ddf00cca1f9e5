"""Apache Spark, in local mode, gives the numbers that DuckDB gives."""

import dataclasses
import math
import shutil

import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.analysis.spark import in_spark, scan_with
from mansard.errors import UsageError
from mansard.model.columns import RUN_COLUMNS
from mansard.model.machine import Ceiling, Machine
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.store import open_run, write_run

pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
pytest.importorskip("sqlglot", reason="the extra 'spark' is not installed")
pytest.importorskip("pyarrow", reason="the extra 'spark' is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java 17 or 21", allow_module_level=True)

LAUNCHES = """
SELECT 'node' || ({rank} // 4) AS host, {rank} AS rank, 0 AS device, i // 40 AS step, i AS launch,
    CASE WHEN i % 20 = 19 THEN 'ncclDevKernel_AllReduce' WHEN i % 3 = 0 THEN 'gemm<a, ''b''>'
        WHEN i % 3 = 1 THEN 'Copy_It' ELSE 'copy_it' END AS name,
    CASE WHEN i % 40 < 20 THEN 'forward' WHEN i % 40 < 39 THEN 'back "ward"' END AS phase,
    i % 5 + 1 AS grid_x, 1 AS grid_y, 1 AS grid_z, 32 AS block_x, 1 AS block_y, 1 AS block_z,
    i * 1e-3 AS start_s,
    1e-3 * (1 + ((i * 7919 + {rank} * 104729) % 1000) / 1e4) * {slower} AS duration_s,
    1.5e9 AS sm_clock_hz,
    CASE WHEN i % 20 = 19 THEN NULL WHEN i % 3 = 0 THEN 1e9 / 3 ELSE 0 END AS flop_vector_fp32,
    CASE WHEN i % 20 = 19 THEN NULL ELSE 0 END AS flop_vector_fp64,
    CASE WHEN i % 7 = 6 THEN NULL ELSE 1e7 / 7 END AS bytes_dram,
    CASE WHEN i = 11 THEN 'NaN'::DOUBLE WHEN i = 12 THEN -1 ELSE 2e7 / 7 END AS bytes_l2
FROM range(120) AS r(i)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    # A name in which Spark would see patterns and an escape.
    folder = tmp_path_factory.mktemp("job") / "a [b] %41+c"
    folder.mkdir()
    with engine.connect(threads=1) as connection:
        for rank in range(12):
            columns = LAUNCHES.format(rank=rank, slower=1.5 if rank == 5 else 1.0)
            if rank == 7:  # a file without ranks, which takes its place's number
                columns = f"SELECT * EXCLUDE (rank) FROM ({columns})"
            if rank == 8:  # and one with a further column
                columns = f'SELECT *, 1.0 AS "counter.x.sum" FROM ({columns})'
            write_run(connection, columns, Provenance(), folder / f"rank{rank}.parquet")
    return open_run(folder)


@pytest.fixture(scope="module")
def machine():
    return Machine(
        name="round",
        basis="measured",
        ceilings=(
            Ceiling(kind="compute", value=1e12, unit="flop/s", path="vector fp32"),
            Ceiling(kind="bandwidth", value=1e10, unit="byte/s", level="dram"),
            Ceiling(kind="bandwidth", value=4e10, unit="byte/s", level="l2"),
        ),
    )


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    from mansard.analysis.spark import _SETTINGS

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _same(one, other, where=""):
    """Equal, numbers to 12 digits: sums may be taken in another order."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        assert type(one) is type(other), where
        for field in dataclasses.fields(one):
            _same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            _same(one[key], other[key], f"{where}[{key}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for n, (a, b) in enumerate(zip(one, other, strict=True)):
            _same(a, b, f"{where}[{n}]")
    elif isinstance(one, float) and isinstance(other, float):
        # A score is the difference of nearly equal sums, and has fewer digits than they.
        least = 1e-9 if where.endswith(".score") else 1e-18
        assert math.isclose(one, other, rel_tol=1e-12, abs_tol=least), f"{where}: {one} {other}"
    else:
        assert one == other, f"{where}: {one} {other}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark_and_duckdb_give_the_same_analysis(run, machine, spark):
    embedded = analyze(run, machine)
    with scan_with("spark", run) as scan:
        found = analyze(run, machine, scan=scan)
    assert [straggler.rank for straggler in found.fleet.stragglers] == [5]
    assert found.totals.launches == 12 * 120
    assert {kernel.key for kernel in found.kernels} >= {"Copy_It", "copy_it"}
    _same(embedded, found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_files_that_are_damaged_inside_or_gone_are_left_out_by_both(run, machine, spark, tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in (0, 1, 4, 7, 9):
        shutil.copy(run.files[rank], folder)
    with engine.connect(threads=1) as connection:
        first = connection.execute(
            "SELECT coalesce(dictionary_page_offset, data_page_offset) FROM "
            f"parquet_metadata({engine.file_list([folder / 'rank4.parquet'])}) "
            "WHERE path_in_schema = 'duration_s'"
        ).fetchall()[0][0]
    content = bytearray((folder / "rank4.parquet").read_bytes())
    content[first : first + 40] = b"\xff" * 40
    (folder / "rank4.parquet").write_bytes(content)
    damaged = open_run(folder)
    (folder / "rank9.parquet").unlink()
    with scan_with("spark", damaged) as scan:
        found = analyze(damaged, machine, scan=scan)
    told = [n.message for n in found.notices if n.code == "unreadable-file"]
    assert ["rank4." in told[0], "rank9." in told[1], len(told)] == [True, True, 2]
    assert found.totals.launches == 3 * 120
    embedded = analyze(damaged, machine)
    assert [n.code for n in embedded.notices] == [n.code for n in found.notices]
    _same(
        dataclasses.replace(embedded, notices=(), run=None),
        dataclasses.replace(found, notices=(), run=None),
    )


def test_a_name_of_no_engine_is_refused():
    with (
        pytest.raises(UsageError, match="no engine 'hive'"),
        scan_with("hive", Run(files=(), provenance=())),
    ):
        pass


def test_a_hash_of_shapes_keeps_its_64_bits_in_spark():
    assert in_spark("SELECT hash(a, b) FROM t") == "SELECT XXHASH64(a, b) FROM t"


def test_columns_of_the_run_are_all_known_to_spark_by_type():
    assert {c.sql_type for c in RUN_COLUMNS} <= {"VARCHAR", "BIGINT", "INTEGER", "DOUBLE"}
