"""The operations of a network, found by running its shapes on the ``meta`` device."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from mansard.workloads.flop import (
    attention_backward_flop,
    attention_flop,
    conv_flop,
    gemm_flop,
    gradient_flop,
    transposed_conv_flop,
)
from mansard.workloads.pytorch.attention import Attention
from mansard.workloads.workload import Kind, Operation


def operations(model: nn.Module, run: Callable[[], Any]) -> tuple[Operation, ...]:
    """What a forward pass does, and what its backward pass will do.

    Args:
        model: on the ``meta`` device.
        run: calls it once.
    """
    found: list[Operation] = []
    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear | Attention):
            note = _noting(name, found)
            hooks.append(module.register_forward_hook(note))
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return tuple(found)


def _noting(name: str, found: list[Operation]) -> Callable[..., None]:
    def note(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        first = inputs[0]
        if isinstance(module, Attention):
            kind: Kind = "attention"
            forward = _attention(inputs)
            backward = attention_backward_flop(forward) if first.requires_grad else 0
        else:
            kind, forward = _product(module, first, output)
            backward = gradient_flop(
                forward, data=first.requires_grad, weight=module.weight.requires_grad
            )
        found.append(Operation(name=name, kind=kind, forward=forward, backward=backward))

    return note


def _product(module: nn.Module, x: torch.Tensor, output: torch.Tensor) -> tuple[Kind, int]:
    if isinstance(module, nn.Linear):
        k = module.in_features
        return "gemm", gemm_flop(x.numel() // k, module.out_features, k)
    shape = {
        "batch": x.shape[0],
        "channels": module.in_channels,
        "filters": module.out_channels,
        "kernel": tuple(module.kernel_size),
    }
    if isinstance(module, nn.ConvTranspose2d):
        return "transposed conv", transposed_conv_flop(**shape, inputs=tuple(x.shape[2:]))
    kind: Kind = "depthwise conv" if module.groups > 1 else "conv"
    return kind, conv_flop(**shape, output=tuple(output.shape[2:]), groups=module.groups)


def _attention(inputs: tuple[torch.Tensor, ...]) -> int:
    query, key = inputs[:2]
    batch, heads, queries, head_width = query.shape
    return attention_flop(
        batch=batch, heads=heads, queries=queries, keys=key.shape[2], head_width=head_width
    )
