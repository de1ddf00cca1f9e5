"""The paper's conclusions beside the runs that lie in the repository."""

import re
from pathlib import Path

import pytest

from mansard.study import sections_census, sections_flop, sections_paper, sections_ways
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


@pytest.fixture(scope="module")
def counted(study):
    """The tables on counted work, by a column that only they have."""
    tables = [block for block in sections_flop.flop_check(study) if isinstance(block, Table)]
    names = ("analytic", "compared", "layer")
    return {name: next(table for table in tables if name in table.head) for name in names}


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


def test_counted_work_is_that_of_the_layers_within_two_percent_where_nothing_is_padded_or_masked(
    study,
):
    # Worked out from the shapes alone; the counters are NVIDIA's. The paper's network has a few
    # layers more of which each pads too little to be named.
    limits = {
        "deeplab-resnet50": 0.021,
        "deeplab-xception": 0.023,
        "transformer-train": 0.01,
        "transformer-prefill": 0.01,
        "transformer-decode": 0.01,
    }
    parts = [
        (value, limits[entry.cell.configuration.model])
        for entry in study.measured
        if entry.cell.configuration.model in limits
        for _, value in sections_flop.outside_the_named(entry)
    ]
    assert len(parts) >= 30
    assert all(0 <= value < limit for value, limit in parts)


def test_the_728_channels_of_the_papers_network_are_computed_as_768(counted):
    table = counted["layer"]
    equal = [row for row in table.rows if row[0] == "encoder.entry.1.body.6.1 and 49 more"]
    forward = next(row for row in equal if row[1] == "forward")
    assert forward[3:6] == ("7.33 GFLOP", "7.73 GFLOP", "1.05 x")  # 768 / 728 = 1.055


def test_layers_that_the_vector_pipes_computed_are_left_out_and_counted(counted):
    table = counted["compared"]
    rows = {row[:2]: row[2:4] for row in table.rows}
    # 67 layers; to_pixels.3, to three channels, has no tensor work in the forward pass.
    cell = "ResNet-50 PyTorch tf32 nchw adam-fused eager"
    assert rows[cell, "forward"] == ("66", "1")


def test_an_inference_has_no_backward_pass(counted):
    table = counted["compared"]
    assert {row[1] for row in table.rows if row[0].startswith(("decode", "prefill"))} == {"forward"}


def test_a_convolution_to_three_channels_is_computed_for_64(counted):
    table = counted["layer"]
    last = [row for row in table.rows if row[:2] == ("to_pixels.3", "forward")]
    assert {row[5] for row in last} == {"21.33 x"}  # 64 / 3


def test_equal_products_of_many_layers_are_one_row(counted):
    attention = [row for row in counted["layer"].rows if "attention" in row[0]]
    # In each of 16 blocks, causal masks, and one query of a sequence in a tile of 16.
    assert [(row[0], row[5]) for row in attention] == [
        ("blocks.0.mix.attention and 15 more", "0.53 x"),
        ("blocks.15.mix.attention and 15 more", "0.53 x"),
        ("blocks.0.mix.attention and 15 more", "16.00 x"),
    ]


def test_attention_leaves_out_exactly_the_tiles_behind_its_causal_mask(study):
    entry = study.entry(
        next(e.cell.name for e in study.entries if "train_torch_bf16" in e.cell.name)
    )
    found = [
        product.launch.flop / product.flop
        for each in sections_flop._matches(entry)
        for product in each.products
        if product.layer.kind == "attention"
    ]
    # 2048 tokens are 16 tiles of 128: 16 * 17 / 2 of 16 * 16 tiles lie on or below the diagonal.
    assert found == [pytest.approx(136 / 256)] * 32


def test_launches_without_work_are_judged_by_the_papers_rule(found):
    assert found["zero-launches"][3].startswith("95 (15.7 %) forward, 41 (4.9 %) backward; with")
    assert found["zero-launches"][5] == "no"


def test_a_whole_pass_is_held_against_the_roof_with_all_of_its_work_as_in_the_paper(study, found):
    entry = study.entry(
        next(e.cell.name for e in study.entries if "xception_torch_amp" in e.cell.name)
    )
    forward = entry.phase("forward")
    assert found["tensor-share"][3].startswith(f"{forward.flop_per_s / 1e12:.0f} TFLOP/s, ")


@pytest.fixture(scope="module")
def census(study):
    (table,) = (each for each in sections_census.census(study) if isinstance(each, Table))
    return {row[:2]: row[2:] for row in table.rows}


def test_casts_to_16_bits_are_no_work_though_a_few_instructions_were_counted(census):
    # 95 of kernels with no work, 149 casts, and one product with a scalar.
    found = census["Xception PyTorch amp-fp16 nchw adam-loop eager", "forward"]
    assert found[:2] == ("606", "95 (15.7 %)")
    assert found[3] == "245 (40.4 %)"


def test_a_graph_has_no_census(census):
    assert not [cell for cell, _ in census if "graph" in cell]


def test_the_papers_phases_stand_above_those_here(census):
    assert census["V100, PyTorch O1", "forward"][1] == "437 (54.8 %)"
    assert next(iter(census))[0].startswith("V100")


def test_the_layers_of_keras_are_named_with_their_time(study):
    blocks = list(sections_ways.frameworks(study))
    (table,) = (b for b in blocks if isinstance(b, Table) and b.head[0] == "layer")
    # 64 of them, 42 launches each; the counter of one layer is worked out by the collector.
    assert table.rows[0][:2] == ("BatchNormalization", "2688")


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
