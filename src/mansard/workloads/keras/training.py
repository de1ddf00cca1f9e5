"""Training steps of DeepLabv3+ in Keras on climate images."""

import contextlib
import dataclasses
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from mansard.workloads.climate import class_weights, generate
from mansard.workloads.flop import phase_flop
from mansard.workloads.keras import weights
from mansard.workloads.keras.deeplab import make_deeplab
from mansard.workloads.keras.layers import Layers
from mansard.workloads.keras.problem import Problem, device_index
from mansard.workloads.keras.refusal import why_not_on_gpu
from mansard.workloads.keras.walk import operations
from mansard.workloads.workload import (
    Configuration,
    Execution,
    ImageSize,
    Precision,
    Unavailable,
    Workload,
)

_POLICIES: dict[Precision, str] = {
    "fp32": "float32",
    "tf32": "float32",
    "amp-fp16": "mixed_float16",
    "amp-bf16": "mixed_bfloat16",
}
#: As of PyTorch's workloads. Keras takes the decay from the weights, PyTorch's Adam adds it to the
#: gradients; both read and write the same.
_LEARNING_RATE, _WEIGHT_DECAY, _EPSILON = 1e-3, 1e-2, 1e-8
#: Keras's own start, 2^15, overflows in the first steps, which then have no optimizer.
_LOSS_SCALE = 2.0**10


@dataclasses.dataclass(slots=True, kw_only=True)
class Training:
    """A network and its steps, which run on one device in one precision.

    Attributes:
        configuration: what it was built from.
        network: what is trained. On JAX its variables are void after the first step, since their
            memory is given to the new ones.
        last: loss of the last step, on the device.
    """

    configuration: Configuration
    network: keras.Model
    last: Any = None
    _body: Callable[[], Any] | None = None
    _wait: Callable[[], None] | None = None

    def step(self) -> None:
        """Run one iteration: forward, loss, backward and optimizer."""
        with _settings(self.configuration):
            body = self._body or self._prepare()
            self.last = body()

    def loss(self) -> float | None:
        """Loss of the last step, after waiting for it."""
        if self.last is None:
            return None
        return float(keras.ops.convert_to_numpy(self.last))

    def synchronize(self) -> None:
        """Wait until the device is done."""
        if self._wait is not None:
            self._wait()

    def _prepare(self) -> Callable[[], Any]:
        """Put the data on the device and make the step of the weights as they are now."""
        size = _image_size(self.configuration)
        batch = generate(size, self.configuration.seed)
        images = batch.images
        if self.configuration.layout == "nhwc":
            images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        optimizer = _make_optimizer(self.configuration.precision)
        optimizer.build(self.network.trainable_variables)
        problem = Problem(
            network=self.network,
            optimizer=optimizer,
            loss=_weighted_cross_entropy(size.classes, self.configuration.layout),
            images=keras.ops.convert_to_tensor(images),
            labels=keras.ops.convert_to_tensor(batch.labels.astype(np.int32)),
            execution=self.configuration.execution,
        )
        body: Callable[[], Any]
        body, self._wait = _backend().make_step(problem)
        self._body = body
        return body


def build(configuration: Configuration) -> Workload:
    """A training step on one batch that stays on the device.

    Raises:
        Unavailable: this machine has no such device, or it cannot compute in this precision.
    """
    training = make_training(configuration)
    return as_workload(training)


def make_training(configuration: Configuration) -> Training:
    """The network with the weights of its seed, before the first step.

    Raises:
        Unavailable: this machine has no such device, or it cannot compute in this precision.
    """
    if configuration.device != "cpu":
        capability = _backend().capability(device_index(configuration.device))
        reason = why_not_on_gpu(configuration, capability)
        if reason is not None:
            raise Unavailable(reason)
    with _settings(configuration), _policy(configuration.precision):
        network = make_deeplab(
            _image_size(configuration),
            configuration.layout,
            layers_of(configuration.execution),
        )
        weights.draw(network, configuration.seed)
    return Training(configuration=configuration, network=network)


def layers_of(execution: Execution) -> type[Layers]:
    """What makes the layers of a network for an execution."""
    if execution != "xla-gradients":
        return Layers
    kind: type[Layers] = importlib.import_module(
        "mansard.workloads.keras.layers_jax"
    ).GradientLayers
    return kind


def as_workload(training: Training) -> Workload:
    """What a study takes."""
    layers = operations(training.network)
    return Workload(
        configuration=training.configuration,
        step=training.step,
        loss=training.loss,
        parameters=sum(math.prod(each.shape) for each in training.network.trainable_variables),
        flop=phase_flop(layers, phases=("forward", "backward")),
        synchronize=training.synchronize,
        phases="own",
        layers=layers,
    )


def _weighted_cross_entropy(classes: int, layout: str) -> Callable[[Any, Any], Any]:
    """DeepCAM's loss: cross entropy times the weight of the pixel's class, mean over pixels."""
    # Once: in the loss it would be a copy to the device that each step waits for.
    by_class = keras.ops.convert_to_tensor(np.array(class_weights(classes), dtype=np.float32))

    def loss(scores: Any, labels: Any) -> Any:
        scores = keras.ops.cast(scores, "float32")
        if layout == "nchw":
            scores = keras.ops.moveaxis(scores, 1, -1)
        losses = keras.ops.sparse_categorical_crossentropy(labels, scores, from_logits=True)
        of_pixels = keras.ops.take(by_class, labels)
        return keras.ops.mean(losses * of_pixels)

    return loss


def _make_optimizer(precision: Precision) -> keras.optimizers.Optimizer:
    adam = keras.optimizers.Adam(_LEARNING_RATE, epsilon=_EPSILON, weight_decay=_WEIGHT_DECAY)
    if precision != "amp-fp16":
        return adam
    return keras.optimizers.LossScaleOptimizer(adam, initial_scale=_LOSS_SCALE)


@contextlib.contextmanager
def _settings(configuration: Configuration) -> Iterator[None]:
    """The device and the products of a configuration; afterwards as before."""
    # Where products are in 16 bits, PyTorch's workloads allow TF32 for the rest.
    tf32 = configuration.precision != "fp32"
    with keras.device(_backend().place(configuration.device)), _backend().switched(tf32=tf32):
        yield


@contextlib.contextmanager
def _policy(precision: Precision) -> Iterator[None]:
    """Layers that are made in the block compute as the precision says."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(_POLICIES[precision])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _backend() -> Any:
    """The module of the backend that Keras was loaded with."""
    return importlib.import_module(f"mansard.workloads.keras.step_{keras.config.backend()}")


def _image_size(configuration: Configuration) -> ImageSize:
    if not isinstance(configuration.size, ImageSize):
        raise TypeError(configuration.size)
    return configuration.size
