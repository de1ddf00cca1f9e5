"""ResNet-50 as an encoder with output stride 16."""

import torch
from torch import nn

from mansard.workloads.pytorch.layers import conv_norm

#: Blocks of each stage, and the channels inside them (1512.03385, table 1).
_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
_EXPANSION = 4


class _Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1 around a skip; the stride is in the 3 x 3, as common since 2016."""

    def __init__(self, channels: int, width: int, *, stride: int, dilation: int) -> None:
        super().__init__()
        filters = _EXPANSION * width
        self.body = nn.Sequential(
            conv_norm(channels, width, 1),
            conv_norm(width, width, 3, stride=stride, dilation=dilation),
            conv_norm(width, filters, 1, activation=False),
        )
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.skip = conv_norm(channels, filters, 1, stride=stride, activation=False)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.body(x) + self.skip(x))


class ResNet50(nn.Module):
    """The 50-layer residual network without its classifier.

    The last stage is dilated instead of strided (1606.00915), so its map has 1/16 of the rows.

    Attributes:
        low_channels: channels of the map at 1/4, for the decoder's skip.
        channels: channels of the map at 1/16.
    """

    def __init__(self, channels: int, *, slim: int) -> None:
        super().__init__()
        width = 64 // slim
        self.stem = nn.Sequential(
            conv_norm(channels, width, 7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)
        )
        stages = []
        for index, (blocks, full_width) in enumerate(_STAGES):
            inner, dilated = full_width // slim, index == len(_STAGES) - 1
            stage = []
            for block in range(blocks):
                first = block == 0
                stage.append(
                    _Bottleneck(
                        width,
                        inner,
                        stride=2 if first and index and not dilated else 1,
                        dilation=2 if dilated and not first else 1,
                    )
                )
                width = _EXPANSION * inner
            stages.append(nn.Sequential(*stage))
        self.first, self.later = stages[0], nn.Sequential(*stages[1:])
        self.low_channels = _EXPANSION * _STAGES[0][1] // slim
        self.channels = width

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, C, H, W) to the maps at 1/16 and at 1/4."""
        low = self.first(self.stem(x))
        return self.later(low), low
