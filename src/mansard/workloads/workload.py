"""What a study runs: a configuration, its sizes, and the step that is built from it."""

import dataclasses
from collections.abc import Callable
from typing import Literal, get_args

from mansard.errors import DeviceError, UsageError

Model = Literal[
    "deeplab-resnet50",
    "deeplab-xception",
    "transformer-prefill",
    "transformer-decode",
    "transformer-train",
]
Framework = Literal["torch", "keras-torch", "keras-jax", "keras-tensorflow"]
Precision = Literal["fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "fp8"]
Layout = Literal["nchw", "nhwc", "none"]
Optimizer = Literal["adam-loop", "adam-foreach", "adam-fused", "lamb", "keras-adam", "none"]
Execution = Literal["eager", "compile", "graph", "xla", "xla-gradients"]
Preset = Literal["paper", "tiny"]
Phase = Literal["forward", "backward"]
Kind = Literal["conv", "depthwise conv", "transposed conv", "gemm", "attention"]

_CHOICES = {
    "model": Model,
    "framework": Framework,
    "precision": Precision,
    "layout": Layout,
    "optimizer": Optimizer,
    "execution": Execution,
}


class Unavailable(DeviceError):  # noqa: N818  (a finding about this machine, not a fault)
    """This configuration cannot be built here; the message is the reason."""


def _positive(size: "ImageSize | TokenSize") -> None:
    for field in dataclasses.fields(size):
        value = getattr(size, field.name)
        if not isinstance(value, int) or value < 1:
            raise UsageError(f"{field.name} of a size is {value!r}: take a whole number above 0")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImageSize:
    """Size of a segmentation step.

    Attributes:
        batch: images in one step.
        height: rows of an image, a multiple of 16 (the output stride).
        width: columns of an image, a multiple of 16.
        channels: variables of the simulation in an image.
        classes: classes of a pixel.
        slim: every channel count inside the network is divided by this (1, 2, 4 or 8); for tests.
    """

    batch: int
    height: int
    width: int
    channels: int = 16
    classes: int = 3
    slim: int = 1

    def __post_init__(self) -> None:
        _positive(self)
        if self.height % 16 or self.width % 16:
            raise UsageError(
                f"an image of {self.height} x {self.width} does not divide by the output stride: "
                "take multiples of 16"
            )
        if self.slim not in {1, 2, 4, 8}:
            raise UsageError(f"slim is {self.slim}: take 1, 2, 4 or 8")

    @property
    def name(self) -> str:
        """Every number with its letter, e.g. ``n2c16h768w1152k3``."""
        slim = f"s{self.slim}" if self.slim != 1 else ""
        return f"n{self.batch}c{self.channels}h{self.height}w{self.width}k{self.classes}{slim}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TokenSize:
    """Size of a step of a decoder-only transformer.

    Attributes:
        batch: sequences in one step.
        tokens: length of a sequence; in a decode step the tokens that attention looks at, the new
            one included.
        layers: blocks.
        width: features of a token, a multiple of twice the heads (rotary positions pair them).
        heads: attention heads.
        vocabulary: different tokens.
    """

    batch: int
    tokens: int
    layers: int
    width: int
    heads: int
    vocabulary: int

    def __post_init__(self) -> None:
        _positive(self)
        if self.width % (2 * self.heads):
            raise UsageError(
                f"width {self.width} does not divide into {self.heads} heads of an even size"
            )

    @property
    def name(self) -> str:
        """Every number with its letter, e.g. ``b1t2048l16d2048h16v32000``."""
        return (
            f"b{self.batch}t{self.tokens}l{self.layers}d{self.width}h{self.heads}v{self.vocabulary}"
        )


Size = ImageSize | TokenSize

#: The paper's training step: two CAM5 images of 768 x 1152 with 16 variables.
PAPER = ImageSize(batch=2, height=768, width=1152)
#: What a CPU does in a blink; same layers, an eighth of the channels.
TINY = ImageSize(batch=2, height=64, width=96, slim=8)
#: Prefill and training of a decoder with 0.94 G parameters.
TOKENS = TokenSize(batch=1, tokens=2048, layers=16, width=2048, heads=16, vocabulary=32000)
#: Decode of the same decoder, many sequences at once.
DECODE_TOKENS = dataclasses.replace(TOKENS, batch=16)
TINY_TOKENS = TokenSize(batch=2, tokens=16, layers=2, width=32, heads=2, vocabulary=64)


def preset_size(model: Model, preset: Preset) -> Size:
    """The size of a model at the paper's scale, or one for tests and machines without a GPU."""
    if model.startswith("deeplab"):
        return PAPER if preset == "paper" else TINY
    if preset == "tiny":
        return TINY_TOKENS
    return DECODE_TOKENS if model == "transformer-decode" else TOKENS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One cell of a study's matrix.

    Attributes:
        model: the network and what is done with it.
        framework: who runs it; ``keras-jax`` is Keras on the JAX backend.
        precision: ``fp32`` has TF32 off; ``amp-...`` is automatic mixed precision.
        layout: order of an image's dimensions in memory; ``none`` for transformers.
        optimizer: ``none`` where nothing is trained.
        execution: ``graph`` is a CUDA graph of the whole step; ``xla-gradients`` is ``xla`` with
            weight gradients that are written for tensor cores.
        size: an ``ImageSize`` for DeepLab, a ``TokenSize`` for a transformer.
        device: ``cuda:0``, ``cpu``, ...
        seed: of the weights and the data.
    """

    model: Model
    framework: Framework
    precision: Precision
    layout: Layout
    optimizer: Optimizer
    execution: Execution
    size: Size
    device: str
    seed: int = 0

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            value = getattr(self, field)
            if value not in get_args(choices):
                known = ", ".join(get_args(choices))
                raise UsageError(f"{value!r} is no {field}: take one of {known}")
        image = self.model.startswith("deeplab")
        if isinstance(self.size, ImageSize) != image:
            wanted = "an ImageSize" if image else "a TokenSize"
            raise UsageError(f"{self.model} needs {wanted}, not {type(self.size).__name__}")
        if not self.device.replace(":", "").isalnum():
            raise UsageError(f"{self.device!r} is no device: take one like 'cuda:0' or 'cpu'")

    @property
    def name(self) -> str:
        """Unique, and a file name."""
        parts: list[str] = [self.model, self.framework, self.precision]
        # The choices of the two have no word in common, so leaving out "none" is unambiguous.
        parts += [part for part in (self.layout, self.optimizer) if part != "none"]
        parts += [self.execution, self.size.name, self.device.replace(":", "")]
        parts += [f"seed{self.seed}"] if self.seed else []
        return "_".join(parts)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One layer of a network.

    Attributes:
        name: of the layer.
        kind: of the operation.
        forward: FLOP of its forward pass.
        backward: FLOP of its backward pass.
    """

    name: str
    kind: Kind
    forward: int
    backward: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFlop:
    """Floating-point operations of one kind in one phase of a step, from the shapes.

    Attributes:
        phase: ``forward`` or ``backward``.
        kind: the operation.
        flop: multiplications and additions, 2 for each pair.
    """

    phase: Phase
    kind: Kind
    flop: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A step that can be run and measured.

    Attributes:
        configuration: what it was built from.
        step: one whole iteration: forward, loss, backward and optimizer, or a prefill, or a decode
            step. It may return before the device is done.
        loss: loss of the last step, after waiting for the device; ``None`` where there is none.
        parameters: trainable numbers of the model.
        flop: analytic work of one step; one entry per phase and kind.
        synchronize: waits until the device is done.
        layers: what the sums in ``flop`` are made of, in the order in which the forward pass calls
            them.
        phases: how the phases are found: ``torch`` (PyTorch's hooks) or ``own`` (``mansard.phase``
            ranges that the step sets).
    """

    configuration: Configuration
    step: Callable[[], None]
    loss: Callable[[], float | None]
    parameters: int
    flop: tuple[PhaseFlop, ...]
    synchronize: Callable[[], None]
    phases: Literal["torch", "own"]
    layers: tuple[Operation, ...] = ()
