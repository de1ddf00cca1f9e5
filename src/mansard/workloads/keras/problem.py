"""What a backend makes a training step of."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a backend makes a step of.

    Attributes:
        network: gives scores of images.
        optimizer: knows the network's weights.
        loss: of scores and labels, a scalar in float32.
        images: on the device.
        labels: on the device.
        execution: of the configuration.
    """

    network: keras.Model
    optimizer: keras.optimizers.Optimizer
    loss: Callable[[Any, Any], Any]
    images: Any
    labels: Any
    execution: str


def device_index(device: str) -> int:
    """Number of a GPU that is called ``cuda`` or ``cuda:1``."""
    return int(device.partition(":")[2] or 0)
