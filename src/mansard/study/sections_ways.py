"""Sections on ways to write the same step: optimizers, execution, frameworks."""

from collections.abc import Iterator

from mansard.analysis.compare import compare
from mansard.charts.labels import bound_label, efficiency_label, key_label, printable
from mansard.errors import MansardError
from mansard.model.comparison import Comparison
from mansard.study.blocks import Block, Heading, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.words import UNKNOWN, count, share, si, time_text, with_share, work
from mansard.workloads import TokenSize

#: Kinds of layers that are shown.
_LAYERS = 5

#: Said where compiled steps stand beside others by family.
_FUSED = (
    "A kernel is of one family, by its name: one that a compiler made of several operators is "
    "counted with one of them."
)


def optimizers(study: Study) -> Iterator[Block]:
    """The optimizer phase of each way to write it."""
    yield Heading("Optimizers")
    yield Paragraph(
        "Of the ResNet-50 network in PyTorch, in bf16 and NHWC. On the GPU the optimizer alone is "
        "timed; the step is whole, and where the host sets its pace it varies by more than that."
    )
    wanted = [
        entry
        for entry in study.entries
        if (c := entry.cell.configuration).model == "deeplab-resnet50"
        and (c.framework, c.precision, c.layout, c.execution)
        == ("torch", "amp-bf16", "nhwc", "eager")
    ]
    rows = []
    for entry in sorted(wanted, key=lambda e: e.cell.configuration.optimizer):
        phase = entry.phase("optimizer")
        name = entry.cell.configuration.optimizer
        if phase is None:
            rows.append((name, _missing(entry), "", "", time_text(entry)))
            continue
        rows.append(
            (
                name,
                count(phase.launches),
                si(phase.duration_s, "s"),
                si(_byte_per_s(phase.bytes_by_level.get("dram"), phase.duration_s), "B/s"),
                time_text(entry),
            )
        )
    yield Table(("optimizer", "launches", "time on the GPU", "DRAM", "step"), tuple(rows))


def frameworks(study: Study) -> Iterator[Block]:
    """The same network in PyTorch, torch.compile, a CUDA graph, and through XLA."""
    yield Heading("PyTorch and XLA")
    yield Paragraph(
        "The same network and sizes in bf16, NHWC. XLA compiles the whole step, so its phases "
        f"cannot be told apart; a CUDA graph is one launch to the counters. {_FUSED}"
    )
    rows = []
    for entry in study.entries:
        c = entry.cell.configuration
        framework = c.framework != "torch" or c.optimizer == "adam-fused"
        if not (
            framework
            and (c.model, c.precision, c.layout) == ("deeplab-resnet50", "amp-bf16", "nhwc")
        ):
            continue
        totals = entry.analysis.totals if entry.analysis else None
        if totals is None:
            rows.append((entry.cell.title, time_text(entry), _missing(entry), "", "", "", ""))
            continue
        rows.append(
            (
                entry.cell.title,
                time_text(entry),
                count(totals.launches),
                with_share(totals.zero_flop_launches, totals.launches),
                share(totals.zero_flop_duration_s, totals.duration_s),
                work(totals),
                si(totals.bytes_by_level.get("dram"), "B"),
            )
        )
    yield Table(
        ("cell", "step", "launches", "without FLOP", "their time", "counted FLOP", "DRAM"),
        tuple(rows),
    )
    yield from _rivals(study, "deeplab")
    yield from _layers(study)


def _layers(study: Study) -> Iterator[Block]:
    """Which layers of Keras the time goes to, where the run names them."""
    for entry in study.entries:
        if entry.cell.configuration.framework == "torch" or entry.analysis is None:
            continue
        whole = entry.analysis.totals
        rows = [
            (
                key_label(layer, 60),
                count(layer.launches),
                si(layer.duration_s, "s"),
                share(layer.duration_s, whole.duration_s),
                si(layer.bytes_by_level.get("dram"), "B"),
            )
            for layer in entry.analysis.layers[:_LAYERS]
        ]
        if rows:
            yield Heading(f"{entry.cell.title}, by layer", 3)
            yield Table(("layer", "launches", "time", "of the step", "DRAM"), tuple(rows))


def transformers(study: Study) -> Iterator[Block]:
    """What a token costs in prefill, decode and training, and what holds it."""
    yield Heading("Transformer")
    yield Paragraph(
        "A decoder of 0.94 G parameters. A step of prefill or training takes a sequence of 2,048 "
        "tokens; one of decode makes one token for each of 16 sequences, which look at 2,048. Busy "
        "is the part of the step in which the GPU works; rates are over that time. The cells that "
        "are only named transformer train. "
        f"{_FUSED}"
    )
    rows = []
    for entry in study.entries:
        size = entry.cell.configuration.size
        if not isinstance(size, TokenSize):
            continue
        totals = entry.analysis.totals if entry.analysis else None
        if totals is None or entry.step_s is None:
            rows.append((entry.cell.title, time_text(entry), _missing(entry), *[""] * 7))
            continue
        decode = entry.cell.configuration.model == "transformer-decode"
        tokens = size.batch * (1 if decode else size.tokens)
        energy_j = entry.record.energy_j if entry.record else None
        rows.append(
            (
                entry.cell.title,
                time_text(entry),
                share(entry.busy_s, entry.step_s),
                count(totals.launches),
                si(tokens / entry.step_s, "token/s"),
                si(None if energy_j is None else energy_j / tokens, "J"),
                si(totals.flop_per_s, "FLOP/s"),
                si(_byte_per_s(totals.bytes_by_level.get("dram"), totals.duration_s), "B/s"),
                bound_label(totals),
                efficiency_label(totals),
            )
        )
    head = (
        *("cell", "step", "busy", "launches", "tokens", "energy of a token"),
        *("FLOP/s", "DRAM", "bound", "eff."),
    )
    yield Table(head, tuple(rows))
    yield from _rivals(study, "transformer")


def _rivals(study: Study, model: str) -> Iterator[Block]:
    """Ways to run the same step, side by side, of the models whose name begins like this."""
    for pair in study.rivals:
        before, after = study.entry(pair.before), study.entry(pair.after)
        if before is None or after is None:
            continue
        if before.cell.configuration.model.startswith(model):
            yield from _by_family(pair.change, before, after)


def _by_family(change: str, before: Entry, after: Entry) -> Iterator[Block]:
    """Where the time goes in two ways to run the same step."""
    if before.run is None or after.run is None:
        return
    yield Heading(f"{change}, by family of kernels", 3)
    try:
        found = compare(before.run, after.run, by="family", allow_unlike=True)
    except MansardError as error:
        yield Paragraph(f"The runs cannot be compared: {printable(str(error), 400)}")
        return
    head = ("family", "time before", "after", "launches before", "after", "DRAM before", "after")
    yield Table(head, tuple(_families(found)))


def _families(found: Comparison) -> Iterator[tuple[str, ...]]:
    for row in found.rows:
        time, launches, dram = (
            row.changes[metric] for metric in ("gpu_time", "launches", "bytes_dram")
        )
        yield (
            printable(row.key, 40),
            *(si(value, "s") for value in (time.a, time.b)),
            *(_number(value) for value in (launches.a, launches.b)),
            *(si(value, "B") for value in (dram.a, dram.b)),
        )


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:g}"


def _missing(entry: Entry) -> str:
    """Why there are no counters."""
    measured = entry.record is not None and entry.record.state == "measured"
    return UNKNOWN if measured else entry.state


def _byte_per_s(moved: float | None, duration_s: float | None) -> float | None:
    return None if moved is None or not duration_s else moved / duration_s
