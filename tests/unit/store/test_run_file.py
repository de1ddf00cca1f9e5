"""Run files: what is written is what is read, and nothing else is taken for it."""

import json
import os
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mansard import engine
from mansard.errors import FormatError, InputError, OutputError
from mansard.model.columns import RUN_COLUMNS
from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice
from mansard.model.provenance import RUN_FORMAT, Definition, Provenance
from mansard.store import open_run, read_provenance, write_run

ORIGIN = Provenance(
    created="2020-06-10T02:05:31+00:00",
    mansard_version="0.0",
    sources=('it\'s "quoted" é.csv',),
    devices=(DeviceFacts(name="NVIDIA H200", sm_count=132),),
    definitions={"bytes_dram": Definition("a + b", source="x")},
    missing={"bytes_l2": ("lts",)},
    notices=(Notice("code", "text", partial=True),),
    extra={"key": "{}"},
)


def write(path, sql="SELECT 'k' AS name, 1.5 AS duration_s", provenance=ORIGIN):
    with engine.connect(threads=1) as connection:
        write_run(connection, sql, provenance, path)


def write_metadata(path, metadata):
    table = pa.table({"name": ["k"]}).replace_schema_metadata(metadata)
    pq.write_table(table, path)


def test_other_tools_read_what_is_written(tmp_path):
    path = tmp_path / "run.parquet"
    write(
        path,
        "SELECT 'k' AS name, 3 AS rank, 1 AS duration_s, 2 AS bytes_dram, "
        '4 AS "counter.sm__cycles_elapsed.avg"',
    )
    table = pq.read_table(path)
    assert table.column_names == [
        *(column.name for column in RUN_COLUMNS),
        "counter.sm__cycles_elapsed.avg",
    ]
    row = table.to_pylist()[0]
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": "k",
        "rank": 3,
        "duration_s": 1.0,
        "bytes_dram": 2.0,
        "counter.sm__cycles_elapsed.avg": 4.0,
    }
    assert table.schema.field("rank").type == pa.int32()
    assert table.schema.field("launch").type == pa.int64()
    assert table.schema.field("flop_vector_fp64").type == pa.float64()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    stored = json.loads(table.schema.metadata[b"mansard"])
    assert stored["format"] == RUN_FORMAT
    assert stored["devices"][0]["name"] == "NVIDIA H200"


def test_the_provenance_comes_back_as_it_was(tmp_path):
    write(tmp_path / "run.parquet")
    assert read_provenance(tmp_path / "run.parquet") == ORIGIN


def test_time_and_version_of_writing_are_noted(tmp_path):
    write(tmp_path / "run.parquet", provenance=Provenance())
    found = read_provenance(tmp_path / "run.parquet")
    assert found.created.endswith("+00:00")
    assert found.mansard_version


def test_a_run_of_no_launches_is_a_run(tmp_path):
    write(tmp_path / "run.parquet", "SELECT 'k' AS name WHERE false")
    assert open_run(tmp_path / "run.parquet").provenance == (ORIGIN,)


def test_columns_that_no_run_has_are_refused(tmp_path):
    with pytest.raises(FormatError, match="not columns of a run: bytes_hbm"):
        write(tmp_path / "run.parquet", "SELECT 'k' AS name, 1 AS bytes_hbm")
    assert list(tmp_path.iterdir()) == []


class TestWriting:
    """A failure leaves everything as it was."""

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(OutputError, match=r"no/run\.parquet"):
            write(tmp_path / "no" / "run.parquet")

    def test_the_existing_file_survives_a_failure_half_way(self, tmp_path):
        path = tmp_path / "run.parquet"
        write(path)
        before = path.read_bytes()
        with pytest.raises(OutputError, match="bad value"):
            write(
                path,
                "SELECT CASE WHEN range > 9000 THEN error('bad value') END AS name FROM range(9999)",
            )
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]

    def test_a_device_or_a_folder_is_not_replaced(self, tmp_path):
        with pytest.raises(OutputError, match="not a regular file"):
            write(tmp_path)
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        with pytest.raises(OutputError, match="not a regular file"):
            write(fifo)

    def test_a_link_stays_a_link(self, tmp_path):
        target, link = tmp_path / "target.parquet", tmp_path / "link.parquet"
        write(target, "SELECT 'old' AS name")
        link.symlink_to(target)
        write(link, "SELECT 'new' AS name")
        assert link.is_symlink()
        assert pq.read_table(target).to_pylist()[0]["name"] == "new"

    def test_any_name_of_a_file_will_do(self, tmp_path):
        path = tmp_path / ("a'b [1]*?{x} é=1 " + "n" * 200 + ".parquet")
        write(path)
        assert open_run(path).provenance == (ORIGIN,)


class TestReading:
    """What is no run is told apart, and why."""

    def test_nothing_there(self, tmp_path):
        with pytest.raises(InputError, match="there is no file"):
            open_run(tmp_path / "run.parquet")

    def test_not_parquet(self, tmp_path):
        for content in (b"", b"P", b"ID,Name\n1,k\n", bytes(100)):
            (tmp_path / "run.parquet").write_bytes(content)
            with pytest.raises(FormatError, match="is not a Parquet file"):
                open_run(tmp_path / "run.parquet")

    def test_cut_short_anywhere(self, tmp_path):
        path = tmp_path / "run.parquet"
        write(path)
        content = path.read_bytes()
        for length in (4, 8, 100, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            with pytest.raises(FormatError, match="is cut short"):
                open_run(path)

    def test_a_damaged_footer(self, tmp_path):
        path = tmp_path / "run.parquet"
        write(path)
        content = bytearray(path.read_bytes())
        (length,) = struct.unpack("<I", content[-8:-4])
        content[-8 - length : -8 - length // 2] = bytes(length - length // 2)
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"run\.parquet"):
            open_run(path)

    def test_a_footer_longer_than_the_file(self, tmp_path):
        (tmp_path / "run.parquet").write_bytes(b"PAR1" + bytes(8) + b"\xff\xff\xff\x7fPAR1")
        with pytest.raises(FormatError, match="damaged"):
            open_run(tmp_path / "run.parquet")

    def test_parquet_of_others(self, tmp_path):
        write_metadata(tmp_path / "x.parquet", {b"pandas": b"{}"})
        with pytest.raises(FormatError, match="not written by Mansard"):
            open_run(tmp_path / "x.parquet")

    def test_a_newer_format(self, tmp_path):
        newer = json.dumps({"format": "mansard-run/2", "sources": {"now": "a map"}})
        write_metadata(tmp_path / "x.parquet", {b"mansard": newer.encode()})
        with pytest.raises(FormatError, match="newer Mansard"):
            open_run(tmp_path / "x.parquet")

    @pytest.mark.parametrize(
        ("metadata", "told"),
        [
            (b"", "damaged"),
            (b"{", "damaged"),
            (b"\xff\xfe", "damaged"),
            (b"[]", "damaged"),
            (b"{}", "its format is ''"),
            (b'{"format": "other/1"}', "its format is 'other/1'"),
            (b'{"format": "mansard-run/x"}', "its format is 'mansard-run/x'"),
            (b'{"format": "mansard-run/1", "sources": 5}', "damaged"),
        ],
    )
    def test_metadata_that_nobody_wrote(self, tmp_path, metadata, told):
        write_metadata(tmp_path / "x.parquet", {b"mansard": metadata})
        with pytest.raises(FormatError, match=told):
            read_provenance(tmp_path / "x.parquet")


class TestFolder:
    """A folder of runs, one file a rank."""

    def test_files_come_in_the_order_of_their_numbers(self, tmp_path):
        for name in ("rank10", "rank2", "rank1"):
            write(tmp_path / f"{name}.parquet")
        (tmp_path / "notes.txt").write_text("x")
        run = open_run(tmp_path)
        assert [file.name for file in run.files] == [
            "rank1.parquet",
            "rank2.parquet",
            "rank10.parquet",
        ]
        assert run.label == tmp_path.name

    def test_unreadable_files_are_named_and_left_out(self, tmp_path):
        write(tmp_path / "a.parquet")
        (tmp_path / "b.parquet").write_bytes(b"PAR1 cut")
        write_metadata(tmp_path / "c.parquet", {})
        run = open_run(tmp_path)
        assert [file.name for file in run.files] == ["a.parquet"]
        assert run.partial
        assert [notice.code for notice in run.notices] == ["unreadable-file"] * 2
        assert "b.parquet is cut short" in run.notices[0].message

    def test_a_folder_without_runs(self, tmp_path):
        with pytest.raises(FormatError, match="holds no Parquet file"):
            open_run(tmp_path)
        (tmp_path / "b.parquet").write_bytes(b"PAR1 cut")
        with pytest.raises(FormatError, match=r"no file in .* is a run"):
            open_run(tmp_path)
