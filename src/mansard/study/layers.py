"""Counted work beside analytic work layer by layer, which no sum over a phase can hide behind.

Eager PyTorch runs one product for each layer in the forward pass, and one for each gradient in the
backward pass, in reverse order: first that of the layer's input, then that of its weights. Where
the launches with tensor work are just as many, each belongs to a layer.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from mansard import engine
from mansard.analysis.launches import launches
from mansard.analysis.names import short_name
from mansard.model.run import Run
from mansard.study.cell import Layer

#: Padding adds products and nothing takes any away, but counters may be off by rounding.
_LEAST = 0.999

FORWARD, BACKWARD = "forward", "backward"
OF_DATA, OF_WEIGHTS = "gradient of the input", "gradient of the weights"

#: One kernel does all of its products, and may leave out those behind a causal mask.
ATTENTION = "attention"


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """A launch that did work on Tensor Cores.

    Attributes:
        name: short name of the kernel.
        flop: its tensor work.
        duration_s: its time; None where it is not known.
    """

    name: str
    flop: float
    duration_s: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Product:
    """One product of one layer, and the launch that computed it.

    Attributes:
        layer: whose product it is.
        part: forward, or which gradient; backward of an attention, which is one launch.
        flop: analytic work.
        launch: what was counted.
    """

    layer: Layer
    part: str
    flop: int
    launch: Launch

    @property
    def excess(self) -> float:
        """Counted work beyond the analytic one."""
        return self.launch.flop - self.flop


def expected(layers: Sequence[Layer], phase: str) -> Iterator[tuple[Layer, str, int]]:
    """The products of a phase in the order in which eager PyTorch computes them.

    Args:
        layers: in the order of the forward pass.
        phase: ``forward`` or ``backward``.
    """
    if phase == "forward":
        for layer in layers:
            yield layer, FORWARD, layer.forward
        return
    for layer in reversed(layers):
        if layer.kind == ATTENTION:
            yield layer, BACKWARD, layer.backward
            continue
        if layer.backward == 2 * layer.forward:
            yield layer, OF_DATA, layer.forward
        yield layer, OF_WEIGHTS, layer.forward


def matched(
    layers: Sequence[Layer], found: Sequence[Launch], phase: str
) -> tuple[Product, ...] | None:
    """Give each launch to its layer.

    Args:
        layers: in the order of the forward pass.
        found: launches of the phase with tensor work, in order.
        phase: ``forward`` or ``backward``.

    Returns:
        The products; None where launches and products are not equally many, or a launch did less
        than its layer needs: then they do not belong together one by one.
    """
    wanted = list(expected(layers, phase))
    if not wanted or len(wanted) != len(found):
        return None
    products = tuple(
        Product(layer, part, flop, launch)
        for (layer, part, flop), launch in zip(wanted, found, strict=True)
    )
    bare = (each for each in products if each.layer.kind != ATTENTION)
    if any(each.launch.flop < _LEAST * each.flop for each in bare):
        return None
    return products


def tensor_launches(run: Run, phase: str | None) -> tuple[Launch, ...]:
    """The launches of a phase that did tensor work, in the order in which they were launched.

    Args:
        run: recorded.
        phase: name; None for launches outside any, which all are in an inference.
    """
    with engine.connect() as connection:
        told = launches(connection, run)
        paths = sorted(each for each in told.live if each.startswith("flop_tensor"))
        if not paths:
            return ()
        flop = " + ".join(f"coalesce({path}, 0)" for path in paths)
        rows = connection.execute(
            f"SELECT name, {flop} AS flop, duration_s FROM ({told.sql}) "
            "WHERE phase IS NOT DISTINCT FROM ? AND flop > 0 ORDER BY launch",
            [phase],
        ).fetchall()
    return tuple(Launch(short_name(name), flop, duration_s) for name, flop, duration_s in rows)
