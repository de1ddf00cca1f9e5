"""CSV for spreadsheets and scripts."""

import csv
import io
import math

import pytest

from mansard.charts.csv_report import kernels_csv, roofs_csv
from mansard.charts.json_report import report_dict
from mansard.charts.scene import roofline_scene
from mansard.errors import UsageError


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_lines_end_as_the_standard_says(h200):
    text = kernels_csv(h200)
    assert text.endswith("\r\n")
    assert text.count("\r\n") == len(h200.kernels) + 1
    assert "\n" not in text.replace("\r\n", "")


def test_units_stand_in_the_header(h200):
    header = kernels_csv(h200).splitlines()[0].split(",")
    for name in ("duration_s", "flop_tensor_bf16", "op_tensor_int8", "bytes_dram", "flop_per_s"):
        assert name in header
    assert "intensity_dram_flop_per_byte" in header
    assert "floor_tensor_s" in header


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_a_name_is_never_a_formula(start, make_analysis, make_kernel):
    hostile = f"{start}cmd|' /C calc'!A0"
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel(hostile, short_name=hostile)])))
    assert row["name"] == f"'{hostile}"
    assert row["short_name"] == f"'{hostile}"


@pytest.mark.parametrize(
    "control", ["\0", "\x1b[31m", "\x07", "\x7f", "\x9b31m", "\u202e", "\u2066"]
)
def test_terminal_escapes_and_turned_text_do_not_reach_a_cell(control, make_analysis, make_kernel):
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel(f"a{control}b")])))
    assert row["name"] == f"a\ufffd{control[1:]}b"


def test_a_control_in_front_of_a_formula_leaves_no_formula(make_analysis, make_kernel):
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel("\x1b=1+1")])))
    assert row["name"] == "\ufffd=1+1"


def test_a_name_of_10_mb_is_cut_in_its_middle_and_that_is_said(make_analysis, make_kernel):
    name = "<head" + 10_000_000 * "x" + "tail>"
    analysis = make_analysis([make_kernel(name, short_name="k")])
    text = kernels_csv(analysis)
    assert len(text) < 32_767
    (row,) = rows_of(text)
    assert row["name"].startswith("<headxxx")
    assert row["name"].endswith("xxxtail>")
    # 5 + 10,000,000 + 5 letters, of which 20,000 and 9,000 are kept.
    assert "9971010 letters left out here; the JSON report has them all" in row["name"]
    assert report_dict(analysis)["kernels"][0]["name"] == name


def test_a_name_that_fits_is_whole(make_analysis, make_kernel):
    name = 30_000 * "\U0001f600"
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel(name)])))
    assert row["name"] == name


def test_a_negative_number_stays_a_number(make_analysis, make_kernel):
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel("k", op_int=-5)])))
    assert row["op_int"] == "-5"


def test_quotes_commas_and_line_ends_come_back(make_analysis, make_kernel):
    name = 'void k<a, b>("x")\nnext'
    (row,) = rows_of(kernels_csv(make_analysis([make_kernel(name)])))
    assert row["name"] == name


def test_unknown_is_empty_and_zero_is_zero(make_analysis, make_kernel):
    kernel = make_kernel(
        "k", flop={"tensor bf16": 0.0}, moved={"dram": None, "l2": math.nan}, duration_s=None
    )
    (row,) = rows_of(kernels_csv(make_analysis([kernel])))
    assert row["flop"] == "0"
    assert row["bytes_dram"] == ""
    assert row["bytes_l2"] == ""
    assert row["duration_s"] == ""
    assert row["flop_per_s"] == ""


def test_a_whole_number_has_no_exponent(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 17179869184.0})
    (row,) = rows_of(kernels_csv(make_analysis([kernel])))
    assert row["flop_tensor_bf16"] == "17179869184"


@pytest.mark.parametrize("by", ["family", "phase", "rank"])
def test_rows_can_be_families_phases_or_ranks(by, v100_two_phases):
    rows = rows_of(kernels_csv(v100_two_phases, by=by))
    assert sum(int(row["launches"]) for row in rows) == 832
    assert by in rows[0]


def test_rows_by_anything_else_are_refused_with_the_choices(h200):
    with pytest.raises(UsageError, match="no rows by 'op': choose one of kernel, family"):
        kernels_csv(h200, by="op")


def test_the_exported_points_are_the_plotted_points(h200):
    numbers = {row["number"]: row for row in rows_of(kernels_csv(h200))}
    points = roofline_scene(h200).points
    assert points
    for point in points:
        row = numbers[str(point.number)]
        x = float(row[f"intensity_{point.level}_flop_per_byte"])
        assert x == pytest.approx(point.intensity, rel=1e-15)
        assert float(row["flop_per_s"]) == pytest.approx(point.flop_per_s, rel=1e-15)


def test_the_exported_roofs_are_the_plotted_roofs(h200):
    rows = rows_of(roofs_csv(h200))
    drawn = roofline_scene(h200).roofs
    assert [row["name"] for row in rows] == [roof.name for roof in drawn]
    for row, roof in zip(rows, drawn, strict=True):
        ends = [float(row[key]) for key in ("start_flop_per_byte", "start_flop_per_s")]
        ends += [float(row[key]) for key in ("end_flop_per_byte", "end_flop_per_s")]
        assert ends == [*roof.start, *roof.end]
        if roof.kind == "bandwidth":
            assert ends[1] == pytest.approx(float(row["byte_per_s"]) * ends[0])
        else:
            assert ends[1] == ends[3] == float(row["flop_per_s"])


def test_without_a_machine_there_are_no_roofs(make_analysis, make_kernel):
    assert rows_of(roofs_csv(make_analysis([make_kernel("k")]))) == []
