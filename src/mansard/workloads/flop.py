"""Floating-point operations of layers, from their shapes: 2 for each multiplication and addition.

A multiplication with a padded zero counts, as in the libraries that do it. Bias, normalisation,
activation, loss and optimizer do not: they are passes over memory. What an algorithm saves
(Winograd, FFT) or adds (recomputation in a fused backward, apart from attention) does not show;
it is the difference between these numbers and counted ones.
"""

from collections.abc import Iterable

from mansard.workloads.workload import Kind, Operation, Phase, PhaseFlop

_Pair = tuple[int, int]


def conv_flop(
    *,
    batch: int,
    channels: int,
    filters: int,
    kernel: _Pair,
    output: _Pair,
    groups: int = 1,
) -> int:
    """2 N K (C/g) R S OH OW of a convolution, forward or either gradient.

    The gradients are sums over the same set of products, so all three cost the same.

    Args:
        batch: images N.
        channels: of the input, C.
        filters: channels of the output, K.
        kernel: rows and columns of the filter, R and S.
        output: rows and columns of the output, OH and OW.
        groups: g; as many as channels in a depthwise convolution.
    """
    rows, columns = output
    return 2 * batch * filters * (channels // groups) * kernel[0] * kernel[1] * rows * columns


def transposed_conv_flop(
    *, batch: int, channels: int, filters: int, kernel: _Pair, inputs: _Pair
) -> int:
    """2 N C K R S H W of a transposed convolution: every input pixel meets every tap.

    Products that fall on the cropped border are counted, as they are where they are computed.
    """
    return conv_flop(batch=batch, channels=filters, filters=channels, kernel=kernel, output=inputs)


def gemm_flop(m: int, n: int, k: int) -> int:
    """2 M N K of a matrix product, forward or either gradient."""
    return 2 * m * n * k


def attention_flop(*, batch: int, heads: int, queries: int, keys: int, head_width: int) -> int:
    """4 B H Sq Sk D of attention: the scores and the weighted sum of the values.

    A causal mask is not subtracted. Kernels that skip masked blocks (FlashAttention,
    arXiv 2205.14135) do down to half of this for long sequences.
    """
    return 4 * batch * heads * queries * keys * head_width


def attention_backward_flop(forward: int) -> int:
    """Five products where the forward pass has two: the scores again, dP, dV, dQ and dK.

    Source: FlashAttention, arXiv 2205.14135, algorithm 4.
    """
    return 5 * forward // 2


def gradient_flop(forward: int, *, data: bool, weight: bool) -> int:
    """The backward pass of a convolution or a matrix product.

    Args:
        forward: FLOP of the forward pass; each gradient costs as much.
        data: whether the gradient of its input is needed; the first layer's is not.
        weight: whether the gradient of its weights is needed.
    """
    return forward * (data + weight)


def phase_flop(
    operations: Iterable[Operation], *, phases: tuple[Phase, ...]
) -> tuple[PhaseFlop, ...]:
    """Sums by phase and kind, in the order in which the kinds first occur.

    Args:
        operations: the layers.
        phases: ``("forward",)`` of an inference, ``("forward", "backward")`` of a training step.
    """
    sums: dict[tuple[Phase, Kind], int] = {}
    layers = tuple(operations)
    for phase in phases:
        for layer in layers:
            flop = layer.forward if phase == "forward" else layer.backward
            sums[phase, layer.kind] = sums.get((phase, layer.kind), 0) + flop
    return tuple(
        PhaseFlop(phase=phase, kind=kind, flop=flop) for (phase, kind), flop in sums.items()
    )
