"""The matrix of the DeepCAM study: which cells there are, in which order, and what they show.

The paper (arXiv 2009.05257) varied precision (apex O0, O1, O2), optimizer and framework on a V100.
Here are the same questions with what a person would choose today, and one change at a time.
"""

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence

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


#: Advice whose time a compiler can win: it fuses kernels, writes others, and launches fewer.
_COMPILER = (
    *("latency-bound", "no-reuse", "casts-and-copies", "joins"),
    *("launch-bound", "idle-gpu"),
)


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A step before and after a change, and the advice that should have named it.

    Attributes:
        change: in words.
        before: name of the cell before.
        after: name of the cell after.
        rules: advice (docs/advice.md) whose time the change can win.
    """

    change: str
    before: str
    after: str
    rules: tuple[str, ...]


_MODELS = {
    "deeplab-resnet50": "ResNet-50",
    "deeplab-xception": "Xception",
    "transformer-prefill": "prefill",
    "transformer-decode": "decode",
    "transformer-train": "transformer",
}
_TRANSFORMERS: tuple[tuple[Model, str], ...] = (
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
class _Where:
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
    at = _Where(device, preset)
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
            for model, _ in _TRANSFORMERS
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


def pairs(device: str, preset: Preset = "paper") -> tuple[Pair, ...]:
    """Changes that advice should lead to, each with a cell before and one after."""
    at = _Where(device, preset)
    net, base = at.net, at.net("amp-bf16")
    changes = (
        (
            "NCHW to NHWC",
            net("amp-bf16", "nchw"),
            base,
            ("layout-changes", "casts-and-copies"),
        ),
        (
            "Adam as a loop to fused Adam",
            net("amp-bf16", "nhwc", "adam-loop"),
            base,
            ("launch-bound", "idle-gpu"),
        ),
        (
            "eager to a CUDA graph",
            base,
            net("amp-bf16", "nhwc", "adam-fused", "graph"),
            ("idle-gpu", "launch-bound"),
        ),
        (
            "eager to torch.compile",
            base,
            net("amp-bf16", "nhwc", "adam-fused", "compile"),
            _COMPILER,
        ),
        ("fp32 to amp-bf16, NHWC", net("fp32"), base, ("off-tensor", "no-reuse")),
        (
            "fp32 to amp-bf16, NCHW",
            net("fp32", "nchw"),
            net("amp-bf16", "nchw"),
            ("off-tensor", "no-reuse"),
        ),
        ("fp32 to tf32, NHWC", net("fp32"), net("tf32"), ("off-tensor",)),
        ("fp32 to tf32, NCHW", net("fp32", "nchw"), net("tf32", "nchw"), ("off-tensor",)),
        (
            "fp32 to amp-fp16, the paper's network",
            net("fp32", "nchw", "adam-loop", model="deeplab-xception"),
            net("amp-fp16", "nchw", "adam-loop", model="deeplab-xception"),
            ("off-tensor", "no-reuse"),
        ),
        (
            "Keras's layers to PyTorch's",
            at.keras("keras-torch", "eager"),
            base,
            ("casts-and-copies", "no-reuse", "latency-bound", "launch-bound", "idle-gpu"),
        ),
        (
            "XLA: weight gradients for tensor cores",
            at.keras("keras-jax", "xla"),
            at.keras("keras-jax", "xla-gradients"),
            ("idle-sms", "off-tensor", "latency-bound", "layout-changes"),
        ),
        (
            "training in fp8 to bf16",
            at.transformer("transformer-train", "fp8"),
            at.transformer("transformer-train", "bf16"),
            ("casts-and-copies", "no-reuse", "latency-bound", "launch-bound", "idle-gpu"),
        ),
        (
            "decode as a CUDA graph",
            at.transformer("transformer-decode", "bf16"),
            at.transformer("transformer-decode", "bf16", "graph"),
            ("idle-gpu", "launch-bound"),
        ),
        *(
            (
                f"prefill in {precision} with torch.compile",
                at.transformer("transformer-prefill", precision),
                at.transformer("transformer-prefill", precision, "compile"),
                _COMPILER,
            )
            for precision in ("fp8", "bf16")
        ),
    )
    return tuple(
        Pair(change=words, before=before.name, after=after.name, rules=rules)
        for words, before, after, rules in changes
    )


def rivals(device: str, preset: Preset = "paper") -> tuple[Pair, ...]:
    """Ways to run the same step that are laid side by side."""
    at = _Where(device, preset)
    base = at.net("amp-bf16")
    others = (
        ("PyTorch to XLA", base, at.keras("keras-jax", "xla")),
        (
            "PyTorch to XLA with written weight gradients",
            base,
            at.keras("keras-jax", "xla-gradients"),
        ),
        ("PyTorch to Keras on PyTorch", base, at.keras("keras-torch", "eager")),
        ("eager to torch.compile", base, at.net("amp-bf16", "nhwc", "adam-fused", "compile")),
        ("bf16 to fp16, NHWC", base, at.net("amp-fp16")),
        *(
            (f"{words}, bf16 to fp8", at.transformer(model, "bf16"), at.transformer(model, "fp8"))
            for model, words in _TRANSFORMERS
        ),
        (
            "prefill with torch.compile, bf16 to fp8",
            at.transformer("transformer-prefill", "bf16", "compile"),
            at.transformer("transformer-prefill", "fp8", "compile"),
        ),
    )
    return tuple(
        Pair(change=words, before=one.name, after=other.name, rules=())
        for words, one, other in others
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
