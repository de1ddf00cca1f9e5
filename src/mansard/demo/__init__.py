"""The runs that come with Mansard, for a first look without a GPU.

``h200-deeplabv3-step``: one training step of DeepLabv3 with a ResNet-50 (16 x 768 x 1152, batch 2,
bf16) on an H200, recorded by ``mansard profile examples/deeplabv3.py``.
``h200-zoo``: 24 launches of known work on an H200, recorded with Nsight Compute 2025.3.
``v100-deepcam-forward``: the forward pass of DeepCAM in PyTorch (apex O1) on a V100, from the raw
output that the authors of arXiv 2009.05257 published. Made by ``scripts/make_demo_data.py``.
"""

from importlib.resources import files
from pathlib import Path

from mansard.model.run import Run
from mansard.store.run_file import open_run

NAMES = ("h200-deeplabv3-step", "h200-zoo", "v100-deepcam-forward")


def shipped_run(name: str) -> Run:
    """Open one of NAMES."""
    return open_run(Path(str(files(__name__) / f"{name}.parquet")))
