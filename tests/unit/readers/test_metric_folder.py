"""One file per metric, each from its own run of the program."""

import sys
from pathlib import Path

import pytest

from mansard.engine import connect
from mansard.errors import FormatError, InputError
from mansard.readers.metric_folder import is_metric_folder, read_metric_folder

DATA = Path(__file__).parents[2] / "data" / "ncu_csv"
if str(DATA) not in sys.path:
    sys.path.append(str(DATA))

import csv_writer as w  # noqa: E402

OTHER = "lts__t_bytes.sum"


@pytest.fixture(scope="module")
def engine():
    with connect(threads=1) as connection:
        yield connection


@pytest.fixture
def folder(tmp_path, engine):
    """Write files from lists of (name, value) per metric, and read them as one."""

    class Folder:
        def __init__(self):
            self.files = []

        def add(self, metric, launches, unit="", process="1", **fields):
            cells = [
                w.cell(metric, str(value), unit, id=str(i), name=name, process=process, **fields)
                for i, (name, value) in enumerate(launches)
            ]
            self.write(f"{metric}.txt", "program output\n" + w.long_page(cells))

        def write(self, name, text):
            path = tmp_path / name
            path.write_text(text)
            self.files.append(path)

        def read(self):
            engine.execute("DROP TABLE IF EXISTS launches")
            capture = read_metric_folder(self.files, engine, "launches")
            found = engine.execute("SELECT * FROM launches ORDER BY row")
            names = [entry[0] for entry in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            left = engine.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            assert left == [("launches",)]
            return capture, rows

    return Folder()


def _table(rows, *metrics):
    return [(row["name"], *(row[f"counter.{metric}"] for metric in metrics)) for row in rows]


def _codes(capture):
    return [notice.code for notice in capture.provenance.notices]


def test_runs_with_the_same_kernels_in_the_same_order_are_joined_by_order(folder):
    folder.add(w.BYTES, [("a", 1), ("b", 2), ("a", 3)], "Kbyte", process="11")
    folder.add(w.TIME, [("a", 4), ("b", 5), ("a", 6)], "us", process="22")
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, w.TIME) == [("a", 1e3, 4e-6), ("b", 2e3, 5e-6), ("a", 3e3, 6e-6)]
    assert capture.provenance.join.startswith("by launch order")
    assert capture.counters == (w.BYTES, w.TIME)
    assert capture.provenance.sources == (f"{w.BYTES}.txt", f"{w.TIME}.txt")
    assert capture.provenance.extra == {"skipped_lines": "2"}
    assert [row["row"] for row in rows] == [0, 1, 2]
    # What is not a counter comes from the first file.
    assert {row["process"] for row in rows} == {11}
    assert _codes(capture) == []


def test_runs_in_another_order_are_joined_by_name_and_occurrence(folder):
    folder.add(w.BYTES, [("a", 1), ("b", 2), ("a", 3)])
    folder.add(OTHER, [("b", 20), ("a", 10), ("a", 30)])
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [("a", 1, 10), ("b", 2, 20), ("a", 3, 30)]
    assert "name" in capture.provenance.join
    assert "occurrence" in capture.provenance.join
    assert _codes(capture) == []


def test_launches_of_one_name_with_other_shapes_are_not_mixed_up(folder):
    for metric, order in ((w.BYTES, ("1", "2")), (OTHER, ("2", "1"))):
        cells = [
            w.cell(metric, x, id=str(i), name="a", grid=f"({x}, 1, 1)") for i, x in enumerate(order)
        ]
        folder.write(f"{metric}.csv", w.long_page(cells))
    capture, rows = folder.read()
    assert [(row["grid_x"], *_table([row], w.BYTES, OTHER)[0]) for row in rows] == [
        (1, "a", 1, 1),
        (2, "a", 2, 2),
    ]
    assert "grid" in capture.provenance.join


def test_counts_that_differ_leave_unknowns_and_are_said(folder):
    folder.add(w.BYTES, [("a", 1), ("b", 2), ("a", 3)])
    folder.add(OTHER, [("a", 10), ("c", 30)])
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [
        ("a", 1, 10),
        ("b", 2, None),
        ("a", 3, None),
        ("c", None, 30),
    ]
    notice = next(n for n in capture.provenance.notices if n.code == "launch-counts-differ")
    assert notice.partial
    assert "3 kernels" in notice.message
    assert "a (1 to 2)" in notice.message
    assert "c (0 to 1)" in notice.message


def test_a_file_with_one_launch_more_at_its_end_is_not_joined_by_order(folder):
    folder.add(w.BYTES, [("a", 1)])
    folder.add(OTHER, [("a", 10), ("a", 20)])
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [("a", 1, 10), ("a", None, 20)]
    assert not capture.provenance.join.startswith("by launch order")


def test_files_that_are_not_from_ncu_are_left_out_with_a_notice(folder):
    folder.add(w.BYTES, [("a", 1)])
    folder.write("authors-table.csv", "Kernel Name,dram__bytes.sum,Count\na,1,1\n")
    folder.add(OTHER, [("a", 2)])
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [("a", 1, 2)]
    (notice,) = capture.provenance.notices
    assert notice.code == "file-skipped"
    assert "authors-table.csv" in notice.message
    assert not notice.partial


def test_a_run_that_failed_makes_the_whole_partial(folder):
    folder.add(w.BYTES, [("a", 1)])
    folder.write("failed.txt", "==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    capture, _ = folder.read()
    (notice,) = capture.provenance.notices
    assert notice.partial
    assert "administrator" in notice.message


def test_nothing_usable_is_the_error_of_the_first_file(folder, engine):
    folder.write("a.txt", "==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    folder.write("b.txt", "nothing\n")
    with pytest.raises(InputError, match=r"a.txt holds no launches"):
        folder.read()
    with pytest.raises(FormatError):
        read_metric_folder([], engine, "nothing")


def test_a_metric_in_two_files_counts_once_and_is_said(folder):
    folder.add(w.BYTES, [("a", 1)])
    folder.write(
        "again.txt", w.long_page([w.cell(w.BYTES, "7", name="a"), w.cell(OTHER, "2", name="a")])
    )
    capture, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [("a", 1, 2)]
    assert _codes(capture) == ["metric-in-two-files"]


def test_conditions_are_said_only_where_all_files_share_them(folder):
    cold = "==WARNING== Note: Running with uncontrolled GPU caches. Results may be inconsistent.\n"
    folder.write("a.txt", cold + w.long_page([w.cell(w.BYTES, "1")]))
    folder.write("b.txt", w.long_page([w.cell(OTHER, "2")]))
    assert folder.read()[0].provenance.cache_control is None
    folder.write("b.txt", cold + w.long_page([w.cell(OTHER, "2")]))
    folder.files.pop()
    assert folder.read()[0].provenance.cache_control == "none"


def test_disjoint_metrics_are_a_metric_folder_and_equal_ones_are_ranks(folder):
    folder.add(w.BYTES, [("a", 1)])
    assert not is_metric_folder(folder.files)
    folder.add(OTHER, [("a", 1)])
    assert is_metric_folder(folder.files)
    folder.write("authors-table.csv", "Kernel Name,dram__bytes.sum,Count\na,1,1\n")
    folder.write("notes.md", "# notes\n")
    assert is_metric_folder(folder.files)
    folder.write("rank1.csv", w.long_page([w.cell(w.BYTES, "1", process="2")]))
    assert not is_metric_folder(folder.files)


def test_raw_pages_are_told_apart_by_what_was_asked_for(folder):
    def page(metric):
        facts = {"launch__grid_dim_x": "1", "device__attribute_warp_size": "32"}
        return w.wide_page(
            [w.launch(**facts, **{metric: "1"})], {**dict.fromkeys(facts, ""), metric: ""}
        )

    folder.write("a.csv", page(w.BYTES))
    folder.write("b.csv", page(OTHER))
    assert is_metric_folder(folder.files)
    assert not is_metric_folder([folder.files[0], folder.files[0]])


def test_a_header_without_rows_does_not_make_a_metric_folder(folder):
    folder.write("a.csv", w.long_page([]))
    folder.write("b.csv", w.long_page([]))
    assert not is_metric_folder(folder.files)


def test_hostile_names_join_like_any_other(folder):
    hostile = "void f<\"a\", 'b'>(int); DROP TABLE x --\n<script>"
    folder.add(w.BYTES, [(hostile, 1), ("b", 2)])
    folder.add(OTHER, [("b", 20), (hostile, 10)])
    _, rows = folder.read()
    assert _table(rows, w.BYTES, OTHER) == [(hostile, 1, 10), ("b", 2, 20)]
