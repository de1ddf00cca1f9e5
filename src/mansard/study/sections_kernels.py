"""Sections on phases and kernels: census, the paper's phases beside ours, longest kernels."""

from collections.abc import Iterator

from mansard.charts.labels import bound_label, efficiency_label, key_label, printable
from mansard.model.analysis import Group
from mansard.study.blocks import Block, Figure, Heading, Items, Paragraph, Table
from mansard.study.figures import Picture
from mansard.study.gather import Study
from mansard.study.paper import PaperPhase, paper
from mansard.study.words import (
    NOT_MEASURED,
    UNKNOWN,
    count,
    intensities,
    ratio,
    share,
    si,
    tensor_share,
    with_share,
    work,
)
from mansard.units import format_share

#: Kernels shown of each charted cell.
_TOP = 8


def phases(study: Study) -> Iterator[Block]:
    """Launches, zero-AI launches, time, work and intensity of every phase."""
    yield Heading("Phases")
    yield Paragraph(
        "From the counters of one step. AI is FLOP/byte at L1 / L2 / DRAM. Launches of kernels "
        "that did no floating-point work are the paper's zero-AI kernels. Time is the sum over "
        "kernels, without gaps. Outside of the phases, (none), is an inference, and in fp16 the "
        "scaling of the loss and of its gradients. Bound is the roof that asks for the most time, "
        "and eff. the part of the time that the kernels need by their own bounds (docs/method.md); "
        "? where a counter that could decide is missing, ~ where launches are too small to judge."
    )
    rows = [
        (entry.cell.title, key_label(phase, 40), *_census(phase))
        for entry in study.entries
        if entry.analysis is not None
        for phase in entry.analysis.phases
    ]
    head = (
        "cell",
        "phase",
        "launches",
        "zero-AI",
        "their time",
        "time",
        "FLOP",
        "tensor",
        "FLOP/s",
        "AI",
        "bound",
        "eff.",
    )
    yield Table(head, tuple(rows), words=2) if rows else Paragraph(NOT_MEASURED)


def _census(phase: Group) -> tuple[str, ...]:
    return (
        count(phase.launches),
        with_share(phase.zero_flop_launches, phase.launches),
        share(phase.zero_flop_duration_s, phase.duration_s),
        si(phase.duration_s, "s"),
        work(phase),
        tensor_share(phase),
        si(phase.flop_per_s, "FLOP/s"),
        intensities(phase.intensity),
        bound_label(phase),
        efficiency_label(phase),
    )


def against_paper(study: Study) -> Iterator[Block]:
    """The paper's phases and those that come nearest, line by line."""
    known = paper()
    gpus = sorted(
        {e.record.device.name or UNKNOWN for e in study.measured if e.record and e.record.device}
    )
    here = " / ".join(printable(name, 60) for name in gpus) or "this GPU"
    yield Heading(f"{here} and the paper's V100")
    yield Paragraph(
        f"The paper: {known.gpu}, batch {known.batch}; {known.source}. Its network, libraries and "
        "clock differ from those here, so a ratio of times is that of whole stacks, not of GPUs "
        "alone."
    )
    rows: list[tuple[str, ...]] = []
    remarks = []
    for theirs in known.phase:
        beside = [e for e in study.entries if theirs.is_beside(e.cell.configuration)]
        rows.append((f"V100, {theirs.run}", theirs.phase, *_theirs(theirs), ""))
        if theirs.remark:
            remarks.append(f"{theirs.run} {theirs.phase}: {theirs.remark}.")
        for entry in beside:
            phase = entry.phase(theirs.phase)
            if phase is None:
                state = UNKNOWN if entry.step_s is not None else entry.state
                rows.append((entry.cell.title, theirs.phase, state, *[""] * 7))
                continue
            rows.append(
                (
                    entry.cell.title,
                    theirs.phase,
                    count(phase.launches),
                    with_share(phase.zero_flop_launches, phase.launches),
                    share(phase.zero_flop_duration_s, phase.duration_s),
                    si(phase.duration_s, "s"),
                    work(phase),
                    si(phase.flop_per_s, "FLOP/s"),
                    intensities(phase.intensity),
                    ratio(theirs.duration_s, phase.duration_s),
                )
            )
    head = (
        "run",
        "phase",
        "launches",
        "zero-AI",
        "their time",
        "time",
        "FLOP",
        "FLOP/s",
        "AI",
        "faster",
    )
    yield Table(head, tuple(rows), words=2)
    if remarks:
        yield Items(tuple(remarks))


def _theirs(phase: PaperPhase) -> tuple[str, ...]:
    return (
        count(phase.launches),
        with_share(phase.zero_flop_launches, phase.launches),
        format_share(phase.zero_flop_time_share),
        si(phase.duration_s, "s"),
        si(phase.flop, "FLOP"),
        si(phase.flop_per_s, "FLOP/s"),
        intensities(dict(phase.intensity)),
    )


def kernels(study: Study, pictures: tuple[Picture, ...]) -> Iterator[Block]:
    """Roofline charts and the longest kernels of the charted cells."""
    yield Heading("Kernels under their roofs")
    shown = [e for e in study.entries if e.cell.charts and e.analysis is not None]
    if not shown:
        yield Paragraph(NOT_MEASURED)
        return
    for entry in shown:
        analysis = entry.analysis
        if analysis is None:
            continue
        yield Heading(entry.cell.title, 3)
        for picture in pictures:
            if picture.cell == entry.cell.name:
                yield Figure(picture.file, picture.text)
        rows = [
            (
                printable(kernel.short_name, 60),
                kernel.family,
                count(kernel.launches),
                share(kernel.duration_s, analysis.totals.duration_s),
                si(kernel.flop_per_s, "FLOP/s"),
                intensities(kernel.intensity),
                bound_label(kernel),
                efficiency_label(kernel),
            )
            for kernel in analysis.kernels[:_TOP]
        ]
        head = ("kernel", "family", "launches", "time", "FLOP/s", "AI", "bound", "eff.")
        yield Table(head, tuple(rows), words=2)
