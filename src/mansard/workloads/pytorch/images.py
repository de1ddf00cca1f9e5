"""Training steps of DeepLabv3+ on climate images."""

import functools
from pathlib import Path

import torch
from torch.nn import functional

from mansard.workloads.climate import Batch, class_weights, generate
from mansard.workloads.flop import phase_flop
from mansard.workloads.pytorch.assemble import TRAINING, assemble_training, seeded
from mansard.workloads.pytorch.deeplab import make_deeplab
from mansard.workloads.pytorch.walk import operations
from mansard.workloads.workload import (
    Configuration,
    ImageSize,
    Model,
    Operation,
    PhaseFlop,
    Workload,
)

_FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


def image_flop(model: Model, size: ImageSize) -> tuple[PhaseFlop, ...]:
    """Analytic work of a training step."""
    return phase_flop(image_layers(model, size), phases=TRAINING)


@functools.cache
def image_layers(model: Model, size: ImageSize) -> tuple[Operation, ...]:
    """The layers of a network with their work."""
    with torch.device("meta"):
        network = make_deeplab(model, size)
        images = torch.empty(size.batch, size.channels, size.height, size.width)
    return operations(network, lambda: network(images))


def build(configuration: Configuration, samples: Path | None) -> Workload:
    """A training step on one batch that stays on the device.

    The loss is DeepCAM's: cross entropy times the weight of the pixel's class, mean over pixels.
    """
    size = configuration.size
    if not isinstance(size, ImageSize):
        raise TypeError(size)
    batch = _read(configuration, size, samples)
    device, memory_format = torch.device(configuration.device), _FORMATS[configuration.layout]
    with seeded(configuration):
        network = make_deeplab(configuration.model, size)
    network.to(memory_format=memory_format)
    images = torch.from_numpy(batch.images).to(device).to(memory_format=memory_format)
    labels = torch.from_numpy(batch.labels).to(device)
    weights = torch.tensor(class_weights(size.classes), device=device)

    def compute_loss() -> torch.Tensor:
        losses = functional.cross_entropy(network(images), labels, weight=weights, reduction="none")
        return losses.mean()

    return assemble_training(
        configuration, network, compute_loss, image_layers(configuration.model, size)
    )


def _read(configuration: Configuration, size: ImageSize, samples: Path | None) -> Batch:
    if samples is None:
        return generate(size, configuration.seed)
    from mansard.workloads.climate_files import read_batch  # noqa: PLC0415  (needs h5py)

    return read_batch(samples, size)
