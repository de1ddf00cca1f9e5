"""The matrix of the DeepCAM study: which cells there are, in which order, and what they show.

The paper (arXiv 2009.05257) varied precision (apex O0, O1, O2), optimizer and framework on a V100.
Here are the same questions with what a person would choose today, and one change at a time.
"""

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence
from typing import get_args

from mansard.errors import UsageError
from mansard.workloads import Configuration, preset_size
from mansard.workloads.workload import (
    Execution,
    Framework,
    Layout,
    Model,
    Optimizer,
    Precision,
    Preset,
)

#: Studies that exist.
STUDIES = ("deepcam",)

#: Phases of a training step, in order.
PHASES = ("forward", "backward", "optimizer")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One entry of the matrix.

    Attributes:
        configuration: what runs.
        quick: whether ``--quick`` runs it.
        charts: phases of which the report draws Roofline charts; of a step without phases, that
            of the whole step.
    """

    configuration: Configuration
    quick: bool = False
    charts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Unique, and a file name."""
        return self.configuration.name

    @property
    def title(self) -> str:
        """What a person calls it."""
        return title(self.configuration)

    @property
    def order(self) -> tuple[int, int]:
        """Place of its network, then of its precision, where cells stand in groups."""
        models, precisions = get_args(Model), get_args(Precision)
        return (
            models.index(self.configuration.model),
            precisions.index(self.configuration.precision),
        )


_MODELS = {
    "deeplab-resnet50": "ResNet-50",
    "deeplab-xception": "Xception",
    "transformer-prefill": "prefill",
    "transformer-decode": "decode",
    "transformer-train": "transformer",
}
#: Transformers, and what each does.
TRANSFORMERS: tuple[tuple[Model, str], ...] = (
    ("transformer-train", "training"),
    ("transformer-prefill", "prefill"),
    ("transformer-decode", "decode"),
)
_FRAMEWORKS = {
    "torch": "PyTorch",
    "keras-torch": "Keras/PyTorch",
    "keras-jax": "Keras/JAX",
    "keras-tensorflow": "Keras/TensorFlow",
}


def title(configuration: Configuration) -> str:
    """A configuration as a person says it, without what never varies in the study."""
    parts = [
        _MODELS[configuration.model],
        _FRAMEWORKS[configuration.framework],
        configuration.precision,
        configuration.layout,
        configuration.optimizer,
        configuration.execution,
    ]
    return " ".join(part for part in parts if part != "none")


@dataclasses.dataclass(frozen=True, slots=True)
class Where:
    """The device and the size that all cells of a plan share."""

    device: str
    preset: Preset

    def net(
        self,
        precision: Precision,
        layout: Layout = "nhwc",
        optimizer: Optimizer = "adam-fused",
        execution: Execution = "eager",
        *,
        model: Model = "deeplab-resnet50",
        framework: Framework = "torch",
    ) -> Configuration:
        """One configuration of the segmentation network."""
        return Configuration(
            model=model,
            framework=framework,
            precision=precision,
            layout=layout,
            optimizer=optimizer,
            execution=execution,
            size=preset_size(model, self.preset),
            device=self.device,
        )

    def keras(self, framework: Framework, execution: Execution) -> Configuration:
        """The same network in Keras, in bf16."""
        return self.net("amp-bf16", "nhwc", "keras-adam", execution, framework=framework)

    def transformer(
        self, model: Model, precision: Precision, execution: Execution = "eager"
    ) -> Configuration:
        """The decoder-only transformer."""
        optimizer: Optimizer = "adam-fused" if model == "transformer-train" else "none"
        return self.net(precision, "none", optimizer, execution, model=model)


def deepcam(device: str, preset: Preset = "paper") -> tuple[Cell, ...]:
    """Every cell, the most important first, so that an interrupted study answers most.

    Args:
        device: of all cells, e.g. ``cuda:0``.
        preset: ``paper`` for the paper's sizes, ``tiny`` for a machine without a GPU.
    """
    at = Where(device, preset)
    net, keras = at.net, at.keras
    charts = {
        net("amp-bf16").name: PHASES,
        net("fp32", "nchw").name: PHASES,
        keras("keras-jax", "xla").name: PHASES,
        keras("keras-jax", "xla-gradients").name: PHASES,
        at.transformer("transformer-prefill", "bf16").name: PHASES,
        at.transformer("transformer-prefill", "fp8", "compile").name: PHASES,
        at.transformer("transformer-prefill", "bf16", "compile").name: PHASES,
        at.transformer("transformer-decode", "bf16").name: PHASES,
        net("amp-fp16", "nchw", "adam-loop", model="deeplab-xception").name: PHASES,
        net("amp-bf16", "nhwc", "lamb").name: ("optimizer",),
    }
    quick = (
        net("amp-bf16"),
        net("amp-bf16", "nchw"),
        net("fp32", "nchw"),
        net("amp-bf16", "nhwc", "adam-loop"),
        net("amp-bf16", "nhwc", "adam-fused", "graph"),
        keras("keras-jax", "xla"),
    )
    further = (
        keras("keras-jax", "xla-gradients"),
        net("amp-bf16", "nhwc", "adam-fused", "compile"),
        net("fp32"),
        net("amp-fp16", "nchw", "adam-loop", model="deeplab-xception"),
        net("fp32", "nchw", "adam-loop", model="deeplab-xception"),
        net("amp-bf16", "nhwc", "lamb"),
        net("amp-bf16", "nhwc", "adam-foreach"),
        net("tf32", "nchw"),
        net("tf32"),
        net("amp-fp16", "nchw"),
        net("amp-fp16"),
        keras("keras-tensorflow", "xla"),
        keras("keras-torch", "eager"),
        *(
            at.transformer(model, precision)
            for model, _ in TRANSFORMERS
            for precision in ("bf16", "fp8")
        ),
        at.transformer("transformer-decode", "bf16", "graph"),
        at.transformer("transformer-prefill", "fp8", "compile"),
        at.transformer("transformer-prefill", "bf16", "compile"),
    )
    return tuple(
        Cell(configuration=each, quick=each in quick, charts=charts.get(each.name, ()))
        for each in (*quick, *further)
    )


def chosen(cells: Iterable[Cell], *, quick: bool = False, only: Sequence[str] = ()) -> list[Cell]:
    """The cells that were asked for, each once.

    Args:
        cells: all.
        quick: only those of the quick study.
        only: parts of names, ``*`` and ``?`` stand for any letters; those of the first part come
            first. All, in their order, where it is empty.

    Raises:
        UsageError: there is no cell of one of the parts.
    """
    whole = [cell for cell in cells if cell.quick or not quick]
    if not only:
        return whole
    found: dict[str, Cell] = {}
    for part in only:
        matching = [cell for cell in whole if fnmatch.fnmatchcase(cell.name, f"*{part}*")]
        if not matching:
            raise UsageError(
                f"no cell of the study matches '{part[:80]}'; see 'mansard study deepcam --list'"
            )
        for cell in matching:
            found.setdefault(cell.name, cell)
    return list(found.values())
