"""Matrix products in 8-bit floating point, scaled by the largest value of each tensor.

Values and weights are E4M3, gradients E5M2, as arXiv 2209.05433 proposes; the results are bfloat16.
"""

from typing import Any

import torch
from torch import nn

_E4M3, _E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
#: Keeps the scale of an all-zero tensor finite.
_LEAST = torch.finfo(torch.float32).tiny ** 0.5
#: Both lengths of the right factor must be multiples of this.
MULTIPLE = 16


def quantized(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor in 8 bits, and the float32 factor that gives it back."""
    largest = torch.finfo(dtype).max
    inverse = x.detach().abs().amax().float().clamp(min=_LEAST) / largest
    scaled = (x.detach().float() / inverse).clamp(-largest, largest)
    return scaled.to(dtype), inverse


def _product(
    left: tuple[torch.Tensor, torch.Tensor],
    right: tuple[torch.Tensor, torch.Tensor],
    *,
    quick: bool,
) -> torch.Tensor:
    """Left (M, K) times the transposed right (N, K), both with rows in one piece."""
    return torch._scaled_mm(  # noqa: SLF001  (the only way there is before PyTorch 2.10)
        left[0],
        right[0].t(),
        scale_a=left[1],
        scale_b=right[1],
        out_dtype=torch.bfloat16,
        use_fast_accum=quick,
    )


class _Product(torch.autograd.Function):
    """x times the transposed weights, with both gradients in 8 bits."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return _product(quantized(x, _E4M3), quantized(weight, _E4M3), quick=True)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        gradient, inverse = quantized(gradients[0], _E5M2)
        weight8, weight_inverse = quantized(weight, _E4M3)
        x8, x_inverse = quantized(x, _E4M3)
        # The product takes rows in one piece only, so the other order is copied. Gradients are
        # small next to their sum, which needs the exact accumulation.
        to_x = _product(
            (gradient, inverse), (weight8.t().contiguous(), weight_inverse), quick=False
        )
        to_weight = _product(
            (gradient.t().contiguous(), inverse), (x8.t().contiguous(), x_inverse), quick=False
        )
        return to_x.to(x.dtype), to_weight.to(weight.dtype)


class Fp8Linear(nn.Linear):
    """A linear layer without bias, multiplied in 8 bits; in and out are bfloat16."""

    held: tuple[torch.Tensor, torch.Tensor] | None = None

    def hold(self) -> None:
        """Convert the weights once and for all, for inference."""
        self.held = quantized(self.weight, _E4M3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., in features) to (..., out features)."""
        rows = x.reshape(-1, self.in_features)
        if self.held is not None:
            result = _product(quantized(rows, _E4M3), self.held, quick=True)
        else:
            result = _Product.apply(rows, self.weight)
        return result.reshape(*x.shape[:-1], self.out_features)
