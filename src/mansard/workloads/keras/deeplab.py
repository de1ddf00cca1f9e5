"""DeepLabv3+ (1802.02611) with ResNet-50 and DeepCAM's decoder of transposed convolutions.

Layer for layer the network of ``mansard.workloads.pytorch``; the reasons stand there.
"""

from typing import Any

import keras

from mansard.workloads.keras.layers import Layers
from mansard.workloads.workload import ImageSize, Layout

#: Blocks of each stage, and the channels inside them (1512.03385, table 1).
_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
_EXPANSION = 4
#: Dilations of the parallel branches for output stride 16 (1706.05587, section 3.3).
_RATES = (6, 12, 18)
_FORMATS = {"nchw": "channels_first", "nhwc": "channels_last"}


def make_deeplab(size: ImageSize, layout: Layout, kind: type[Layers] = Layers) -> keras.Model:
    """The network, in the global dtype policy, with weights that are zero.

    Args:
        size: of the images.
        layout: of the images and all maps.
        kind: what makes the layers.

    Returns:
        A model from (N, H, W, C) to scores (N, H, W, K), or with channels first.
    """
    layers = kind(_FORMATS[layout])
    shape = (size.batch, size.height, size.width, size.channels)
    if layout == "nchw":
        shape = (size.batch, size.channels, size.height, size.width)
    images = keras.Input(batch_shape=shape, name="images")
    deep, low = _resnet(layers, images, size.slim)
    scores = _decoded(layers, _pyramid(layers, deep, 256 // size.slim), low, size)
    return keras.Model(images, scores, name="deeplab")


def _resnet(layers: Layers, images: Any, slim: int) -> tuple[Any, Any]:
    """Maps at 1/16 and at 1/4; the last stage is dilated instead of strided (1606.00915)."""
    x = layers.conv_norm_relu(images, 64 // slim, 7, stride=2, name="encoder_stem_0")
    x = layers.halved_maximum(x, "encoder_stem_1")
    low = None
    for index, (blocks, width) in enumerate(_STAGES):
        stage = f"encoder_later_{index - 1}" if index else "encoder_first"
        dilated = index == len(_STAGES) - 1
        for block in range(blocks):
            first = block == 0
            x = _bottleneck(
                layers,
                x,
                width // slim,
                stride=2 if first and index and not dilated else 1,
                dilation=2 if dilated and not first else 1,
                name=f"{stage}_{block}",
            )
        low = x if index == 0 else low
    return x, low


def _bottleneck(
    layers: Layers, x: Any, width: int, *, stride: int, dilation: int, name: str
) -> Any:
    filters = _EXPANSION * width
    body = layers.conv_norm_relu(x, width, 1, name=f"{name}_body_0")
    body = layers.conv_norm_relu(
        body, width, 3, stride=stride, dilation=dilation, name=f"{name}_body_1"
    )
    body = layers.conv_norm(body, filters, 1, name=f"{name}_body_2")
    if stride != 1 or x.shape[layers.axis] != filters:
        x = layers.conv_norm(x, filters, 1, stride=stride, name=f"{name}_skip")
    return keras.ops.relu(body + x)


def _pyramid(layers: Layers, x: Any, filters: int) -> Any:
    """Atrous spatial pyramid pooling: the same map seen at several distances."""
    name = "pyramid_branches"
    branches = [layers.conv_norm_relu(x, filters, 1, name=f"{name}_0")]
    for index, rate in enumerate(_RATES, start=1):
        branches.append(layers.conv_norm_relu(x, filters, 3, dilation=rate, name=f"{name}_{index}"))
    branches.append(layers.spread_mean(x, filters, f"{name}_{len(branches)}_body"))
    return layers.conv_norm_relu(layers.joined(branches), filters, 1, name="pyramid_project")


def _decoded(layers: Layers, x: Any, low: Any, size: ImageSize) -> Any:
    width = 256 // size.slim
    x = _doubled(layers, x, width, "to_quarter", 0)
    x = _doubled(layers, x, width, "to_quarter", 3)
    x = layers.joined([x, layers.conv_norm_relu(low, 48 // size.slim, 1, name="low")])
    x = layers.conv_norm_relu(x, width, 3, name="mix_0")
    x = layers.conv_norm_relu(x, width, 3, name="mix_1")
    x = layers.conv(x, width, 1, bias=True, name="mix_2")
    x = _doubled(layers, x, width, "to_pixels", 0)
    return layers.transposed_conv(x, size.classes, "to_pixels_3")


def _doubled(layers: Layers, x: Any, width: int, name: str, first: int) -> Any:
    x = layers.transposed_conv(x, width, f"{name}_{first}")
    return keras.ops.relu(layers.norm(x, f"{name}_{first + 1}"))
