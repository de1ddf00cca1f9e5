"""Pictures of a study: Roofline charts of phases, and bars of the steps."""

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

from mansard.model.analysis import Analysis
from mansard.store.atomic import replacing
from mansard.study.bars import Bar, bars_svg
from mansard.study.gather import Entry, Study
from mansard.study.words import si

STEPS = "charts/steps.svg"
ENERGY = "charts/energy.svg"

#: How the bars of steps are read.
_DARK = "dark: the GPU works; light: it waits for the host; dashed: not recorded"

#: Of a Roofline chart in a report.
_WIDTH = 1680
_COLOURS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """A Roofline chart.

    Attributes:
        cell: name of the cell.
        phase: which phase; None for the whole step.
        file: path below the folder of the study.
        text: what it shows.
    """

    cell: str
    phase: str | None
    file: str
    text: str


def pictures(study: Study) -> tuple[Picture, ...]:
    """The Roofline charts that there are data for."""
    return tuple(
        picture
        for entry in study.entries
        if entry.cell.charts and entry.analysis is not None
        for picture in _of(entry)
    )


def _of(entry: Entry) -> Iterator[Picture]:
    """Forward, backward and optimizer; the whole step where it has no phases."""
    found: list[str | None] = [
        phase for phase in entry.cell.charts if entry.phase(phase) is not None
    ]
    for phase in found or [None]:
        words = phase or "whole step"
        yield Picture(
            entry.cell.name,
            phase,
            f"charts/{entry.cell.name}.{phase or 'step'}.png",
            f"Hierarchical Roofline, {entry.cell.title}, {words}",
        )


def draw(study: Study, folder: Path) -> tuple[Picture, ...]:
    """Draw every picture into the folder, and give the Roofline charts."""
    from mansard.charts import static  # noqa: PLC0415

    (folder / "charts").mkdir(parents=True, exist_ok=True)
    found = pictures(study)
    for picture in found:
        entry = study.entry(picture.cell)
        shown = None if entry is None else _shown(entry, picture)
        if shown is None:
            continue
        drawn = io.BytesIO()
        static.save_figure(static.roofline_figure(shown), drawn, "png")
        with replacing(folder / picture.file) as path:
            _save_small(drawn, path)
    for file, text in bars(study).items():
        with replacing(folder / file) as path:
            path.write_text(text, encoding="utf-8")
    return found


def _save_small(drawn: io.BytesIO, path: Path) -> None:
    """Write a chart in a sixth of its bytes: a study has a dozen, and a page that holds them."""
    from PIL import Image  # noqa: PLC0415  (comes with matplotlib, and is as slow to load)

    whole = Image.open(drawn).convert("RGB")
    size = (_WIDTH, round(whole.height * _WIDTH / whole.width))
    small = whole.resize(size, Image.Resampling.LANCZOS)
    # This method keeps the few strong colours of the levels; the others melt them into grey.
    few = small.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, "PNG", optimize=True)


def _shown(entry: Entry, picture: Picture) -> Analysis | None:
    whole = entry.analysis if picture.phase is None else entry.part(picture.phase)
    if whole is None:
        return None
    label = f"{entry.cell.title}, {picture.phase or 'whole step'}"
    return dataclasses.replace(whole, label=label)


def bars(study: Study) -> dict[str, str]:
    """Bars of step times and energies, as SVG by file; none where nothing was measured."""
    found = {}
    # Without any run, there is nothing to tell of the GPU.
    told = any(entry.busy_s is not None for entry in study.measured)
    grouped = sorted(study.measured, key=lambda each: each.cell.order)
    times = [
        Bar(
            label=entry.cell.title,
            value=entry.step_s,
            text=si(entry.step_s, "s"),
            dark=_busy(entry) if told else 1.0,
            group=entry.cell.configuration.model,
        )
        for entry in grouped
        if entry.step_s is not None
    ]
    joules = [
        Bar(
            label=entry.cell.title,
            value=entry.record.energy_j,
            text=si(entry.record.energy_j, "J"),
            group=entry.cell.configuration.model,
        )
        for entry in grouped
        if entry.record is not None and entry.record.energy_j is not None
    ]
    remark = "" if study.on_gpu else " on a CPU at a tiny size: says nothing of a GPU"
    if times:
        found[STEPS] = bars_svg(f"Median time of a step{remark}", times, _DARK if told else "")
    if joules:
        found[ENERGY] = bars_svg("Energy of a step", joules)
    return found


def _busy(entry: Entry) -> float | None:
    """The part of a step in which the GPU works."""
    if entry.busy_s is None or not entry.step_s:
        return None
    return entry.busy_s / entry.step_s
