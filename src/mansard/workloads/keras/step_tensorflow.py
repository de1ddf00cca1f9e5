"""Steps of Keras on TensorFlow: one program of XLA, graphs, or operation by operation."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from mansard.collect import phase
from mansard.workloads.keras.problem import Problem, device_index
from mansard.workloads.workload import Unavailable


def capability(index: int) -> tuple[int, int]:
    """Compute capability of a GPU.

    Raises:
        Unavailable: there is no such GPU.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        raise Unavailable(
            "TensorFlow sees no NVIDIA GPU: it needs its CUDA libraries (pip install "
            "'tensorflow[and-cuda]'), and `mansard doctor` says what else is missing"
        )
    if index >= len(devices):
        raise Unavailable(f"there is no GPU {index}: TensorFlow sees {len(devices)}")
    details = tf.config.experimental.get_device_details(devices[index])
    major, minor = details["compute_capability"]
    return int(major), int(minor)


def place(device: str) -> str:
    """What TensorFlow calls a device."""
    return "cpu:0" if device == "cpu" else f"gpu:{device_index(device)}"


@contextlib.contextmanager
def switched(*, tf32: bool) -> Iterator[None]:
    """Allow TF32 in float32 products or not; afterwards as before."""
    switch = tf.config.experimental
    before = switch.tensor_float_32_execution_enabled()
    switch.enable_tensor_float_32_execution(tf32)
    try:
        yield
    finally:
        switch.enable_tensor_float_32_execution(before)


def make_step(problem: Problem) -> tuple[Callable[[], Any], Callable[[], None]]:
    """An iteration as the execution says.

    ``xla`` is one program without phases. For ``graph`` forward, backward and optimizer are
    functions of TensorFlow each, so that they can be told apart; ``eager`` has the same phases.

    Returns:
        What runs it and gives the loss, and what waits for it.
    """
    network, optimizer = problem.network, problem.optimizer
    trained = network.trainable_variables

    def forward() -> tuple[tf.Tensor, tf.Tensor]:
        loss = problem.loss(network(problem.images, training=True), problem.labels)
        return loss, optimizer.scale_loss(loss)

    def apply(gradients: list[tf.Tensor]) -> None:
        optimizer.apply(gradients, trained)

    if problem.execution == "graph":
        forward, apply = tf.function(forward), tf.function(apply)

    def phased() -> tf.Tensor:
        with phase("forward"), tf.GradientTape() as tape:
            loss, scaled = forward()
        with phase("backward"):
            gradients = tape.gradient(scaled, [each.value for each in trained])
        with phase("optimizer"):
            apply(gradients)
        return loss

    @tf.function(jit_compile=True)
    def program() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, scaled = forward()
        apply(tape.gradient(scaled, [each.value for each in trained]))
        return loss

    def whole() -> tf.Tensor:
        with phase("step"):
            return program()

    return whole if problem.execution == "xla" else phased, tf.test.experimental.sync_devices
