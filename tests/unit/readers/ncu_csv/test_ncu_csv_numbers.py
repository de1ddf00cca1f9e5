"""Numbers in every spelling and unit."""

import math

import csv_writer as w
import pytest

from mansard.engine import connect
from mansard.readers.ncu_csv.numbers import Convention, Evidence, evidence_sql, number_sql, si_terms


def _page(values, unit="byte"):
    return w.long_page(
        [w.cell(w.BYTES, value, unit, id=str(number)) for number, value in enumerate(values)]
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("7", 7),
        ("1,234,567", 1234567),
        ("516,327,794,816", 516327794816),
        ("49,398,007,062.67", 49398007062.67),
        ("1,234.5", 1234.5),
        ("1234567", 1234567),
        ("12.455812", 12.455812),
        ("0.123", 0.123),
        ("1e+06", 1e6),
        ("1.5E-3", 1.5e-3),
        ("+5", 5),
        (".5", 0.5),
        ("5.", 5),
        ("", None),
        ("nan", None),
        ("-nan", None),
        ("n/a", None),
        ("N/A", None),
        ("CachePreferNone", None),
        ("(128, 1, 1)", None),
        ("0x10", None),
        ("9" * 400, None),
    ],
)
def test_a_value_is_read_as_a_person_reads_it_b16(read, text, value):
    found = read(_page([text, "1", "n/a"]))
    assert found.values(w.BYTES) == [value, 1, None]


def test_infinity_is_unknown_and_said_b16(read):
    found = read(_page(["1", "inf"]))
    assert found.values(w.BYTES) == [1, None]
    assert "dram__bytes.sum is inf in launch 1" in found.notice("counts-absurd").message


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["27.595.520", "65,77", "117.344"], [27595520, 65.77, 117344]),
        (["1.234,5", "1.234"], [1234.5, 1234]),
        (["0,5", "1.234"], [0.5, 1234]),
        (["12,455812", "1.234"], [12.455812, 1234]),
        (["1,5e+06", "1.234"], [1.5e6, 1234]),
        (["27,595,520", "65.77", "117,344"], [27595520, 65.77, 117344]),
        (["1,234.5", "1,234"], [1234.5, 1234]),
        (["1 234", "1 234 567,5", "0,25"], [1234, 1234567.5, 0.25]),
        (["1\u202f234", "1\u00a0234\u00a0567.5"], [1234, 1234567.5]),
        (["1'234", "1\u2019234\u2019567.5"], [1234, 1234567.5]),
        (["1,67,91,918", "12,34,567.25"], [16791918, 1234567.25]),
    ],
)
def test_the_decimal_sign_is_decided_once_for_the_whole_file_b16(read, texts, values):
    found = read(_page(texts))
    assert found.values(w.BYTES) == values
    assert found.codes == []


def test_without_evidence_commas_group_thousands_and_the_point_is_decimal_b16(read):
    assert read(_page(["117.344", "1,234"])).values(w.BYTES) == [117.344, 1234]


def test_evidence_at_the_very_end_of_a_file_counts_for_its_beginning(read):
    values = ["117.344"] * 5000 + ["65,77"]
    assert read(_page(values)).values(w.BYTES)[0] == 117344


def test_evidence_in_one_profile_counts_for_the_one_appended_to_it(read):
    wide = w.wide_page([w.launch(**{w.BYTES: "117.344"})], {w.BYTES: "byte"})
    assert read(wide + _page(["65,77"])).values(w.BYTES) == [117344, 65.77]


def test_a_compute_capability_is_no_evidence_of_a_decimal_point(read):
    wide = w.wide_page([w.launch(**{w.BYTES: "65,77"})] * 3, {w.BYTES: "byte"})
    assert read(wide).values(w.BYTES) == [65.77] * 3


@pytest.mark.parametrize("page", ["long", "wide"])
def test_a_number_written_unlike_the_others_is_unknown_and_said(read, page):
    texts = ["65.77", "1,234.5", "65,77"]
    if page == "long":
        found = read(_page(texts))
    else:
        launches = [w.launch(id=str(i), **{w.BYTES: text}) for i, text in enumerate(texts)]
        found = read(w.wide_page(launches, {w.BYTES: "byte"}))
    assert found.values(w.BYTES) == [65.77, 1234.5, None]
    notice = found.notice("numbers-unread")
    assert notice.partial
    assert "1 numbers such as 65,77" in notice.message


@pytest.mark.parametrize("page", ["long", "wide"])
def test_values_of_instances_behind_a_value_are_left_out(read, page):
    texts = ["1,234 (12; 34)", "5", "6,000.50 (1.5; 2)"]
    if page == "long":
        found = read(_page(texts))
    else:
        launches = [w.launch(id=str(i), **{w.BYTES: text}) for i, text in enumerate(texts)]
        found = read(w.wide_page(launches, {w.BYTES: "byte"}))
    assert found.values(w.BYTES) == [1234, 5, 6000.5]


UNITS = [
    ("byte", 1),
    ("Kbyte", 1e3),
    ("Mbyte", 1e6),
    ("Gbyte", 1e9),
    ("Tbyte", 1e12),
    ("byte/second", 1),
    ("Gbyte/second", 1e9),
    ("Gbyte/s", 1e9),
    ("Kbyte/block", 1e3),
    ("cycle/second", 1),
    ("cycle/nsecond", 1e9),
    ("hz", 1),
    ("Mhz", 1e6),
    ("Ghz", 1e9),
    ("inst/cycle", 1),
    ("nsecond", 1e-9),
    ("ns", 1e-9),
    ("usecond", 1e-6),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("msecond", 1e-3),
    ("s", 1),
    ("second", 1),
    ("%", 1),
    ("", 1),
    ("register/thread", 1),
]


@pytest.mark.parametrize(("unit", "factor"), UNITS)
def test_units_become_si_in_both_pages_and_percent_stays_b17(read, unit, factor):
    expected = 2.5 / round(1 / factor) if factor < 1 else 2.5 * factor
    assert read(_page(["2.50"], unit)).values(w.BYTES) == [expected]
    wide = w.wide_page([w.launch(**{w.BYTES: "2.50"})], {w.BYTES: unit})
    assert read(wide).values(w.BYTES) == [expected]


def test_the_same_bytes_in_four_units_are_equal_b17(read):
    page = w.long_page(
        [
            w.cell(w.BYTES, "2,500,000,000", "byte", id="0"),
            w.cell(w.BYTES, "2,500,000", "Kbyte", id="1"),
            w.cell(w.BYTES, "2,500", "Mbyte", id="2"),
            w.cell(w.BYTES, "2.50", "Gbyte", id="3"),
        ]
    )
    assert read(page).values(w.BYTES) == [2.5e9] * 4


def test_nanoseconds_are_exact(read):
    assert read(_page(["300,000"], "ns")).values(w.BYTES) == [0.0003]
    assert si_terms(1e-9) == (1.0, 1e9)
    assert si_terms(1e9) == (1e9, 1.0)


@pytest.mark.parametrize("page", ["long", "wide"])
@pytest.mark.parametrize("bad", ["-5", "-0.5", "1e+25", "-inf"])
def test_a_negative_or_absurd_count_becomes_unknown_and_is_named(read, page, bad):
    texts = ["10", bad, "20"]
    if page == "long":
        found = read(_page(texts))
    else:
        launches = [w.launch(id=str(i), **{w.BYTES: text}) for i, text in enumerate(texts)]
        found = read(w.wide_page(launches, {w.BYTES: "byte"}))
    assert found.values(w.BYTES) == [10, None, 20]
    message = found.notice("counts-absurd").message
    assert f"{w.BYTES} is {float(bad):g} in launch 1 (void kernel<float>(float *))" in message
    assert "more values" not in message


def test_many_absurd_counts_make_one_notice_with_their_number(read):
    cells = [w.cell(name, "-1", id=str(i)) for i in range(5) for name in (w.BYTES, w.TIME)]
    found = read(w.long_page(cells))
    assert found.codes == ["counts-absurd"]
    assert "9 more values" in found.notice("counts-absurd").message
    assert found.values(w.TIME) == [None] * 5


def test_zero_is_zero_and_not_unknown(read):
    assert read(_page(["0", "0.00", "-0"])).values(w.BYTES) == [0, 0, 0]


def test_a_metric_without_a_value_in_one_launch_is_null_there_b16(read):
    page = w.long_page(
        [
            w.cell(w.BYTES, "10", "byte", id="0"),
            w.cell(w.TIME, "1", "ms", id="0"),
            w.cell(w.BYTES, "20", "byte", id="1"),
            w.cell(w.BYTES, "n/a", "", id="2"),
            w.cell(w.TIME, "3", "ms", id="2"),
        ]
    )
    found = read(page)
    assert found.values(w.BYTES) == [10, 20, None]
    assert found.values(w.TIME) == [0.001, None, 0.003]


def test_a_counter_that_the_chip_lacks_stays_as_unknown_and_text_is_dropped(read):
    wide = w.wide_page(
        [
            w.launch(
                **{w.BYTES: "n/a", "launch__func_cache_config": "CachePreferNone", w.TIME: ""}
            ),
            w.launch(id="1", **{w.BYTES: "n/a", "launch__func_cache_config": "CachePreferNone"}),
        ],
        {w.BYTES: "", "launch__func_cache_config": "", w.TIME: "ns", w.INSTRUCTIONS: "inst"},
    )
    long = w.long_page(
        [
            w.cell(w.BYTES, "n/a"),
            w.cell("launch__func_cache_config", "CachePreferNone"),
            w.cell(w.TIME, "", "ns"),
        ]
    )
    for page in (wide, long):
        found = read(page)
        assert found.capture.counters == (w.BYTES,)
        assert set(found.values(w.BYTES)) == {None}


def test_each_side_of_the_evidence_is_counted_by_rows():
    rows = ["65.77", "1,234.5", "27,595,520", "65,77", "1.234,5", "117.344", "1,234", "7", "CC 9.0"]
    values = ", ".join(f"('|{row}|')" for row in rows)
    with connect(threads=1) as engine:
        row = engine.execute(
            f"SELECT {evidence_sql('cells')} FROM (VALUES {values}) AS t(cells)"
        ).fetchone()
    assert row == (3, 2, 0)
    assert Evidence(*row).convention() == Convention(".", mixed=True)
    assert Evidence(1, 2, 0).convention() == Convention(",", mixed=True)
    assert Evidence(0, 2, 0).convention() == Convention(",")
    assert Evidence().convention() == Convention(".")


def test_a_text_that_only_python_or_sql_would_take_for_a_number_is_none():
    texts = ["0x1F", "true", "infinity!", "1..2", "--1", "1e", "1 2", "\u0661\u0662"]
    values = ", ".join(f"('{text}')" for text in texts)
    with connect(threads=1) as engine:
        for convention in (
            Convention("."),
            Convention(",", mixed=True),
            Convention(".", mixed=True),
        ):
            found = engine.execute(
                f"SELECT {number_sql('x', convention)} FROM (VALUES {values}) AS t(x)"
            ).fetchall()
            numbers = [row[0] for row in found if row[0] is not None]
            # Spaces between digits group them where the file does that.
            assert [n for n in numbers if math.isfinite(n) and n != 12.0] == []
