"""Cells that the report lays side by side: before and after a change, or two ways of one step."""

import dataclasses

from mansard.study.plan import TRANSFORMERS, Where
from mansard.workloads.workload import Preset

#: Advice whose time a compiler can win: it fuses kernels, writes others, and launches fewer.
_COMPILER = (
    *("latency-bound", "no-reuse", "casts-and-copies", "joins"),
    *("launch-bound", "idle-gpu"),
)


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


def pairs(device: str, preset: Preset = "paper") -> tuple[Pair, ...]:
    """Changes that advice should lead to, each with a cell before and one after."""
    at = Where(device, preset)
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
    at = Where(device, preset)
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
            for model, words in TRANSFORMERS
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
