"""Names from outside reach the report as text, whatever they hold."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.study.bars import Bar, bars_svg
from mansard.study.blocks import Figure, Heading, Items, Paragraph, Table
from mansard.study.markdown import markdown
from mansard.study.page import page

EVIL = "<script>alert(1)</script> | [x](y) `c` & @me *b*\x1b[31m\n# h"


@pytest.mark.parametrize(
    "block",
    [
        Heading(EVIL),
        Paragraph(EVIL),
        Items((EVIL,)),
        Table(("a", "b"), ((EVIL, EVIL),)),
        Figure("charts/none.png", EVIL),
    ],
    ids=["heading", "paragraph", "list", "table", "picture"],
)
def test_no_markup_of_a_name_survives(tmp_path, block):
    text, html = markdown([block]), page([block], tmp_path)
    for found in (text, html):
        assert "<script" not in found
        assert "\x1b" not in found
        assert "\n# h" not in found
    assert "[x](y)" not in text
    assert "| [" not in text
    assert "@me" not in text


def test_a_bar_in_a_name_adds_no_column():
    line = markdown([Table(("a", "b"), (("x|y", "z"),))]).splitlines()[-1]
    assert line == r"| x\|y | z |"


def test_numbers_stand_on_the_right():
    text = markdown([Table(("a", "b", "c"), (("x", "y", "1"),), words=2)])
    assert text.splitlines()[1] == "| --- | --- | --: |"


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="not as many entries"):
        Table(("a", "b"), (("x",),))


def test_a_name_that_leads_several_rows_stands_once(tmp_path):
    rows = (("x", "one", "1"), ("x", "two", "2"), ("y", "one", "3"))
    text = page([Table(("a", "b", "c"), rows, words=2)], tmp_path)
    assert text.count('rowspan="2">x<') == 1
    assert text.count('rowspan="1">y<') == 1
    assert [text.count(f">{number}<") for number in (1, 2, 3)] == [1, 1, 1]


def test_the_name_of_a_row_stays_in_sight_and_nothing_else_does(tmp_path):
    rows = (("x", "one", "1"), ("x", "two", "2"))
    for words in (1, 2):
        text = page([Table(("a", "b", "c"), rows, words=words)], tmp_path)
        kept = re.findall(r'<t[hd] class="w n"[^>]*>([^<]*)<', text)
        assert kept == ["a", "x", "x"][: 4 - words]  # of two rows with one name, it stands once


def test_a_picture_that_is_missing_is_said_to_be(tmp_path):
    assert "is missing" in page([Figure("charts/no.png", "a chart")], tmp_path)


def test_a_picture_outside_the_known_kinds_is_not_read(tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    assert "base64" not in page([Figure("secret.txt", "a chart")], tmp_path)


def test_the_page_loads_nothing(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>", encoding="utf-8")
    text = page([Heading("t", 1), Figure("a.svg", "bars")], tmp_path)
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text
    assert "<script" not in text


def test_the_longest_bar_fills_the_width_and_others_follow():
    root = ET.fromstring(bars_svg("t", [Bar("a", 4.0, "4"), Bar("b", 1.0, "1"), Bar("c", 0, "0")]))
    widths = [float(r.get("width")) for r in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == [widths[0], widths[0] / 4, 0.0]


def test_a_label_of_any_length_lies_inside_the_picture():
    long = "ResNet-50 Keras/TensorFlow amp-bf16 nhwc keras-adam xla-gradients"
    root = ET.fromstring(bars_svg("t", [Bar("a", 1.0, "1"), Bar(long, 1.0, "1")]))
    (label,) = (each for each in root.iter() if each.text == long)
    # It ends at its x; a wide sans-serif letter of size 12 takes up to 7 on average.
    assert float(label.get("x")) >= 7 * len(long)


def test_a_bar_in_two_parts_shows_both_and_one_not_known_is_an_outline():
    bars = [Bar("half", 2.0, "2", dark=0.5), Bar("unknown", 2.0, "2", dark=None)]
    root = ET.fromstring(bars_svg("t", bars, "how to read"))
    boxes = [each for each in root.iter() if each.tag.endswith("rect")][1:]
    assert [float(box.get("width")) for box in boxes] == [380.0, 190.0, 380.0]
    assert boxes[2].get("fill") == "none"
    assert boxes[2].get("stroke-dasharray")
    assert "how to read" in [each.text for each in root.iter()]


def test_a_gap_stands_between_groups_of_bars_and_the_picture_holds_them_all():
    bars = [Bar("a", 1.0, "1", group="x"), Bar("b", 1.0, "1", group="x"), Bar("c", 1.0, "1")]
    root = ET.fromstring(bars_svg("t", bars))
    whole, *boxes = (each for each in root.iter() if each.tag.endswith("rect"))
    tops = [float(box.get("y")) for box in boxes]
    assert tops[2] - tops[1] > tops[1] - tops[0]
    assert tops[2] + float(boxes[2].get("height")) < float(whole.get("height"))


def test_no_bars_and_bars_of_nothing_are_pictures_too():
    for bars in ([], [Bar("a", 0.0, "0")]):
        ET.fromstring(bars_svg("t", bars))


def test_a_negative_bar_is_refused():
    with pytest.raises(ValueError, match="negative"):
        bars_svg("t", [Bar("a", -1.0, "")])


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_name_makes_a_table_of_two_columns(name):
    line = markdown([Table(("a", "b"), ((name, "z"),))]).split("\n")[2]
    assert line.replace("\\\\", "").replace(r"\|", "").count("|") == 3


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_label_makes_a_picture(name):
    ET.fromstring(bars_svg(name, [Bar(name, 1.0, name)]))
