"""Steps: training or inference, eager or compiled, or all of it as one CUDA graph."""

import dataclasses
from collections.abc import Callable

import torch

from mansard.collect import phase
from mansard.workloads.pytorch.precision import Arithmetic, autocast, switched

#: Iterations before a capture, in which libraries choose algorithms and take their memory.
_WARMUP = 3

#: PyTorch's own start, 2^16, overflows in the first steps, which then have no optimizer: they would
#: not be like the others. This one holds the loss of an untrained DeepLab.
_LOSS_SCALE = 2.0**10

Body = Callable[[], torch.Tensor]


@dataclasses.dataclass(slots=True, kw_only=True)
class Runner:
    """Calls a body again and again, and keeps what it returned last.

    Attributes:
        body: one iteration; gives the loss, or the scores of an inference.
        recorded: what a graph was captured from. A graph knows addresses alone: weights, inputs
            and caches live as long as something here holds them.
        last: its last result.
    """

    body: Body
    recorded: Body | None = None
    last: torch.Tensor | None = None

    def __call__(self) -> None:
        """Run one iteration."""
        self.last = self.body()


def training_body(
    compute_loss: Body,
    optimizer: torch.optim.Optimizer,
    arithmetic: Arithmetic,
    device: torch.device,
) -> Body:
    """Forward, loss, backward and optimizer.

    Args:
        compute_loss: forward pass and loss.
        optimizer: of the weights.
        arithmetic: of the precision.
        device: where all of it lies.
    """
    scaler = None
    if arithmetic.scaled_loss:
        scaler = torch.amp.GradScaler(device.type, init_scale=_LOSS_SCALE)

    def body() -> torch.Tensor:
        with switched(arithmetic):
            with autocast(arithmetic, device):
                loss = compute_loss()
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            # After the step, so that no gradient is there when a graph is captured.
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return body


def inference_body(compute: Body, arithmetic: Arithmetic, device: torch.device) -> Body:
    """A forward pass without gradients."""

    def body() -> torch.Tensor:
        with torch.no_grad(), switched(arithmetic), autocast(arithmetic, device):
            return compute()

    return body


def captured(body: Body) -> Runner:
    """Record a body as one CUDA graph.

    The warm-up and nothing else runs here: a captured iteration is first done when it is replayed.
    Inputs, weights and results keep their addresses. What is trained goes on where the warm-up
    ended; an inference gives the same scores each time.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARMUP):
            body()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = body()

    def replay() -> torch.Tensor:
        with phase("step"):
            graph.replay()
        return result

    return Runner(body=replay, recorded=body)
