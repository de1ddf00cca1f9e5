# ruff: noqa: SLF001  (PyTorch's operations on lists of tensors have no other names)
"""LAMB (You et al., arXiv 1904.00962, algorithm 2), on all tensors at once."""

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """Adam's direction, scaled for each tensor by the ratio of its norm to the direction's.

    Nothing waits for the device, the count of steps lies there too, so a step can be captured in a
    CUDA graph. Scaling by a ratio on the device has no form for lists: that is a launch a tensor.
    Apex's version also clips by the norm of all gradients; the paper has no such step,
    and neither has this one.

    Args:
        parameters: what is trained.
        lr: learning rate.
        betas: decay of the two moments.
        eps: added to the root of the second moment.
        weight_decay: of the weights, added to the direction.
    """

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 1e-2,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; parameters without a gradient stay."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._move(weights, group)
        return loss

    def _move(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        gradients = [weight.grad for weight in weights]
        first, second = self._moments(weights)
        if "count" not in group:
            group["count"] = torch.zeros((), dtype=torch.float32, device=weights[0].device)
        count = group["count"].add_(1)
        beta1, beta2 = group["betas"]

        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        # m / (1 - beta1^t) over sqrt(v / (1 - beta2^t)) + eps.
        roots = torch._foreach_div(second, 1 - beta2**count)
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, group["eps"])
        direction = torch._foreach_div(first, 1 - beta1**count)
        torch._foreach_div_(direction, roots)
        torch._foreach_add_(direction, weights, alpha=group["weight_decay"])

        lengths = torch.stack(torch._foreach_norm(weights))
        ratios = lengths / torch.stack(torch._foreach_norm(direction))
        # Nothing to compare with, at the start of a bias for instance: take Adam's step.
        usable = (lengths > 0) & torch.isfinite(ratios)
        rates = torch.where(usable, ratios, torch.ones_like(ratios)) * -group["lr"]
        torch._foreach_mul_(direction, list(rates.unbind()))
        torch._foreach_add_(weights, direction)

    def _moments(
        self, weights: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["first"] = torch.zeros_like(weight)
                self.state[weight]["second"] = torch.zeros_like(weight)
        states = [self.state[weight] for weight in weights]
        return [state["first"] for state in states], [state["second"] for state in states]
