"""Training and inference steps that are known to the last multiplication, for studies."""

import importlib
from pathlib import Path

from mansard.errors import UsageError
from mansard.workloads.workload import (
    Configuration,
    ImageSize,
    PhaseFlop,
    Size,
    TokenSize,
    Unavailable,
    Workload,
    preset_size,
)

__all__ = [
    "Configuration",
    "ImageSize",
    "PhaseFlop",
    "Size",
    "TokenSize",
    "Unavailable",
    "Workload",
    "build",
    "preset_size",
]

#: Module with a function ``build`` for each framework, loaded when it is asked for.
_BUILDERS = {
    "torch": "mansard.workloads.pytorch",
    "keras-torch": "mansard.workloads.keras",
    "keras-jax": "mansard.workloads.keras",
    "keras-tensorflow": "mansard.workloads.keras",
}


def build(configuration: Configuration, *, samples: Path | None = None) -> Workload:
    """Make the model, its data and its optimizer on the device.

    Args:
        configuration: what to build.
        samples: folder with DeepCAM's own HDF5 files; generated images where it is left out.
            PyTorch's image workloads alone read it.

    Raises:
        Unavailable: it cannot be built here; the message says why.
    """
    options = {} if samples is None else {"samples": samples}
    if options and (
        configuration.framework != "torch" or isinstance(configuration.size, TokenSize)
    ):
        raise UsageError(f"{configuration.name} does not read samples: leave the folder out")
    module = importlib.import_module(_BUILDERS[configuration.framework])
    built: Workload = module.build(configuration, **options)
    return built
