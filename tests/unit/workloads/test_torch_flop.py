"""Analytic FLOP against PyTorch's own counter, and against what the paper's authors counted."""

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from mansard.workloads.pytorch.deeplab import make_deeplab  # noqa: E402
from mansard.workloads.pytorch.images import image_flop  # noqa: E402
from mansard.workloads.pytorch.tokens import token_flop  # noqa: E402
from mansard.workloads.pytorch.transformer import Transformer  # noqa: E402
from mansard.workloads.pytorch.walk import operations  # noqa: E402
from mansard.workloads.workload import PAPER, TINY, TINY_TOKENS  # noqa: E402


def _sum(flop, phase, kind=None):
    return sum(each.flop for each in flop if each.phase == phase and kind in {None, each.kind})


def _counted(network, x):
    """FLOP of forward and backward, by PyTorch's counter of dispatched operations."""
    with FlopCounterMode(display=False) as forward:
        result = network(x)
    with FlopCounterMode(display=False) as backward:
        result.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def test_resnet_agrees_with_pytorchs_counter():
    network = make_deeplab("deeplab-resnet50", TINY)
    forward, backward = _counted(network, torch.zeros(2, 16, 64, 96))
    flop = image_flop("deeplab-resnet50", TINY)
    assert _sum(flop, "forward") == forward
    assert _sum(flop, "backward") == backward


def test_xception_agrees_with_pytorchs_counter_but_for_its_depthwise_gradients():
    network = make_deeplab("deeplab-xception", TINY)
    forward, backward = _counted(network, torch.zeros(2, 16, 64, 96))
    flop = image_flop("deeplab-xception", TINY)
    assert _sum(flop, "forward") == forward
    # For the gradient of the weights the counter forgets the groups: it takes each pair of
    # channels, which is groups times what is done.
    with torch.device("meta"):
        layers = dict((shapes := make_deeplab("deeplab-xception", TINY)).named_modules())
        found = operations(shapes, lambda: shapes(torch.empty(2, 16, 64, 96)))
    excess = sum(
        each.forward * (layers[each.name].groups - 1)
        for each in found
        if each.kind == "depthwise conv"
    )
    assert excess > 0
    assert _sum(flop, "backward") == backward - excess


def test_training_of_a_transformer_agrees_with_pytorchs_counter_but_for_recomputed_scores():
    torch.manual_seed(0)
    network = Transformer(TINY_TOKENS)
    tokens = torch.zeros(2, 16, dtype=torch.long)
    with sdpa_kernel(SDPBackend.MATH):
        forward, backward = _counted(network, tokens)
    flop = token_flop("transformer-train", TINY_TOKENS)
    assert _sum(flop, "forward") == forward
    # The plain backward keeps the scores; fused ones compute them again: one product in each of
    # the 2 layers, 2 sequences and 2 heads of 16 features.
    scores = 2 * 2 * 2 * (2 * 16 * 16 * 16)
    assert _sum(flop, "backward") == backward + scores


def test_a_decode_step_is_the_weights_times_the_batch_and_attention_to_the_cache():
    flop = token_flop("transformer-decode", TINY_TOKENS)
    products = 2 * (4 * 32 * 32 + 3 * 32 * 128) + 32 * 64  # 2 layers and the scores
    assert _sum(flop, "forward", "gemm") == 2 * 2 * products
    assert _sum(flop, "forward", "attention") == 2 * (4 * 2 * 2 * 1 * 16 * 16)
    assert _sum(flop, "backward") == 0


def test_a_prefill_scores_the_last_token_only():
    flop = token_flop("transformer-prefill", TINY_TOKENS)
    blocks = 2 * (4 * 32 * 32 + 3 * 32 * 128)
    assert _sum(flop, "forward", "gemm") == 2 * (2 * 16 * blocks + 2 * 32 * 64)


def test_work_grows_with_the_batch():
    one = image_flop("deeplab-resnet50", dataclasses.replace(TINY, batch=1))
    two = image_flop("deeplab-resnet50", TINY)
    assert _sum(two, "forward") == 2 * _sum(one, "forward")
    assert _sum(two, "backward") == 2 * _sum(one, "backward")


def test_the_forward_pass_of_deepcam_is_what_the_paper_counted():
    # 1.370 TFLOP with mixed precision on a V100, in the authors' raw counters (forward O1); batch
    # norm, activations and loss are in their number alone.
    analytic = _sum(image_flop("deeplab-xception", PAPER), "forward")
    assert 0.94 < analytic / 1.370e12 < 1.0
