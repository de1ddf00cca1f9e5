"""Sections on counted against analytic work: by phase, and layer by layer."""

import dataclasses
from collections.abc import Iterable, Iterator

from mansard.charts.labels import printable
from mansard.errors import MansardError
from mansard.model.analysis import Group
from mansard.study.blocks import Block, Heading, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.layers import Product, by_module, matched, tensor_launches
from mansard.study.words import NOT_MEASURED, UNKNOWN, change, ratio, si, tensor_flop, vector_flop

#: A product that is off by no more agrees with its layer.
_CLOSE = 0.01
#: Layers are named that do this part of their phase too much, or too little.
_WORTH_NAMING = 0.005
_PHASES = ("forward", "backward")


@dataclasses.dataclass(frozen=True, slots=True)
class _Matched:
    """The products of one phase of one cell."""

    entry: Entry
    phase: str
    products: tuple[Product, ...]
    left_out: int = 0

    @property
    def flop(self) -> int:
        """Analytic work of the phase."""
        return sum(each.flop for each in self.products)

    @property
    def close(self) -> tuple[Product, ...]:
        """Products that agree with their layer."""
        return tuple(each for each in self.products if abs(each.excess) <= _CLOSE * each.flop)

    @property
    def named(self) -> tuple[Product, ...]:
        """Products that do so much too much or too little, with equal ones, that they are named."""
        together: dict[tuple[float | str, ...], float] = {}
        for each in self.products:
            together[_kind(each)] = together.get(_kind(each), 0.0) + each.excess
        least = _WORTH_NAMING * self.flop
        found = [each for each in self.products if abs(together[_kind(each)]) > least]
        return tuple(sorted(found, key=lambda each: -abs(together[_kind(each)])))


def _kind(product: Product) -> tuple[float | str, ...]:
    """Equal for products of as much work that one kernel does in the same way."""
    return (product.part, product.launch.name, product.flop, product.launch.flop)


def flop_check(study: Study) -> Iterator[Block]:
    """Counted against analytic work: the check of the counters that needs no other tool."""
    yield Heading("Counted and analytic FLOP")
    yield Paragraph(
        "Analytic FLOP are products of convolutions and matrices, and attention. Tensor Cores do "
        "nothing else; the vector pipes also do normalisation, activation, loss and optimizer, and "
        "in fp32 the products too, from which the counters cannot tell these apart. Padded "
        "channels and tiles do more than is needed; algorithms that multiply less (Winograd) or "
        "skip masked blocks do less."
    )
    rows = [row for entry in study.measured for row in _rows(entry)]
    if not rows:
        yield Paragraph(NOT_MEASURED)
        return
    head = ("cell", "phase", "analytic", "Tensor Cores", "difference", "vector", "all, difference")
    yield Table(head, tuple(rows), words=2)
    yield from _layer_by_layer(study)


def _rows(entry: Entry) -> Iterator[tuple[str, ...]]:
    record = entry.record
    if record is None:
        return
    analytic: dict[str, float] = {}
    for each in record.analytic:
        analytic[str(each.phase)] = analytic.get(str(each.phase), 0.0) + (each.flop or 0.0)
    for phase, flop in analytic.items():
        found = entry.phase(phase)
        if found is not None:
            yield (entry.cell.title, phase, *_checked(found, flop))
    whole = None if entry.analysis is None else entry.analysis.totals
    yield (entry.cell.title, "step", *_checked(whole, sum(analytic.values())))


def _checked(found: Group | None, analytic: float) -> tuple[str, ...]:
    if found is None:
        return (si(analytic, "FLOP"), *[UNKNOWN] * 4)
    bound = "" if found.flop_complete else "at least "
    tensor = tensor_flop(found)
    vector = vector_flop(found)
    return (
        si(analytic, "FLOP"),
        f"{bound}{si(tensor, 'FLOP')}",
        f"{bound}{change(tensor, analytic)}" if tensor != 0 else "-",
        UNKNOWN if vector is None else f"{bound}{si(vector, 'FLOP')}",
        f"{bound}{change(found.flop, analytic)}",
    )


def _layer_by_layer(study: Study) -> Iterator[Block]:
    """Each product of eager PyTorch beside its layer."""
    found = [each for entry in study.measured for each in _matches(entry)]
    if not found:
        return
    yield Heading("Layer by layer", 3)
    yield Paragraph(
        "PyTorch runs one product for each layer and one for each of its gradients, in a "
        "known order. Where there are as many launches with tensor work, each stands beside its "
        "product; where there are more or fewer, the launches of a layer stand together beside "
        "it, by the module that they were recorded with, and layers are left out of which the "
        "vector pipes did some. How many agree within 1 %, how many are named below because they, "
        "or equal ones together, do 0.5 % of the phase too much or too little, and what is left "
        "without these."
    )
    yield Table(
        (
            *("cell", "phase", "compared", "left out", "agree", "named"),
            *("all, difference", "without the named"),
        ),
        tuple(_summary(each) for each in found),
        words=2,
    )
    named = tuple(_named(found))
    if named:
        yield Paragraph(
            "Those that are named. A tile of the kernel has room for more channels (or queries) "
            "than the layer has, and multiplies them all. Attention that does less leaves out what "
            "lies behind its causal mask, which analytic work does not subtract:"
        )
        head = ("layer", "product", "kernel", "analytic", "counted", "times", "cells")
        yield Table(head, named, words=3)


def _matches(entry: Entry) -> Iterator[_Matched]:
    record = entry.record
    if record is None or entry.run is None or not record.layers:
        return
    # PyTorch has kernels of its own for depthwise convolutions, on vector pipes.
    without = [layer for layer in record.layers if layer.kind != "depthwise conv"]
    # The phases of a step are found by its gradients: an inference has none, and is all forward.
    inference = all(each.phase == "forward" for each in record.analytic)
    for phase in _PHASES[:1] if inference else _PHASES:
        recorded = None if inference else phase
        try:
            launched = tensor_launches(entry.run, recorded)
        except MansardError:
            return
        products = matched(record.layers, launched, phase) or matched(without, launched, phase)
        if products is not None:
            yield _Matched(entry, phase, products)
            continue
        products = by_module(without, launched, phase)
        if products:
            yield _Matched(entry, phase, products, len(without) - len(products))


def _summary(found: _Matched) -> tuple[str, ...]:
    named = found.named
    rest = [each for each in found.products if each not in named]
    return (
        found.entry.cell.title,
        found.phase,
        str(len(found.products)),
        str(found.left_out),
        str(len(found.close)),
        str(len(named)),
        _difference(found.products),
        _difference(rest),
    )


def _difference(products: Iterable[Product]) -> str:
    """Counted work of products against the analytic one."""
    known = tuple(products)
    return change(sum(each.launch.flop for each in known), sum(each.flop for each in known))


def _named(found: Iterable[_Matched]) -> Iterator[tuple[str, ...]]:
    """Products that are named; equal ones of several layers or cells in one row."""
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for each in found:
        for product in each.named:
            key = (
                product.part,
                printable(product.launch.name, 60),
                si(product.flop, "FLOP"),
                si(product.launch.flop, "FLOP"),
                ratio(product.launch.flop, product.flop),
            )
            alike.setdefault(key, []).append((product.layer.name, each.entry.cell.name))
    for (part, kernel, *numbers), places in alike.items():
        layers = list(dict.fromkeys(layer for layer, _ in places))
        others = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        cells = len({cell for _, cell in places})
        yield (f"{printable(layers[0], 60)}{others}", part, kernel, *numbers, str(cells))


def outside_the_named(entry: Entry) -> list[tuple[str, float]]:
    """By phase, how far counted work is off without the products that are named."""
    found = []
    for each in _matches(entry):
        rest = [product for product in each.products if product not in each.named]
        analytic = sum(product.flop for product in rest)
        if analytic:
            found.append((each.phase, sum(product.excess for product in rest) / analytic))
    return found
