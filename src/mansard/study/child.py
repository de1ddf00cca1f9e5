"""The process of one cell: ``python -m mansard.study.child FOLDER DEVICE PRESET NAME``.

It writes the cell's files and says nothing; its output is the frameworks' own.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mansard.errors import UsageError
from mansard.study.cell import Folder
from mansard.study.measure import measure_cell
from mansard.study.plan import Cell, deepcam
from mansard.workloads.workload import Preset


def main(arguments: Sequence[str]) -> None:
    """Measure one cell of the plan.

    Raises:
        UsageError: there is no such cell.
    """
    path, device, size, name = arguments
    preset: Preset = "tiny" if size == "tiny" else "paper"
    cell = next((each for each in deepcam(device, preset) if each.name == name), None)
    if cell is None:
        raise UsageError(f"there is no cell '{name[:200]}'")
    prepare(cell)
    measure_cell(cell, Folder(Path(path)), preset=preset)


def prepare(cell: Cell) -> None:
    """Set what must be set before the framework of a cell starts."""
    framework = cell.configuration.framework
    if not framework.startswith("keras-"):
        return
    os.environ["KERAS_BACKEND"] = framework.removeprefix("keras-")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if cell.configuration.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        return
    # The images of the counters need memory of the GPU too.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if framework != "keras-torch":
        from mansard.collect.instruments import Level  # noqa: PLC0415
        from mansard.collect.program import prepare_environment  # noqa: PLC0415

        prepare_environment(Level.COUNTERS)


if __name__ == "__main__":
    main(sys.argv[1:])
