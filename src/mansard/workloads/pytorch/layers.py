"""Layers that both encoders and the decoder are made of."""

import torch
from torch import nn


def conv_norm(
    channels: int,
    filters: int,
    kernel: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    activation: bool = True,
) -> nn.Sequential:
    """A convolution without bias that keeps the size (but for its stride), batch norm, ReLU."""
    padding = dilation * (kernel - 1) // 2
    layers = [
        nn.Conv2d(
            channels,
            filters,
            kernel,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=False,
        ),
        nn.BatchNorm2d(filters),
    ]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if activation else []))


def separable_conv(
    channels: int, filters: int, *, stride: int = 1, dilation: int = 1
) -> nn.Sequential:
    """A 3 x 3 convolution of each channel alone, then 1 x 1 over the channels (1610.02357)."""
    return nn.Sequential(
        nn.Conv2d(
            channels,
            channels,
            3,
            stride=stride,
            padding=dilation,
            dilation=dilation,
            groups=channels,
            bias=False,
        ),
        nn.Conv2d(channels, filters, 1, bias=False),
    )


def transposed_conv(channels: int, filters: int) -> nn.ConvTranspose2d:
    """A 3 x 3 transposed convolution that doubles rows and columns, as in DeepCAM's decoder."""
    return nn.ConvTranspose2d(
        channels, filters, 3, stride=2, padding=1, output_padding=1, bias=False
    )


def initialize(model: nn.Module) -> None:
    """Normal weights with the variance 2 / fan-in for all convolutions (1502.01852)."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class Affine(nn.Module):
    """A scale and a shift for each channel: what is left of batch norm where there is one pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W) to the same, in the type of the input."""
        # In mixed precision the product is float32, and would drag its neighbours there.
        return (x * self.weight + self.bias).to(x.dtype)
