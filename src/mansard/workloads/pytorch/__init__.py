"""The workloads in PyTorch."""

import importlib
import importlib.util
from pathlib import Path

from mansard.workloads.workload import Configuration, Unavailable, Workload


def build(configuration: Configuration, samples: Path | None = None) -> Workload:
    """Make the model, its data and its optimizer on the device.

    Args:
        configuration: what to build.
        samples: folder with DeepCAM's own files; generated images where it is left out.

    Raises:
        Unavailable: it cannot be built here; the message says why.
    """
    if importlib.util.find_spec("torch") is None:
        raise Unavailable("PyTorch is not installed: pip install 'mansard[torch]'")
    refusal = importlib.import_module("mansard.workloads.pytorch.refusal")
    reason = refusal.why_not(configuration)
    if reason is not None:
        raise Unavailable(reason)
    if configuration.model.startswith("deeplab"):
        images = importlib.import_module("mansard.workloads.pytorch.images")
        built: Workload = images.build(configuration, samples)
    else:
        tokens = importlib.import_module("mansard.workloads.pytorch.tokens")
        built = tokens.build(configuration)
    return built
