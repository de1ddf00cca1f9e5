"""The decoder-only transformer: cache, mask, positions and 8-bit products."""

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from mansard.workloads import Configuration, Unavailable, build  # noqa: E402
from mansard.workloads.pytorch.attention import SelfAttention  # noqa: E402
from mansard.workloads.pytorch.fp8 import Fp8Linear, quantized  # noqa: E402
from mansard.workloads.pytorch.transformer import Transformer  # noqa: E402
from mansard.workloads.workload import TINY_TOKENS  # noqa: E402


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Transformer(TINY_TOKENS).eval().requires_grad_(requires_grad=False)


@pytest.fixture
def tokens():
    return torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(1))


def make(**changes):
    settings = {
        "model": "transformer-decode",
        "framework": "torch",
        "precision": "fp32",
        "layout": "none",
        "optimizer": "none",
        "execution": "eager",
        "size": TINY_TOKENS,
        "device": "cpu",
    }
    return Configuration(**(settings | changes))


def test_a_token_is_scored_from_those_before_it_alone(network, tokens):
    scores = network(tokens)
    changed = tokens.clone()
    changed[:, 9:] = (changed[:, 9:] + 1) % 64
    torch.testing.assert_close(network(changed)[:, :9], scores[:, :9])
    assert not torch.allclose(network(changed)[:, 9], scores[:, 9])


def test_decoding_with_a_cache_gives_the_scores_of_the_whole_sequence(network, tokens):
    wanted = network(tokens)
    caches = network.make_caches()
    network(tokens[:, :10], caches)
    for position in range(10, 16):
        scores = network(tokens[:, position : position + 1], caches, position=position)
        torch.testing.assert_close(scores[:, 0], wanted[:, position], rtol=1e-4, atol=1e-5)


def test_the_last_score_alone_is_that_of_all(network, tokens):
    torch.testing.assert_close(network(tokens, last=True), network(tokens)[:, -1:])


def test_attention_depends_on_distance_not_on_place():
    torch.manual_seed(0)
    mix = SelfAttention(8, 2, 32, nn.Linear)
    query, key = torch.randn(2, 1, 2, 1, 4).unbind(0)
    scores = [
        (mix._rotated(query, place) * mix._rotated(key, place - 3)).sum() for place in (3, 10, 31)
    ]
    torch.testing.assert_close(scores[1], scores[0])
    torch.testing.assert_close(scores[2], scores[0])


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_prefill_and_decode_end_in_the_same_scores(precision):
    prefill = build(make(model="transformer-prefill", precision=precision))
    decode = build(make(precision=precision))
    prefill.step()
    decode.step()
    first = decode.step.last.clone()
    decode.step()
    assert torch.equal(decode.step.last, first)
    tolerance = {"fp32": 1e-5, "bf16": 0.02, "fp8": 0.1}[precision]
    distance = (prefill.step.last - first).float().norm() / first.float().norm()
    assert distance < tolerance
    assert prefill.loss() is None
    assert [each.phase for each in decode.flop] == ["forward", "forward"]


def test_quantizing_uses_the_whole_range_and_keeps_three_bits():
    x = torch.linspace(-3, 3, 101)
    small, inverse = quantized(x, torch.float8_e4m3fn)
    assert small.float().abs().max() == 448
    back = small.float() * inverse
    # Three bits behind the point: half a step is a sixteenth.
    torch.testing.assert_close(back, x, rtol=1 / 16, atol=3 / 448 / 2**6)


def test_a_tensor_of_zeros_stays_zeros():
    small, inverse = quantized(torch.zeros(4), torch.float8_e4m3fn)
    assert torch.equal(small.float() * inverse, torch.zeros(4))


def test_an_8_bit_layer_and_its_gradients_are_near_the_exact_ones():
    torch.manual_seed(0)
    layer = Fp8Linear(32, 48, bias=False).bfloat16()
    x = torch.randn(2, 16, 32, dtype=torch.bfloat16, requires_grad=True)
    pull = torch.randn(2, 16, 48, dtype=torch.bfloat16)
    layer(x).backward(pull)
    exact_x = x.detach().float().requires_grad_()
    exact_weight = layer.weight.detach().float().requires_grad_()
    result = exact_x @ exact_weight.T
    result.backward(pull.float())
    for found, wanted in (
        (layer(x), result),
        (x.grad, exact_x.grad),
        (layer.weight.grad, exact_weight.grad),
    ):
        assert found.dtype == torch.bfloat16
        assert (found.float() - wanted).norm() / wanted.norm() < 0.08


def test_held_weights_give_the_same_result():
    torch.manual_seed(0)
    layer = Fp8Linear(32, 48, bias=False).bfloat16().requires_grad_(requires_grad=False)
    x = torch.randn(3, 32, dtype=torch.bfloat16)
    wanted = layer(x)
    layer.hold()
    assert torch.equal(layer(x), wanted)
    assert layer.held[0].dtype == torch.float8_e4m3fn


def test_lengths_that_8_bit_products_cannot_have_are_refused():
    odd = dataclasses.replace(TINY_TOKENS, width=40, heads=2)
    with pytest.raises(Unavailable, match="divide by 16"):
        build(make(precision="fp8", size=odd))
