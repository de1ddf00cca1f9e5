"""LAMB against a step on paper."""

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mansard.workloads.pytorch.lamb import Lamb  # noqa: E402


def _by_hand(weights, gradients, *, lr, beta1, beta2, eps, decay):
    """Algorithm 2 of arXiv 1904.00962 for one tensor, in plain Python."""
    first = [0.0] * len(weights)
    second = [0.0] * len(weights)
    for step, gradient in enumerate(gradients, start=1):
        first = [beta1 * m + (1 - beta1) * g for m, g in zip(first, gradient, strict=True)]
        second = [beta2 * v + (1 - beta2) * g * g for v, g in zip(second, gradient, strict=True)]
        direction = [
            m / (1 - beta1**step) / (math.sqrt(v / (1 - beta2**step)) + eps) + decay * w
            for m, v, w in zip(first, second, weights, strict=True)
        ]
        ratio = math.hypot(*weights) / math.hypot(*direction)
        weights = [w - lr * ratio * d for w, d in zip(weights, direction, strict=True)]
    return weights


def test_the_first_step_is_the_one_on_paper():
    # Without decay the first direction is the sign of each gradient, of norm sqrt(2); the weights
    # have norm 5; so each moves by 0.1 x 5 / sqrt(2).
    weight = torch.tensor([3.0, -4.0], requires_grad=True)
    weight.grad = torch.tensor([0.5, -2.0])
    Lamb([weight], lr=0.1, weight_decay=0.0, eps=0.0).step()
    move = 0.1 * 5 / math.sqrt(2)
    torch.testing.assert_close(weight.detach(), torch.tensor([3 - move, -4 + move]))


def test_several_steps_on_several_tensors_follow_the_algorithm():
    settings = {"lr": 0.02, "eps": 1e-6}
    starts = ([1.0, -2.0, 0.5], [0.3, 0.1])
    pulls = (
        ([0.2, -0.1, 0.4], [-0.3, 0.2, 0.1], [0.05, 0.6, -0.2]),
        ([1.0, 2.0], [0.5, -3.0], [2.0, 1.0]),
    )
    weights = [torch.tensor(start, requires_grad=True) for start in starts]
    lamb = Lamb(weights, betas=(0.8, 0.95), weight_decay=0.1, **settings)
    for step in range(3):
        for weight, pull in zip(weights, pulls, strict=True):
            weight.grad = torch.tensor(pull[step])
        lamb.step()
    for weight, start, pull in zip(weights, starts, pulls, strict=True):
        wanted = _by_hand(start, pull, beta1=0.8, beta2=0.95, decay=0.1, **settings)
        torch.testing.assert_close(weight.detach(), torch.tensor(wanted))


def test_a_tensor_of_zeros_takes_adams_step():
    weight = torch.zeros(3, requires_grad=True)
    weight.grad = torch.tensor([2.0, -1.0, 0.5])
    Lamb([weight], lr=0.1, weight_decay=0.0, eps=0.0).step()
    torch.testing.assert_close(weight.detach(), torch.tensor([-0.1, 0.1, -0.1]))


def test_a_tensor_without_a_direction_stays():
    weight = torch.ones(2, requires_grad=True)
    weight.grad = torch.zeros(2)
    Lamb([weight], lr=0.1, weight_decay=0.0).step()
    torch.testing.assert_close(weight.detach(), torch.ones(2))


def test_a_tensor_without_a_gradient_stays():
    weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
    weights[0].grad = torch.ones(2)
    Lamb(weights, lr=0.1).step()
    torch.testing.assert_close(weights[1].detach(), torch.ones(2))


def test_the_loss_of_a_closure_comes_back():
    weight = torch.ones(2, requires_grad=True)
    lamb = Lamb([weight], lr=0.1)

    def closure():
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert lamb.step(closure).item() == 2
    assert weight[0].item() < 1
