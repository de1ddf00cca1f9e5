"""The operations of a Keras network, from the shapes of its layers."""

import keras

from mansard.workloads.flop import conv_flop, gradient_flop, transposed_conv_flop
from mansard.workloads.workload import Operation


def operations(network: keras.Model) -> tuple[Operation, ...]:
    """What a training step does in each convolution.

    Args:
        network: a functional model of a known batch size.
    """
    found = []
    for layer in network.layers:
        if not isinstance(layer, keras.layers.Conv2D | keras.layers.Conv2DTranspose):
            continue
        channels_last = layer.data_format == "channels_last"
        axis, rows_and_columns = (-1, slice(1, 3)) if channels_last else (1, slice(2, 4))
        inward, outward = layer.input.shape, layer.output.shape
        shape = {
            "batch": inward[0],
            "channels": inward[axis],
            "filters": outward[axis],
            "kernel": layer.kernel_size,
        }
        transposed = isinstance(layer, keras.layers.Conv2DTranspose)
        forward = (
            transposed_conv_flop(**shape, inputs=inward[rows_and_columns])
            if transposed
            else conv_flop(**shape, output=outward[rows_and_columns])
        )
        found.append(
            Operation(
                name=layer.name,
                kind="transposed conv" if transposed else "conv",
                forward=forward,
                # Nobody asks for the gradient of the images.
                backward=gradient_flop(
                    forward, data=layer.input is not network.inputs[0], weight=True
                ),
            )
        )
    return tuple(found)
