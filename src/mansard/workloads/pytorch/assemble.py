"""From a model and its loss to a workload: execution, optimizer and waiting."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import nn

from mansard.workloads.flop import phase_flop
from mansard.workloads.pytorch.optimizers import make_optimizer
from mansard.workloads.pytorch.precision import ARITHMETIC
from mansard.workloads.pytorch.step import Body, Runner, captured, inference_body, training_body
from mansard.workloads.workload import Configuration, Operation, Phase, Workload

#: Phases of a step.
TRAINING: tuple[Phase, ...] = ("forward", "backward")
INFERENCE: tuple[Phase, ...] = ("forward",)


@contextlib.contextmanager
def seeded(configuration: Configuration) -> Iterator[None]:
    """New tensors lie on the device, and random ones follow from the seed; afterwards as before."""
    device = torch.device(configuration.device)
    others = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=others), device:
        torch.manual_seed(configuration.seed)
        yield


def assemble_training(
    configuration: Configuration,
    network: nn.Module,
    compute_loss: Body,
    layers: tuple[Operation, ...],
) -> Workload:
    """A training step.

    Args:
        configuration: says how it is executed.
        network: what is trained.
        compute_loss: forward pass and loss.
        layers: of the network, with their analytic work.
    """
    network.train()
    optimizer = make_optimizer(configuration.optimizer, network, configuration.execution)
    if configuration.execution == "compile":
        compute_loss = torch.compile(compute_loss)
    device = torch.device(configuration.device)
    body = training_body(compute_loss, optimizer, ARITHMETIC[configuration.precision], device)
    runner = _executed(configuration, body)

    def loss() -> float | None:
        return None if runner.last is None else float(runner.last)

    return _workload(configuration, network, runner, loss, layers)


def assemble_inference(
    configuration: Configuration,
    network: nn.Module,
    compute: Body,
    layers: tuple[Operation, ...],
) -> Workload:
    """A prefill or a decode step, with the arguments of ``assemble_training``."""
    network.eval()
    if configuration.execution == "compile":
        compute = torch.compile(compute)
    device = torch.device(configuration.device)
    body = inference_body(compute, ARITHMETIC[configuration.precision], device)
    return _workload(configuration, network, _executed(configuration, body), lambda: None, layers)


def _executed(configuration: Configuration, body: Body) -> Runner:
    if configuration.execution != "graph":
        return Runner(body=body)
    with torch.cuda.device(torch.device(configuration.device)):
        return captured(body)


def _workload(
    configuration: Configuration,
    network: nn.Module,
    runner: Runner,
    loss: Callable[[], float | None],
    layers: tuple[Operation, ...],
) -> Workload:
    device = torch.device(configuration.device)

    def synchronize() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return Workload(
        configuration=configuration,
        step=runner,
        loss=loss,
        parameters=sum(weight.numel() for weight in network.parameters()),
        flop=phase_flop(layers, phases=TRAINING if network.training else INFERENCE),
        layers=layers,
        synchronize=synchronize,
        # A replayed graph calls no optimizer and no backward: nothing for PyTorch's hooks to see.
        phases="own" if configuration.execution == "graph" else "torch",
    )
