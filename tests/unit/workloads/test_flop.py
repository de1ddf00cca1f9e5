"""FLOP from shapes, worked out by hand."""

from mansard.workloads.flop import (
    Operation,
    attention_backward_flop,
    attention_flop,
    conv_flop,
    gemm_flop,
    gradient_flop,
    phase_flop,
    transposed_conv_flop,
)
from mansard.workloads.workload import PhaseFlop


def test_a_convolution_is_two_for_each_product():
    # 4 x 5 outputs of 8 filters, each a sum of 3 channels x 3 x 3 products; 2 images.
    flop = conv_flop(batch=2, channels=3, filters=8, kernel=(3, 3), output=(4, 5))
    assert flop == 2 * 2 * 20 * 8 * 27


def test_a_depthwise_convolution_sums_over_one_channel():
    flop = conv_flop(batch=1, channels=6, filters=6, kernel=(3, 3), output=(4, 4), groups=6)
    assert flop == 2 * 16 * 6 * 9


def test_the_first_convolution_of_resnet50_at_224_has_236_mflop():
    # He et al. count 3.8 G multiply-adds for the whole network; this layer has 118 M of them.
    flop = conv_flop(batch=1, channels=3, filters=64, kernel=(7, 7), output=(112, 112))
    assert flop == 2 * 118_013_952


def test_a_transposed_convolution_meets_each_input_with_each_tap():
    flop = transposed_conv_flop(batch=2, channels=4, filters=3, kernel=(3, 3), inputs=(5, 6))
    assert flop == 2 * 2 * 30 * 4 * 3 * 9


def test_a_matrix_product_is_2mnk():
    assert gemm_flop(3, 5, 7) == 210


def test_attention_is_two_products_of_the_full_square():
    forward = attention_flop(batch=2, heads=3, queries=8, keys=8, head_width=4)
    assert forward == 2 * (2 * 2 * 3 * 8 * 8 * 4)
    assert attention_backward_flop(forward) == 5 * (2 * 2 * 3 * 8 * 8 * 4)


def test_one_query_of_a_decode_step_looks_at_all_keys():
    assert attention_flop(batch=1, heads=1, queries=1, keys=100, head_width=8) == 3200


def test_the_first_layer_has_no_gradient_of_its_data():
    assert gradient_flop(10, data=False, weight=True) == 10
    assert gradient_flop(10, data=True, weight=True) == 20
    assert gradient_flop(10, data=False, weight=False) == 0


def test_sums_are_by_phase_and_kind():
    layers = (
        Operation(name="a", kind="conv", forward=1, backward=1),
        Operation(name="b", kind="gemm", forward=10, backward=20),
        Operation(name="c", kind="conv", forward=100, backward=200),
    )
    assert phase_flop(layers, phases=("forward", "backward")) == (
        PhaseFlop(phase="forward", kind="conv", flop=101),
        PhaseFlop(phase="forward", kind="gemm", flop=10),
        PhaseFlop(phase="backward", kind="conv", flop=201),
        PhaseFlop(phase="backward", kind="gemm", flop=20),
    )
    assert [each.phase for each in phase_flop(layers, phases=("forward",))] == ["forward"] * 2
