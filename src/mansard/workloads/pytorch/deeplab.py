"""DeepLabv3+ (1802.02611) with DeepCAM's decoder of transposed convolutions."""

import torch
from torch import nn

from mansard.workloads.pytorch.layers import Affine, conv_norm, initialize, transposed_conv
from mansard.workloads.pytorch.resnet import ResNet50
from mansard.workloads.pytorch.xception import Xception
from mansard.workloads.workload import ImageSize, Model

#: Dilations of the parallel branches for output stride 16 (1706.05587, section 3.3).
RATES = (6, 12, 18)


class _Pooled(nn.Module):
    """The mean of the whole map, as one more branch."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        # No batch norm: with a batch of one there is a single value in each channel.
        self.body = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, filters, 1, bias=False),
            Affine(filters),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).expand(-1, -1, *x.shape[2:])


class _Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: the same map seen at several distances."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                conv_norm(channels, filters, 1),
                *(conv_norm(channels, filters, 3, dilation=rate) for rate in RATES),
                _Pooled(channels, filters),
            ]
        )
        self.project = conv_norm(len(self.branches) * filters, filters, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(torch.cat([branch(x) for branch in self.branches], dim=1))


class DeepLab(nn.Module):
    """Encoder, pyramid, and a decoder back to every pixel.

    Args:
        encoder: gives the maps at 1/16 and 1/4 of the rows.
        classes: of a pixel.
        slim: divides the channels.
    """

    def __init__(self, encoder: ResNet50 | Xception, classes: int, *, slim: int) -> None:
        super().__init__()
        width, low = 256 // slim, 48 // slim
        self.encoder = encoder
        self.pyramid = _Pyramid(encoder.channels, width)
        self.low = conv_norm(encoder.low_channels, low, 1)
        self.to_quarter = nn.Sequential(*_doubled(width), *_doubled(width))
        self.mix = nn.Sequential(
            conv_norm(width + low, width, 3),
            conv_norm(width, width, 3),
            nn.Conv2d(width, width, 1),
        )
        self.to_pixels = nn.Sequential(*_doubled(width), transposed_conv(width, classes))
        initialize(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (N, C, H, W) to scores of each class (N, K, H, W)."""
        deep, low = self.encoder(x)
        up = self.to_quarter(self.pyramid(deep))
        return self.to_pixels(self.mix(torch.cat([up, self.low(low)], dim=1)))


def _doubled(width: int) -> tuple[nn.Module, ...]:
    return transposed_conv(width, width), nn.BatchNorm2d(width), nn.ReLU(inplace=True)


def make_deeplab(model: Model, size: ImageSize) -> DeepLab:
    """The network of a configuration, with random weights."""
    encoder = Xception if model == "deeplab-xception" else ResNet50
    return DeepLab(encoder(size.channels, slim=size.slim), size.classes, slim=size.slim)
