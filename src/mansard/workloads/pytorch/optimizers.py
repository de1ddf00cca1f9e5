"""The optimizers of the study."""

import torch
from torch import nn

from mansard.workloads.pytorch.lamb import Lamb
from mansard.workloads.workload import Execution, Optimizer

#: Of DeepCAM's PyTorch version.
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 1e-2
#: The three ways in which PyTorch takes one and the same step.
_ADAM = {
    "adam-loop": {"foreach": False, "fused": False},
    "adam-foreach": {"foreach": True, "fused": False},
    "adam-fused": {"foreach": False, "fused": True},
}


def make_optimizer(
    name: Optimizer, model: nn.Module, execution: Execution
) -> torch.optim.Optimizer:
    """An optimizer for all weights of a model.

    In a CUDA graph the count of steps must lie on the device (``capturable``).
    """
    if name == "lamb":
        return Lamb(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    return torch.optim.Adam(
        model.parameters(),
        lr=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        capturable=execution == "graph",
        **_ADAM[name],
    )
