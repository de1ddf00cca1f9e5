"""What is skipped because the files' statistics tell it must not change a number."""

import duckdb
import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.analysis.file_statistics import statistics
from mansard.analysis.launches import launches


def _parquet(tmp_path, select):
    path = tmp_path / "some.parquet"
    duckdb.connect().execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    with engine.connect(threads=1) as connection:
        return statistics(connection, (path,))


def test_a_nan_or_an_infinity_makes_a_column_unsound(tmp_path):
    found = _parquet(
        tmp_path,
        "SELECT 1.0::DOUBLE AS good, 'NaN'::DOUBLE AS nan, 'inf'::DOUBLE AS inf, -1::DOUBLE AS less "
        "UNION ALL SELECT 2, 1, 1, 1",
    )
    assert found.sound == {"good"}


def test_a_column_of_zeros_and_nulls_is_zero(tmp_path):
    found = _parquet(tmp_path, "SELECT 0e0 AS z, 0e0 AS n, 0e0 AS o UNION ALL SELECT 0, NULL, 1")
    assert found.zero == {"z", "n"}
    assert found.full == {"z", "o"}


def test_files_of_other_writers_are_not_believed(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [0.0, float("nan")]}), path)
    with engine.connect(threads=1) as connection:
        found = statistics(connection, (path,))
    assert (found.sound, found.zero, found.full) == (frozenset(), frozenset(), frozenset())


def test_a_column_that_is_never_null_keeps_the_dictionary_of_its_file(make_run):
    run = make_run({"name": "a", "kind": "kernel"}, {"name": None, "kind": "memcpy"})
    with engine.connect(threads=1) as connection:
        found = launches(connection, run)
        assert '"kind" AS kind' in found.sql
        rows = connection.execute(f"SELECT name, kind FROM ({found.sql})").fetchall()
    assert sorted(rows) == [("", "memcpy"), ("a", "kernel")]


def test_columns_with_equally_many_nulls_on_other_launches_are_counted_each_for_itself(make_run):
    rows = [
        {"name": "a", "duration_s": 1.0, "flop_vector_fp32": 1.0, "flop_vector_fp64": None},
        {"name": "a", "duration_s": 1.0, "flop_vector_fp32": None, "flop_vector_fp64": 2.0},
        {"name": "b", "duration_s": 1.0, "flop_vector_fp32": 4.0, "flop_vector_fp64": 8.0},
    ]
    found = analyze(make_run(*rows))
    assert found.totals.flop == 15.0
    assert {kernel.key: kernel.flop_complete for kernel in found.kernels} == {
        "a": False,
        "b": False,
    }
    by_path = found.totals.flop_by_path
    assert (by_path["vector fp32"], by_path["vector fp64"]) == (5.0, 10.0)


def test_zero_columns_with_the_same_nulls_are_zero_where_counted_and_unknown_elsewhere(make_run):
    counted = {"flop_vector_fp32": 3.0, "flop_vector_fp64": 0.0, "flop_vector_fp16": 0.0}
    rows = [
        {"name": "a", "duration_s": 1.0, **counted},
        {"name": "b", "duration_s": 1.0, **dict.fromkeys(counted)},
    ]
    found = {kernel.key: kernel.flop_by_path for kernel in analyze(make_run(*rows)).kernels}
    assert [found["a"][f"vector fp{bits}"] for bits in (16, 32, 64)] == [0.0, 3.0, 0.0]
    assert [found["b"][f"vector fp{bits}"] for bits in (16, 32, 64)] == [None, None, None]
