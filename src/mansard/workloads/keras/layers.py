"""Layers that the encoder and the decoder are made of.

All of them pad as ``same``, which puts the odd pixel of a strided window behind where PyTorch's
symmetric padding puts it before: the network is the mirror image of the one in PyTorch. Only a
strided 1 x 1 convolution has no odd pixel and takes the first of four in both. Layers have the
names of their modules there, with underscores.
"""

import dataclasses
from typing import Any, ClassVar

import keras

#: PyTorch's defaults; its momentum of 0.1 is the share of the new value.
_NORM = {"momentum": 0.9, "epsilon": 1e-5}


class Affine(keras.layers.Layer):
    """A scale and a shift for each channel: what is left of batch norm where there is one pixel.

    Args:
        axis: of the channels.
        **options: of every layer.
    """

    def __init__(self, axis: int, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Make the weights, in a shape that broadcasts."""
        shape = [1] * (len(input_shape) - 1)
        shape[self.axis if self.axis < 0 else self.axis - 1] = input_shape[self.axis]
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")

    def call(self, x: Any) -> Any:
        """Images to the same."""
        return x * self.gamma + self.beta


@dataclasses.dataclass(frozen=True, slots=True)
class Layers:
    """Makes layers for one layout.

    Weights start at zero: ``weights.draw`` sets them, in the same way on each backend.

    Attributes:
        data_format: ``channels_last`` or ``channels_first``.
        convolution: class of the convolutions.
        transposed_convolution: class of the transposed ones.
    """

    convolution: ClassVar[type[keras.layers.Conv2D]] = keras.layers.Conv2D
    transposed_convolution: ClassVar[type[keras.layers.Conv2DTranspose]] = (
        keras.layers.Conv2DTranspose
    )

    data_format: str

    @property
    def axis(self) -> int:
        """Axis of the channels."""
        return -1 if self.data_format == "channels_last" else 1

    def conv(
        self,
        x: Any,
        filters: int,
        kernel: int,
        *,
        name: str,
        stride: int = 1,
        dilation: int = 1,
        bias: bool = False,
    ) -> Any:
        """A convolution that keeps the size, but for its stride."""
        return self.convolution(
            filters,
            kernel,
            strides=stride,
            padding="same",
            dilation_rate=dilation,
            use_bias=bias,
            kernel_initializer="zeros",
            data_format=self.data_format,
            name=name,
        )(x)

    def norm(self, x: Any, name: str) -> Any:
        """Batch norm."""
        return keras.layers.BatchNormalization(axis=self.axis, name=name, **_NORM)(x)

    def conv_norm(
        self,
        x: Any,
        filters: int,
        kernel: int,
        *,
        name: str,
        stride: int = 1,
        dilation: int = 1,
    ) -> Any:
        """A convolution and its batch norm."""
        x = self.conv(x, filters, kernel, name=f"{name}_0", stride=stride, dilation=dilation)
        return self.norm(x, f"{name}_1")

    def conv_norm_relu(
        self, x: Any, filters: int, kernel: int, *, name: str, **options: int
    ) -> Any:
        """A convolution, its batch norm and ReLU."""
        return keras.ops.relu(self.conv_norm(x, filters, kernel, name=name, **options))

    def transposed_conv(self, x: Any, filters: int, name: str) -> Any:
        """A 3 x 3 transposed convolution that doubles rows and columns, as in DeepCAM's decoder."""
        return self.transposed_convolution(
            filters,
            3,
            strides=2,
            padding="same",
            use_bias=False,
            kernel_initializer="zeros",
            data_format=self.data_format,
            name=name,
        )(x)

    def halved_maximum(self, x: Any, name: str) -> Any:
        """The largest of 3 x 3 pixels, at every second one."""
        return keras.layers.MaxPooling2D(
            3, strides=2, padding="same", data_format=self.data_format, name=name
        )(x)

    def spread_mean(self, x: Any, filters: int, name: str) -> Any:
        """The mean of the whole map through a 1 x 1 convolution, at every pixel again."""
        mean = keras.layers.GlobalAveragePooling2D(
            data_format=self.data_format, keepdims=True, name=f"{name}_0"
        )(x)
        mean = self.conv(mean, filters, 1, name=f"{name}_1")
        # No batch norm: with a batch of one there is a single value in each channel.
        mean = keras.ops.relu(Affine(self.axis, name=f"{name}_2")(mean))
        shape = list(x.shape)
        shape[self.axis] = filters
        return keras.ops.broadcast_to(mean, tuple(shape))

    def joined(self, parts: list[Any]) -> Any:
        """Maps of the same size, channels one after the other."""
        return keras.ops.concatenate(parts, axis=self.axis)
