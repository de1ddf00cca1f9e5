"""Steps of Keras on JAX, each one program of XLA."""

from collections.abc import Callable
from typing import Any

import jax
import keras

from mansard.collect import phase
from mansard.workloads.keras.problem import Problem, device_index
from mansard.workloads.workload import Unavailable

_State = tuple[list[jax.Array], list[jax.Array], list[jax.Array]]


def capability(index: int) -> tuple[int, int]:
    """Compute capability of a GPU.

    Raises:
        Unavailable: there is no such GPU.
    """
    try:
        devices = jax.devices("gpu")
    except RuntimeError as error:
        raise Unavailable(
            "JAX sees no NVIDIA GPU: it needs its CUDA plugin (pip install 'jax[cuda13]'), and "
            "`mansard doctor` says what else is missing"
        ) from error
    if index >= len(devices):
        raise Unavailable(f"there is no GPU {index}: JAX sees {len(devices)}")
    major, _, minor = devices[index].compute_capability.partition(".")
    return int(major), int(minor)


def place(device: str) -> jax.Device:
    """The device itself, which Keras takes too."""
    if device == "cpu":
        return jax.devices("cpu")[0]
    return jax.devices("gpu")[device_index(device)]


def switched(*, tf32: bool) -> Any:
    """Allow TF32 in float32 products or not; afterwards as before."""
    return jax.default_matmul_precision("tensorfloat32" if tf32 else "float32")


def make_step(problem: Problem) -> tuple[Callable[[], Any], Callable[[], None]]:
    """An iteration as one program; inside it there are no phases.

    The memory of weights, their statistics and the optimizer's state is given to the new ones.

    Returns:
        What runs it and gives the loss, and what waits for it.
    """
    network, optimizer = problem.network, problem.optimizer

    def compute(
        trained: list[jax.Array],
        others: list[jax.Array],
        state: list[jax.Array],
        data: tuple[jax.Array, jax.Array],
    ) -> tuple[jax.Array, tuple[jax.Array, list[jax.Array]]]:
        images, labels = data
        scores, others = network.stateless_call(trained, others, images, training=True)
        loss = problem.loss(scores, labels)
        with keras.StatelessScope(state_mapping=list(zip(optimizer.variables, state, strict=True))):
            scaled = optimizer.scale_loss(loss)
        return scaled, (loss, others)

    differentiate = jax.value_and_grad(compute, has_aux=True)

    # The data are arguments: as constants they would be part of the program, and what XLA can
    # work out of them would be done once, when it compiles.
    def train(variables: _State, data: tuple[jax.Array, jax.Array]) -> tuple[_State, jax.Array]:
        trained, others, state = variables
        (_, (loss, others)), gradients = differentiate(trained, others, state, data)
        trained, state = optimizer.stateless_apply(state, gradients, trained)
        return (trained, others, state), loss

    compiled = jax.jit(train, donate_argnums=0)
    data = (problem.images, problem.labels)
    held: list[_State] = [
        (
            [each.value for each in network.trainable_variables],
            [each.value for each in network.non_trainable_variables],
            [each.value for each in optimizer.variables],
        )
    ]

    def step() -> jax.Array:
        with phase("step"):
            held[0], loss = compiled(held[0], data)
            # Another thread of JAX may launch the kernels: they belong to the phase.
            jax.block_until_ready(held[0])
        return loss

    def wait() -> None:
        jax.block_until_ready(held[0])

    return step, wait
