"""The paper's conclusions beside the runs that lie in the repository."""

import re
from pathlib import Path

import pytest

from mansard.study import sections_flop, sections_paper
from mansard.study.blocks import Table
from mansard.study.gather import gather
from mansard.study.sections_paper import against_conclusions, conclusions

#: Numbers of the page that the report has otherwise: limits, and one of a table cut short.
ROUNDED = {"1 %"}

STUDY = Path(__file__).parents[3] / "studies" / "deepcam"


@pytest.fixture(scope="module")
def study():
    return gather(STUDY)


@pytest.fixture(scope="module")
def found(study):
    (table,) = (block for block in against_conclusions(study) if isinstance(block, Table))
    return dict(zip((each.key for each in conclusions()), table.rows, strict=True))


def test_each_conclusion_has_one_rule():
    keys = [each.key for each in conclusions()]
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(sections_paper._RULES)


def test_each_conclusion_is_answered_from_a_run(found):
    assert {row[5] for row in found.values()} <= {"yes", "no"}
    assert all(row[4] for row in found.values())


def test_the_optimizer_has_no_launch_without_floating_point_work(found):
    assert found["optimizer-zero"][3].startswith("0 of ")
    assert found["optimizer-zero"][5] == "yes"


def test_a_study_of_which_nothing_was_run_concludes_nothing(tmp_path):
    (table,) = (b for b in against_conclusions(gather(tmp_path)) if isinstance(b, Table))
    assert {row[3:] for row in table.rows} == {("not measured yet", "", "")}


def test_counted_work_is_that_of_the_layers_within_two_percent_where_nothing_is_padded(study):
    # Worked out from the shapes alone; the counters are NVIDIA's.
    networks = [e for e in study.measured if e.cell.configuration.model.startswith("deeplab")]
    parts = [part for entry in networks for part in sections_flop.outside_the_named(entry)]
    assert len(parts) >= 4
    assert all(0 <= value < 0.02 for _, value in parts)


def test_a_convolution_to_three_channels_is_computed_for_64(study):
    (table,) = (
        block
        for block in sections_flop.flop_check(study)
        if isinstance(block, Table) and block.head[0] == "layer"
    )
    last = [row for row in table.rows if row[:2] == ("to_pixels.3", "forward")]
    assert {row[5] for row in last} == {"21.33 x"}  # 64 / 3


def test_equal_products_of_many_layers_are_one_row(study):
    tables = [block for block in sections_flop.flop_check(study) if isinstance(block, Table)]
    attention = [row for row in tables[-1].rows if "attention" in row[0]]
    # One query of a sequence in a tile of 16, in each of 16 blocks.
    assert [(row[0], row[5]) for row in attention] == [
        ("blocks.0.mix.attention and 15 more", "16.00 x")
    ]


NUMBER = re.compile(
    r"(?<![\w.,])[+-]?\d[\d.,]*\s(?:ms|us|x(?! \d)|J|mJ|W|%|GFLOP|TFLOP|TFLOP/s)(?![\w/])"
)


def test_every_number_of_the_page_is_in_the_report():
    page, report = (
        (STUDY / name).read_text(encoding="utf-8") for name in ("README.md", "report.md")
    )
    found = {" ".join(each.split()) for each in NUMBER.findall(page)}
    assert len(found) > 40
    missing = {each for each in found if not re.search(rf"(?<![\d.,]){re.escape(each)}", report)}
    assert missing <= ROUNDED
