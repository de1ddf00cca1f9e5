"""The report of a study, from the files of its folder alone: Markdown, HTML and pictures."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from mansard.charts.labels import printable
from mansard.errors import InputError
from mansard.store.atomic import replacing
from mansard.study import (
    figures,
    sections_census,
    sections_changes,
    sections_flop,
    sections_kernels,
    sections_paper,
    sections_steps,
    sections_ways,
)
from mansard.study.blocks import Block, Figure, Heading, Paragraph, Table
from mansard.study.figures import Picture
from mansard.study.gather import Study, gather
from mansard.study.markdown import markdown
from mansard.study.page import page

MARKDOWN, HTML = "report.md", "report.html"

#: Called with what is being done and the share that is done.
Progress = Callable[[str, float], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What was written.

    Attributes:
        study: what it is about.
        files: the Markdown, the page and the pictures.
    """

    study: Study
    files: tuple[Path, ...]


def write_report(
    folder: Path, *, machine: str | None = None, progress: Progress | None = None
) -> Report:
    """Write ``report.md``, ``report.html`` and ``charts/`` from what lies in a folder.

    Args:
        folder: of the study.
        machine: machine file or name for the roofs; chosen by the GPU when not given.
        progress: told of each part.

    Raises:
        InputError: the folder holds no cell.
        OutputError: a file cannot be written.
    """
    tell = progress or (lambda _what, _share: None)
    tell("reading the runs", 0.0)
    study = gather(folder, machine)
    if not any(entry.record for entry in study.entries):
        raise InputError(
            f"{folder} holds no cell of a study: run 'mansard study deepcam -o {folder}' first",
            slug="study-no-cells",
        )
    tell("drawing", 0.3)
    drawn = figures.draw(study, folder)
    tell("writing", 0.9)
    blocks = tuple(document(study, drawn))
    texts = {folder / MARKDOWN: markdown(blocks), folder / HTML: page(blocks, folder)}
    for target, text in texts.items():
        with replacing(target) as path:
            path.write_text(text, encoding="utf-8")
    return Report(study, (*texts, *(folder / picture.file for picture in drawn)))


def document(study: Study, pictures: tuple[Picture, ...] = ()) -> Iterator[Block]:
    """The report as blocks. A study of which nothing was run gives the page with nothing in it."""
    yield Heading("DeepCAM, measured again", 1)
    yield from _opening(study)
    if study.on_gpu:
        yield from sections_paper.against_conclusions(study)
    yield from sections_steps.cells(study)
    yield from _bars(study)
    if study.on_gpu:
        yield from _of_a_gpu(study, pictures)
    yield from _conditions(study)


def _of_a_gpu(study: Study, pictures: tuple[Picture, ...]) -> Iterator[Block]:
    """What only a GPU can show: a comparison of times of a tiny size on a CPU says nothing."""
    yield from sections_steps.precision(study)
    yield from sections_kernels.phases(study)
    yield from sections_census.census(study)
    yield from sections_kernels.against_paper(study)
    yield from sections_changes.changes(study)
    yield from sections_ways.optimizers(study)
    yield from sections_ways.frameworks(study)
    yield from sections_ways.transformers(study)
    yield from sections_flop.flop_check(study)
    yield from sections_steps.energy(study)
    yield from sections_kernels.kernels(study, pictures)


def _opening(study: Study) -> Iterator[Block]:
    yield Paragraph(
        "The study of arXiv 2009.05257 with what is used today: DeepCAM's segmentation network "
        "(DeepLabv3+, 16 x 768 x 1152, batch 2) by precision, layout, optimizer, execution and "
        "framework, one change at a time, and a decoder-only transformer. Made by 'mansard study "
        "deepcam' from the files beside this one; the paper's numbers are its authors'."
    )
    measured, whole = len(study.measured), len(study.entries)
    if not any(entry.record for entry in study.entries):
        yield Paragraph("Not measured yet: the tables show what will stand here.", strong=True)
        return
    if not study.on_gpu:
        yield Paragraph(
            "This is a run on a CPU at a tiny size. It shows that the study works from end to "
            "end; its times say nothing of a GPU. It has no counters, so no phases, kernels or "
            "Roofline, and nothing is compared.",
            strong=True,
        )
    elif study.preset == "tiny":
        yield Paragraph("These cells have a tiny size: their times say little.", strong=True)
    text = f"{measured} of {whole} cells are measured."
    if measured < whole:
        text += " What is missing is said where it would stand."
    yield Paragraph(text, strong=measured < whole)
    for remark in study.remarks:
        yield Paragraph(printable(remark, 600), strong=True)


def _bars(study: Study) -> Iterator[Block]:
    found = figures.bars(study)
    if figures.STEPS in found:
        yield Figure(figures.STEPS, "Median time of a step, by cell")
    if figures.ENERGY in found:
        yield Figure(figures.ENERGY, "Energy of a step, by cell")


def _conditions(study: Study) -> Iterator[Block]:
    """Where the numbers come from: devices, versions, dates, settings, roofs."""
    yield Heading("Conditions")
    rows: dict[tuple[str, ...], list[str]] = {}
    for entry in study.measured:
        record = entry.record
        if record is None:
            continue
        device = (record.device.name if record.device else None) or "CPU"
        versions = ", ".join(f"{name} {text}" for name, text in sorted(record.versions.items()))
        settings = ", ".join(f"{name}={text}" for name, text in sorted(record.conditions.items()))
        roofs = "-" if entry.machine is None else f"{entry.machine.name}, {entry.machine.basis}"
        key = (
            printable(device, 60),
            printable(record.driver_version, 40),
            printable(record.created[:10], 20),
            printable(record.timed_by, 80),
            printable(roofs, 60),
            printable(settings or "-", 200),
            printable(versions, 400),
        )
        rows.setdefault(key, []).append(entry.cell.title)
    if not rows:
        yield Paragraph("Not measured yet.")
        return
    head = ("device", "driver", "date", "timed by", "roofs", "settings", "versions", "cells")
    yield Table(
        head,
        tuple((*key, str(len(titles))) for key, titles in rows.items()),
        words=len(head) - 1,
    )
