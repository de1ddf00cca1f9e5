"""How the numbers of a step are computed: the switches of PyTorch for each precision."""

import contextlib
import dataclasses
from collections.abc import Iterator

import torch

from mansard.workloads.workload import Precision


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """What a precision means.

    Attributes:
        weights: type of the weights.
        autocast: type that products are cast to, ``None`` without automatic mixed precision.
        tf32: whether float32 products may use TF32.
        scaled_loss: whether gradients would vanish without a scale on the loss.
    """

    weights: torch.dtype = torch.float32
    autocast: torch.dtype | None = None
    tf32: bool = True
    scaled_loss: bool = False


ARITHMETIC: dict[Precision, Arithmetic] = {
    "fp32": Arithmetic(tf32=False),
    "tf32": Arithmetic(),
    "amp-fp16": Arithmetic(autocast=torch.float16, scaled_loss=True),
    "amp-bf16": Arithmetic(autocast=torch.bfloat16),
    "bf16": Arithmetic(weights=torch.bfloat16),
    "fp8": Arithmetic(weights=torch.bfloat16),
}


@contextlib.contextmanager
def switched(arithmetic: Arithmetic) -> Iterator[None]:
    """Set TF32 as the precision has it and let cuDNN choose by trying; afterwards as before."""
    before = torch.get_float32_matmul_precision()
    wanted = "high" if arithmetic.tf32 else "highest"
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=arithmetic.tf32):
        torch.set_float32_matmul_precision(wanted)
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


def autocast(
    arithmetic: Arithmetic, device: torch.device
) -> contextlib.AbstractContextManager[None]:
    """The context of a forward pass and its loss."""
    if arithmetic.autocast is None:
        return contextlib.nullcontext()
    context: contextlib.AbstractContextManager[None] = torch.autocast(
        device.type, dtype=arithmetic.autocast
    )
    return context
