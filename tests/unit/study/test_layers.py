"""Launches and the layers that they compute."""

from pathlib import Path

import pytest

from mansard.store import open_run
from mansard.study.cell import Layer
from mansard.study.layers import (
    BACKWARD,
    BOTH,
    FORWARD,
    OF_DATA,
    OF_WEIGHTS,
    Launch,
    by_module,
    expected,
    matched,
    tensor_launches,
)

#: The first has no gradient of its input: nobody asks for that of the images.
LAYERS = (
    Layer(name="stem", kind="conv", forward=10, backward=10),
    Layer(name="body", kind="conv", forward=30, backward=60),
)
RUN = (
    Path(__file__).parents[3] / "studies" / "deepcam" / "runs"
    / "deeplab-resnet50_torch_amp-bf16_nhwc_adam-fused_eager_n2c16h768w1152k3_cuda0.parquet"
)  # fmt: skip


def launched(*flop):
    return [Launch("k", each, 1e-3) for each in flop]


def parts(phase):
    return [(layer.name, part, flop) for layer, part, flop in expected(LAYERS, phase)]


def test_the_forward_pass_has_one_product_for_each_layer():
    assert parts("forward") == [("stem", FORWARD, 10), ("body", FORWARD, 30)]


def test_the_backward_pass_goes_back_and_has_two_for_all_but_the_first():
    assert parts("backward") == [
        ("body", OF_DATA, 30),
        ("body", OF_WEIGHTS, 30),
        ("stem", OF_WEIGHTS, 10),
    ]


def test_each_launch_is_given_to_its_layer_with_what_it_does_too_much():
    products = matched(LAYERS, launched(20, 30), "forward")
    assert [(each.layer.name, each.excess) for each in products] == [("stem", 10), ("body", 0)]


@pytest.mark.parametrize("flop", [(10,), (10, 30, 30), ()])
def test_another_number_of_launches_is_not_matched(flop):
    assert matched(LAYERS, launched(*flop), "forward") is None


def test_a_launch_that_did_less_than_its_layer_needs_belongs_to_another():
    assert matched(LAYERS, launched(30, 10), "forward") is None


def test_an_attention_is_one_launch_and_may_skip_what_is_masked():
    layers = (Layer(name="mix", kind="attention", forward=40, backward=100),)
    assert [each[1:] for each in expected(layers, "backward")] == [(BACKWARD, 100)]
    (product,) = matched(layers, launched(21), "forward")
    assert product.excess == -19


def test_a_cell_without_layers_is_not_matched():
    assert matched((), (), "forward") is None


def of_modules(*found):
    return [Launch("k", flop, 1e-3, module) for module, flop in found]


def test_launches_of_a_module_stand_together_beside_its_layer():
    launches = of_modules(("body", 30), ("stem", 12), ("body", 20), ("body", 15))
    products = by_module(LAYERS, launches, "backward")
    assert [(each.layer.name, each.part, each.flop, each.excess) for each in products] == [
        ("stem", OF_WEIGHTS, 10, 2),
        ("body", BOTH, 60, 5),
    ]
    assert products[1].launch.duration_s == pytest.approx(3e-3)


def test_launches_that_stand_together_have_the_name_of_the_longest():
    launches = [Launch("short", 10, 1e-3, "stem"), Launch("long", 1, 2e-3, "stem")]
    (product,) = by_module(LAYERS[:1], launches, "forward")
    assert (product.launch.name, product.launch.flop) == ("long", 11)


def test_a_layer_with_fewer_launches_than_gradients_is_left_out():
    products = by_module(LAYERS, of_modules(("body", 30), ("stem", 10)), "backward")
    assert [each.layer.name for each in products] == ["stem"]


@pytest.mark.parametrize("module", ["elsewhere", None])
def test_a_launch_of_no_layer_leaves_nothing_to_compare(module):
    assert by_module(LAYERS, of_modules(("stem", 10), (module, 30)), "forward") is None


def test_layers_of_one_name_cannot_be_told_apart_by_it():
    assert by_module((*LAYERS, LAYERS[0]), of_modules(("stem", 10)), "forward") is None


@pytest.mark.parametrize(("phase", "launches"), [("forward", 67), ("backward", 133)])
def test_the_recorded_step_has_a_launch_for_each_product_of_its_67_layers(phase, launches):
    assert len(tensor_launches(open_run(RUN), phase)) == launches


def test_a_phase_that_does_not_exist_has_no_launches():
    assert tensor_launches(open_run(RUN), "optimizer'; --") == ()
