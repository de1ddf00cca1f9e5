"""The aligned Xception with 65 layers (1802.02611), as DeepCAM's PyTorch version has it."""

import torch
from torch import nn

from mansard.workloads.pytorch.layers import conv_norm, separable_conv

_MIDDLE_BLOCKS = 16


class _Block(nn.Module):
    """Separable convolutions around a skip.

    Args:
        channels: of the input.
        widths: filters of each separable convolution that a batch norm follows.
        stride: 2 adds a strided separable convolution at the end.
        last: adds an unstrided one there.
        activated: whether the first convolution sees the ReLU of the input.
    """

    def __init__(
        self,
        channels: int,
        widths: tuple[int, ...],
        *,
        stride: int = 1,
        last: bool = False,
        activated: bool = True,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inner = channels
        for index, filters in enumerate(widths):
            if activated or index:
                # The first must leave the input as it is, for the skip.
                layers.append(nn.ReLU(inplace=index > 0))
            layers += [separable_conv(inner, filters), nn.BatchNorm2d(filters)]
            inner = filters
        if stride != 1 or last:
            layers.append(separable_conv(inner, inner, stride=stride))
        self.body = nn.Sequential(*layers)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or channels != inner:
            self.skip = conv_norm(channels, inner, 1, stride=stride, activation=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + self.skip(x)


class Xception(nn.Module):
    """Depthwise-separable encoder with output stride 16.

    Attributes:
        low_channels: channels of the map at 1/4, for the decoder's skip.
        channels: channels of the map at 1/16.
    """

    def __init__(self, channels: int, *, slim: int) -> None:
        super().__init__()
        c32, c64, c128, c256, c728, c1024, c1536, c2048 = (
            full // slim for full in (32, 64, 128, 256, 728, 1024, 1536, 2048)
        )
        self.low_channels, self.channels = c128, c2048
        self.first = nn.Sequential(
            conv_norm(channels, c32, 3, stride=2),
            conv_norm(c32, c64, 3),
            _Block(c64, (c128, c128), stride=2, activated=False),
        )
        self.entry = nn.Sequential(
            _Block(c128, (c256, c256), stride=2), _Block(c256, (c728, c728), stride=2)
        )
        self.middle = nn.Sequential(*(_Block(c728, (c728,) * 3) for _ in range(_MIDDLE_BLOCKS)))
        self.exit = nn.Sequential(
            _Block(c728, (c728, c1024), last=True),
            *_dilated(c1024, c1536),
            *_dilated(c1536, c1536),
            *_dilated(c1536, c2048),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, C, H, W) to the maps at 1/16 and at 1/4."""
        low = self.first(x)
        return self.exit(self.middle(self.entry(low))), low


def _dilated(channels: int, filters: int) -> tuple[nn.Module, ...]:
    return (
        separable_conv(channels, filters, dilation=2),
        nn.BatchNorm2d(filters),
        nn.ReLU(inplace=True),
    )
