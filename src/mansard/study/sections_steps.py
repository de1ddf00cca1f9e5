"""Sections on whole steps: cells, precision, optimizer, framework, energy, and what did not run."""

from collections.abc import Iterator

from mansard.charts.labels import printable
from mansard.study.blocks import Block, Heading, Items, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.plan import PHASES
from mansard.study.words import (
    NOT_MEASURED,
    UNKNOWN,
    listed,
    ratio,
    share,
    si,
    time_text,
)


def cells(study: Study) -> Iterator[Block]:
    """Every cell with its time, work and energy."""
    yield Heading("Steps")
    yield Paragraph(
        "Median time of undisturbed steps, taken before any counter; half of the range of their "
        "middle half beside it. FLOP are analytic, from the shapes of the layers; energy is that "
        "of the whole GPU. Busy is the part of the step in which the GPU works, by the recorded "
        "step; the rest of it the GPU waits for the host, whose pace then is that of the step."
    )
    head: tuple[str, ...] = ("cell", "step", "fastest", "steps", "FLOP", "loss")
    if study.on_gpu:
        head = (*head, "FLOP/s", "energy", "busy")
    rows = []
    for entry in study.entries:
        row = _cell(entry)
        rows.append((entry.cell.title, *row, *[""] * (len(head) - 1 - len(row)))[: len(head)])
    yield Table(head, tuple(rows))
    yield from _not_run(study)


def _cell(entry: Entry) -> tuple[str, ...]:
    """What is known of one cell, for the columns of the first table."""
    record = entry.record
    if record is None or record.state != "measured":
        return (entry.state,)
    losses = record.losses or (None, None)
    trained = any(loss is not None for loss in losses)
    return (
        time_text(entry),
        si(min(record.step_s, default=None), "s"),
        str(len(record.step_s)),
        si(entry.flop, "FLOP"),
        " to ".join(UNKNOWN if loss is None else f"{loss:.4g}" for loss in losses)
        if trained
        else "",
        si(_rate(entry), "FLOP/s"),
        si(record.energy_j, "J"),
        share(entry.busy_s, entry.step_s),
    )


def precision(study: Study) -> Iterator[Block]:
    """What each precision wins over fp32, with all else equal."""
    yield Heading("Precision")
    yield Paragraph(
        "Speed-up over fp32 (transformers: over bf16) of the same network, layout, optimizer and "
        "execution: the step by its median, the whole work on the GPU and its phases by the time "
        "of their kernels."
    )
    rows = []
    for base in study.entries:
        wanted = base.cell.configuration
        if wanted.precision != ("bf16" if wanted.model.startswith("transformer") else "fp32"):
            continue
        for entry in sorted(study.entries, key=lambda each: each.cell.order):
            if not _only_precision_differs(entry, base):
                continue
            rows.append((entry.cell.title, *_speed_ups(entry, base)))
    yield Table(("cell", "step", "on the GPU", *PHASES), tuple(rows))


def _speed_ups(entry: Entry, base: Entry) -> tuple[str, ...]:
    """How many times faster the step and its phases are; empty for phases that neither has."""
    waiting = next((each for each in (entry, base) if each.step_s is None), None)
    if waiting is not None:
        whose = "" if waiting is entry else f"{base.cell.configuration.precision}: "
        return (f"{whose}{waiting.state}", *[""] * (1 + len(PHASES)))
    found = [ratio(base.step_s, entry.step_s), ratio(_kernels_s(base), _kernels_s(entry))]
    for key in PHASES:
        before, after = base.phase(key), entry.phase(key)
        if before is not None and after is not None:
            found.append(ratio(before.duration_s, after.duration_s))
        else:
            counted = base.analysis is not None and entry.analysis is not None
            found.append("" if counted and before is after else UNKNOWN)
    return tuple(found)


def energy(study: Study) -> Iterator[Block]:
    """Energy of a step, and what it buys."""
    yield Heading("Energy")
    yield Paragraph(
        "From the GPU's own energy counter over undisturbed steps: the whole board, idle power "
        "included."
    )
    rows = []
    for entry in study.measured:
        record = entry.record
        if record is None or record.energy_j is None:
            why = record.energy_reason if record else None
            rows.append((entry.cell.title, UNKNOWN, "", "", printable(why or UNKNOWN)))
            continue
        power = record.energy_j / record.queued_step_s if record.queued_step_s else None
        rows.append(
            (
                entry.cell.title,
                si(record.energy_j, "J"),
                si(power, "W"),
                si(entry.flop / record.energy_j if entry.flop else None, "FLOP/J"),
                f"{record.energy_steps} steps",
            )
        )
    if rows:
        yield Table(("cell", "energy of a step", "power", "FLOP/J", "over"), tuple(rows))
    else:
        yield Paragraph(NOT_MEASURED)


def _not_run(study: Study) -> Iterator[Block]:
    """Why cells did not run, or lack something."""
    told = []
    # A framework that is not installed is one sentence, not one for each of its cells.
    alike: dict[str, list[str]] = {}
    for entry in study.entries:
        record = entry.record
        if record is None:
            continue
        if record.state != "measured":
            why = f"{record.state}: {printable(record.reason, 400)}"
            alike.setdefault(why, []).append(entry.cell.title)
        elif study.on_gpu and record.collect_reason:
            took = listed(f"{part} {si(time, 's')}" for part, time in record.seconds.items())
            told.append(
                f"{entry.cell.title}: no counters, or not all. "
                f"{printable(record.collect_reason, 400)} (took: {printable(took, 200)})"
            )
    told += [f"{listed(titles)}, {why}" for why, titles in alike.items()]
    if told:
        yield Paragraph("What did not run, or not whole:")
        yield Items(tuple(told))
    waiting = [entry.cell.title for entry in study.entries if entry.record is None]
    if waiting and study.measured:
        yield Paragraph(
            f"Not measured yet: {listed(waiting)}. 'mansard study deepcam -o' with this folder "
            "measures what is missing and keeps the rest."
        )


def _kernels_s(entry: Entry) -> float | None:
    return None if entry.analysis is None else entry.analysis.totals.duration_s


def _rate(entry: Entry) -> float | None:
    return None if entry.flop is None or not entry.step_s else entry.flop / entry.step_s


def _only_precision_differs(entry: Entry, base: Entry) -> bool:
    a, b = entry.cell.configuration, base.cell.configuration
    keys = ("model", "framework", "layout", "optimizer", "execution")
    return a.precision != b.precision and all(getattr(a, k) == getattr(b, k) for k in keys)
