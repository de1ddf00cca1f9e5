"""Prefill, decode and training of a decoder-only transformer."""

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from mansard.workloads.flop import phase_flop
from mansard.workloads.pytorch.assemble import (
    INFERENCE,
    TRAINING,
    assemble_inference,
    assemble_training,
    seeded,
)
from mansard.workloads.pytorch.attention import Cache
from mansard.workloads.pytorch.fp8 import MULTIPLE, Fp8Linear
from mansard.workloads.pytorch.precision import ARITHMETIC
from mansard.workloads.pytorch.transformer import Transformer
from mansard.workloads.pytorch.walk import operations
from mansard.workloads.workload import (
    Configuration,
    Model,
    Operation,
    PhaseFlop,
    TokenSize,
    Unavailable,
    Workload,
)


def token_flop(model: Model, size: TokenSize) -> tuple[PhaseFlop, ...]:
    """Analytic work of one step."""
    phases = TRAINING if model == "transformer-train" else INFERENCE
    return phase_flop(token_layers(model, size), phases=phases)


@functools.cache
def token_layers(model: Model, size: TokenSize) -> tuple[Operation, ...]:
    """The layers of the decoder with their work in one step."""
    with torch.device("meta"):
        network = Transformer(size)
        tokens = torch.zeros(size.batch, size.tokens, dtype=torch.long)
    if model == "transformer-train":
        return operations(network, lambda: network(tokens))
    with torch.no_grad():
        caches = network.make_caches()
        return operations(network, _inference(model, network, tokens, caches))


def build(configuration: Configuration) -> Workload:
    """A step on random tokens that stay on the device."""
    size = configuration.size
    if not isinstance(size, TokenSize):
        raise TypeError(size)
    fp8 = configuration.precision == "fp8"
    if fp8 and (size.width % MULTIPLE or size.batch * size.tokens % MULTIPLE):
        raise Unavailable(f"fp8 needs a width and a number of tokens that divide by {MULTIPLE}")
    with seeded(configuration):
        network = Transformer(size, linear=Fp8Linear if fp8 else nn.Linear)
        # One token more than a sequence, so that each has a next one to predict.
        text = torch.randint(size.vocabulary, (size.batch, size.tokens + 1))
    for weight in network.parameters():
        # Not ``network.to``: the rotations keep their precision.
        weight.data = weight.data.to(ARITHMETIC[configuration.precision].weights)
    tokens, following = text[:, :-1].contiguous(), text[:, 1:].flatten()
    layers = token_layers(configuration.model, size)
    if configuration.model == "transformer-train":

        def compute_loss() -> torch.Tensor:
            return functional.cross_entropy(network(tokens).flatten(0, 1).float(), following)

        return assemble_training(configuration, network, compute_loss, layers)

    network.requires_grad_(requires_grad=False)
    for module in network.modules():
        if isinstance(module, Fp8Linear):
            module.hold()
    caches = network.make_caches()
    if configuration.model == "transformer-decode" and size.tokens > 1:
        with torch.no_grad():
            network(tokens[:, :-1], caches, last=True)
    compute = _inference(configuration.model, network, tokens, caches)
    return assemble_inference(configuration, network, compute, layers)


def _inference(
    model: Model, network: Transformer, tokens: torch.Tensor, caches: list[Cache]
) -> Callable[[], torch.Tensor]:
    """One prefill, or one decode step that can be repeated: it writes the same place again."""
    if model == "transformer-prefill":
        return lambda: network(tokens, caches, last=True)
    newest, position = tokens[:, -1:], tokens.shape[1] - 1
    return lambda: network(newest, caches, position=position, last=True)
