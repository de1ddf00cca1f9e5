"""Which cells the study has, in which order."""

import dataclasses
import re
from pathlib import Path

import pytest

from mansard.errors import UsageError
from mansard.study.pairs import pairs
from mansard.study.plan import chosen, deepcam

ADVICE = Path(__file__).parents[3] / "docs" / "advice.md"
CELLS = deepcam("cuda:0")
BY_NAME = {cell.name: cell.configuration for cell in CELLS}


def values(field, **wanted):
    return {
        getattr(c, field)
        for c in BY_NAME.values()
        if all(getattr(c, key) == value for key, value in wanted.items())
    }


def test_no_two_cells_have_the_same_name():
    assert len(BY_NAME) == len(CELLS)


def test_no_two_cells_have_the_same_title():
    assert len({cell.title for cell in CELLS}) == len(CELLS)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_resnet_runs_in_four_precisions(layout):
    found = values(
        "precision", model="deeplab-resnet50", framework="torch", layout=layout, execution="eager"
    )
    assert found == {"fp32", "tf32", "amp-fp16", "amp-bf16"}


def test_every_optimizer_is_there():
    found = values("optimizer", precision="amp-bf16", layout="nhwc", framework="torch")
    assert found == {"adam-loop", "adam-foreach", "adam-fused", "lamb"}


def test_every_execution_is_there():
    found = values("execution", precision="amp-bf16", optimizer="adam-fused", framework="torch")
    assert found == {"eager", "compile", "graph"}


def test_the_xception_encoder_runs_in_two_precisions():
    assert values("precision", model="deeplab-xception") == {"fp32", "amp-fp16"}


def test_keras_runs_on_its_three_backends():
    assert values("framework", optimizer="keras-adam") == {
        "keras-torch",
        "keras-jax",
        "keras-tensorflow",
    }


@pytest.mark.parametrize("model", ["prefill", "decode", "train"])
def test_the_transformer_runs_in_bf16_and_fp8(model):
    assert values("precision", model=f"transformer-{model}") == {"bf16", "fp8"}


def test_the_quick_study_has_six_cells_and_they_come_first():
    assert [cell.quick for cell in CELLS] == [True] * 6 + [False] * (len(CELLS) - 6)


def test_a_tiny_plan_has_the_same_cells_at_another_size():
    tiny = deepcam("cpu", "tiny")
    assert [cell.title for cell in tiny] == [cell.title for cell in CELLS]
    assert {cell.name for cell in tiny}.isdisjoint(BY_NAME)


@pytest.mark.parametrize("pair", pairs("cuda:0"), ids=lambda pair: pair.change)
def test_the_cells_of_a_pair_differ_in_one_thing(pair):
    before, after = (dataclasses.asdict(BY_NAME[name]) for name in (pair.before, pair.after))
    differ = {key for key in before if before[key] != after[key]}
    # A framework brings its optimizer.
    assert len(differ - ({"optimizer"} if "framework" in differ else set())) == 1


@pytest.mark.parametrize("pair", pairs("cuda:0"), ids=lambda pair: pair.change)
def test_the_advice_of_a_pair_exists(pair):
    headings = " ".join(re.findall(r"^### (.+)$", ADVICE.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(pair.rules) <= set(headings.replace(",", " ").split())


def test_every_change_to_a_compiler_is_held_against_the_same_advice():
    compiled = [
        pair
        for pair in pairs("cuda:0")
        if (BY_NAME[pair.before].execution, BY_NAME[pair.after].execution) == ("eager", "compile")
    ]
    assert len(compiled) == 3
    assert len({pair.rules for pair in compiled}) == 1


def test_the_quick_study_holds_four_of_the_pairs():
    quick = {cell.name for cell in CELLS if cell.quick}
    whole = [pair for pair in pairs("cuda:0") if {pair.before, pair.after} <= quick]
    assert len(whole) == 4


def test_a_part_of_the_name_chooses_cells():
    assert [cell.title for cell in chosen(CELLS, only=["lamb"])] == [
        "ResNet-50 PyTorch amp-bf16 nhwc lamb eager"
    ]


def test_a_pattern_chooses_cells():
    assert len(chosen(CELLS, only=["xception*adam-loop"])) == 2


def test_patterns_choose_in_the_order_in_which_they_are_given_and_no_cell_twice():
    titles = [cell.title for cell in chosen(CELLS, only=["tf32_nhwc", "lamb", "tf32"])]
    assert titles == [
        "ResNet-50 PyTorch tf32 nhwc adam-fused eager",
        "ResNet-50 PyTorch amp-bf16 nhwc lamb eager",
        "ResNet-50 PyTorch tf32 nchw adam-fused eager",
    ]


def test_a_pattern_that_fits_nothing_is_told_where_to_look():
    with pytest.raises(UsageError, match="--list"):
        chosen(CELLS, only=["lamb", "no-such"])
    with pytest.raises(UsageError, match="--list"):
        chosen(CELLS, quick=True, only=["lamb"])
