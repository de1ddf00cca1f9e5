"""Steps of Keras on PyTorch, operation by operation."""

from collections.abc import Callable
from typing import Any

import torch

from mansard.collect import phase
from mansard.workloads.keras.problem import Problem, device_index
from mansard.workloads.pytorch.precision import Arithmetic
from mansard.workloads.pytorch.precision import switched as switched_arithmetic
from mansard.workloads.workload import Unavailable


def capability(index: int) -> tuple[int, int]:
    """Compute capability of a GPU.

    Raises:
        Unavailable: there is no such GPU.
    """
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch sees no NVIDIA GPU: `mansard doctor` says what is missing")
    if index >= torch.cuda.device_count():
        raise Unavailable(f"there is no GPU {index}: PyTorch sees {torch.cuda.device_count()}")
    major, minor = torch.cuda.get_device_capability(index)
    return major, minor


def place(device: str) -> str:
    """What Keras calls a device."""
    # "cpu:0" would make the weights copies of themselves, which get no gradients.
    return "cpu" if device == "cpu" else f"cuda:{device_index(device)}"


def switched(*, tf32: bool) -> Any:
    """Allow TF32 in float32 products or not; afterwards as before."""
    return switched_arithmetic(Arithmetic(tf32=tf32))


def make_step(problem: Problem) -> tuple[Callable[[], Any], Callable[[], None]]:
    """An iteration with the phases forward, backward and optimizer.

    Returns:
        What runs it and gives the loss, and what waits for it.
    """
    network, optimizer = problem.network, problem.optimizer
    trained = network.trainable_variables

    def step() -> torch.Tensor:
        with phase("forward"):
            loss = problem.loss(network(problem.images, training=True), problem.labels)
        with phase("backward"):
            optimizer.scale_loss(loss).backward()
        with phase("optimizer"), torch.no_grad():
            optimizer.apply([each.value.grad for each in trained], trained)
            for each in trained:
                each.value.grad = None
        return loss.detach()

    def wait() -> None:
        if problem.images.is_cuda:
            torch.cuda.synchronize(problem.images.device)

    return step, wait
