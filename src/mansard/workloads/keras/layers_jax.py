"""Convolutions on JAX whose weight gradients XLA can give to tensor cores.

JAX writes the weight gradient of a transposed or a dilated convolution as a convolution of one map
with another as its filter, as large as the image. On an H200, XLA 0.11 with cuDNN 9.19 ran these
on the vector pipes, some of them in a few blocks, and with the zeros between the pixels multiplied
too. Here both are written as what tensor cores have kernels for: the weight gradient of a strided
convolution, and one matrix product for each pixel of the filter. The numbers are the same to
rounding.
"""

import functools
from typing import Any, ClassVar

import jax
import keras
from jax import numpy as jnp

from mansard.workloads.keras.layers import Layers

_DIMENSIONS = {
    "channels_last": ("NHWC", "HWIO", "NHWC"),
    "channels_first": ("NCHW", "HWIO", "NCHW"),
}


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def doubled(x: jax.Array, kernel: jax.Array, data_format: str) -> jax.Array:
    """A transposed convolution of stride 2.

    Args:
        x: a map.
        kernel: (rows, columns, filters, channels).
        data_format: ``channels_last`` or ``channels_first``.
    """
    result: jax.Array = keras.ops.conv_transpose(
        x, kernel, strides=2, padding="same", data_format=data_format
    )
    return result


def _doubled_forward(
    x: jax.Array, kernel: jax.Array, data_format: str
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return doubled(x, kernel, data_format), (x, kernel)


def _doubled_backward(
    data_format: str, saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, kernel = saved

    # The gradient of this one's image is the transposed convolution, so the gradient of the
    # transposed one is this one, and that of the weights is the same for both.
    def strided(weights: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(
            gradient, weights, (2, 2), "SAME", dimension_numbers=_DIMENSIONS[data_format]
        )

    to_x, pull = jax.vjp(strided, kernel)
    return to_x, pull(x)[0]


doubled.defvjp(_doubled_forward, _doubled_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def dilated(x: jax.Array, kernel: jax.Array, dilation: int, data_format: str) -> jax.Array:
    """A convolution that keeps the size, with holes in its filter.

    Args:
        x: a map.
        kernel: (rows, columns, channels, filters), with odd rows and columns.
        dilation: distance of the filter's pixels.
        data_format: ``channels_last`` or ``channels_first``.
    """
    return _dilated(kernel, dilation, data_format, x)


def _dilated(kernel: jax.Array, dilation: int, data_format: str, x: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (1, 1),
        "SAME",
        rhs_dilation=(dilation, dilation),
        dimension_numbers=_DIMENSIONS[data_format],
    )


def _dilated_forward(
    x: jax.Array, kernel: jax.Array, dilation: int, data_format: str
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return dilated(x, kernel, dilation, data_format), (x, kernel)


def _dilated_backward(
    dilation: int, data_format: str, saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, kernel = saved
    _, pull = jax.vjp(functools.partial(_dilated, kernel, dilation, data_format), x)
    (to_x,) = pull(gradient)
    if data_format == "channels_first":
        x, gradient = (jnp.moveaxis(each, 1, -1) for each in (x, gradient))
    rows, columns = kernel.shape[:2]
    around = [(each // 2 * dilation,) * 2 for each in (rows, columns)]
    padded = jnp.pad(x, [(0, 0), *around, (0, 0)])
    height, width = x.shape[1:3]
    products = [
        jnp.einsum(
            "nhwc,nhwk->ck",
            padded[:, down : down + height, right : right + width],
            gradient,
            preferred_element_type=jnp.float32,
        )
        for down in range(0, rows * dilation, dilation)
        for right in range(0, columns * dilation, dilation)
    ]
    return to_x, jnp.stack(products).reshape(kernel.shape).astype(kernel.dtype)


dilated.defvjp(_dilated_forward, _dilated_backward)


class _Convolution(keras.layers.Conv2D):
    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        dilation = self.dilation_rate[0]
        if dilation == 1:
            return super().convolution_op(inputs, kernel)
        kernel = keras.ops.convert_to_tensor(kernel)
        return dilated(inputs, kernel, dilation, self.data_format)


class _TransposedConvolution(keras.layers.Conv2DTranspose):
    def call(self, inputs: Any) -> Any:
        # Without bias and activation, as ``Layers`` makes them.
        return doubled(inputs, keras.ops.convert_to_tensor(self.kernel), self.data_format)


class GradientLayers(Layers):
    """Layers with these convolutions; all else is the same."""

    convolution: ClassVar[type[keras.layers.Conv2D]] = _Convolution
    transposed_convolution: ClassVar[type[keras.layers.Conv2DTranspose]] = _TransposedConvolution
