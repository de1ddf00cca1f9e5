"""Counted work beside analytic work layer by layer, which no sum over a phase can hide behind.

Eager PyTorch runs one product for each layer in the forward pass, and one for each gradient in the
backward pass, in reverse order: first that of the layer's input, then that of its weights. Where
the launches with tensor work are just as many, each belongs to a layer. Where they are not, as when
some layers run on the vector pipes, the module that each launch was recorded with says whose it is.
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
BOTH = "both gradients"

#: One kernel does all of its products, and may leave out those behind a causal mask.
ATTENTION = "attention"


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """A launch that did work on Tensor Cores.

    Attributes:
        name: short name of the kernel.
        flop: its tensor work.
        duration_s: its time; None where it is not known.
        module: of the framework that launched it; None where that is not known.
    """

    name: str
    flop: float
    duration_s: float | None
    module: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Product:
    """One product of one layer, and the launch that computed it.

    Attributes:
        layer: whose product it is.
        part: forward, or which gradient; backward of an attention, which is one launch.
        flop: analytic work.
        launch: what was counted; of several launches the longest, with the work of all.
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


def by_module(
    layers: Sequence[Layer], found: Sequence[Launch], phase: str
) -> tuple[Product, ...] | None:
    """Give launches to the layers that are named like their modules.

    A layer with fewer launches than products had some of them done by the vector pipes, whose
    work cannot be told from that of anything else: it is left out.

    Args:
        layers: any order.
        found: launches of the phase with tensor work.
        phase: ``forward`` or ``backward``.

    Returns:
        One product for each layer that ran on Tensor Cores; None where some launch is of no layer,
        or two layers have the same name.
    """
    own: dict[str, list[Launch]] = {layer.name: [] for layer in layers}
    if not found or len(own) != len(layers) or any(each.module not in own for each in found):
        return None
    for each in found:
        own[str(each.module)].append(each)
    products = []
    for layer in layers:
        parts = [part for _, part, _ in expected((layer,), phase)]
        launched = own[layer.name]
        if len(launched) >= len(parts):
            part = BOTH if len(parts) > 1 else parts[0]
            flop = layer.forward if phase == FORWARD else layer.backward
            products.append(Product(layer, part, flop, _together(launched)))
    return tuple(products)


def _together(launched: Sequence[Launch]) -> Launch:
    """Several launches as one: named like the longest of them."""
    longest = max(launched, key=lambda each: each.duration_s or 0.0)
    times = [each.duration_s for each in launched]
    known = [time for time in times if time is not None]
    return dataclasses.replace(
        longest,
        flop=sum(each.flop for each in launched),
        duration_s=sum(known) if len(known) == len(times) else None,
    )


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
            f"SELECT name, {flop} AS flop, duration_s, module FROM ({told.sql}) "
            "WHERE phase IS NOT DISTINCT FROM ? AND flop > 0 ORDER BY launch",
            [phase],
        ).fetchall()
    return tuple(Launch(short_name(name), *rest) for name, *rest in rows)
