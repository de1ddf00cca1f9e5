"""A study as it lies in its folder: the plan, what each cell found, and its run under the roofs."""

import collections
import dataclasses
import statistics
from pathlib import Path

from mansard.analysis import analyze
from mansard.analysis.parts import Part
from mansard.errors import FormatError, MansardError
from mansard.model.analysis import Analysis, Group
from mansard.model.machine import Machine
from mansard.model.run import Run
from mansard.store import open_run
from mansard.store.choose_machine import machine_for
from mansard.study.cell import CellRecord, Folder
from mansard.study.pairs import Pair, pairs, rivals
from mansard.study.plan import Cell, deepcam
from mansard.workloads.workload import Preset

#: More files than this in the folder of cells are none of ours.
_MOST_FILES = 10_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One cell of the plan with what is known of it.

    Attributes:
        cell: the cell.
        record: what it found; None where it has not run.
        run: its launches; None without.
        analysis: the run under the roofs; None without.
        machine: the roofs.
    """

    cell: Cell
    record: CellRecord | None = None
    run: Run | None = None
    analysis: Analysis | None = None
    machine: Machine | None = None

    @property
    def step_s(self) -> float | None:
        """Median time of a step; None where it was not measured."""
        if self.record is None or not self.record.step_s:
            return None
        return statistics.median(self.record.step_s)

    @property
    def spread_s(self) -> float | None:
        """Half of the range in which the middle half of the steps lies."""
        if self.record is None or len(self.record.step_s) < 2:
            return None
        low, _, high = statistics.quantiles(self.record.step_s, n=4, method="inclusive")
        return (high - low) / 2

    @property
    def busy_s(self) -> float | None:
        """Time of the recorded step in which the GPU worked; None where it was not recorded."""
        passed = None if self.analysis is None else self.analysis.timeline
        return None if passed is None or not passed.steps else passed.busy_s / passed.steps

    @property
    def idle_s(self) -> float | None:
        """What an undisturbed step takes beyond that: the GPU waits for the host."""
        if self.step_s is None or self.busy_s is None:
            return None
        return max(0.0, self.step_s - self.busy_s)

    @property
    def flop(self) -> int | None:
        """Analytic FLOP of a step."""
        if self.record is None or not self.record.analytic:
            return None
        return sum(int(each.flop or 0) for each in self.record.analytic)

    @property
    def state(self) -> str:
        """In words, for tables."""
        return "not measured yet" if self.record is None else self.record.state

    def phase(self, key: str) -> Group | None:
        """One phase of the run."""
        if self.analysis is None:
            return None
        return next((each for each in self.analysis.phases if each.key == key), None)

    def part(self, key: str) -> Analysis | None:
        """The run of one phase under the roofs, for a chart."""
        if self.run is None or self.phase(key) is None:
            return None
        return analyze(Part(self.run, phase=key), self.machine)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study.

    Attributes:
        entries: every cell of the plan, in its order.
        pairs: changes that advice should lead to.
        rivals: ways to run the same step that are laid side by side.
        preset: name of the sizes.
        on_gpu: whether the cells are for a GPU.
        remarks: what the reader must know: files that could not be used, and what is not shown.
        whole: whether every file could be used.
    """

    entries: tuple[Entry, ...]
    pairs: tuple[Pair, ...]
    rivals: tuple[Pair, ...]
    preset: Preset
    on_gpu: bool
    remarks: tuple[str, ...] = ()
    whole: bool = True

    def entry(self, name: str) -> Entry | None:
        """The entry of a cell."""
        return next((each for each in self.entries if each.cell.name == name), None)

    @property
    def measured(self) -> tuple[Entry, ...]:
        """Entries whose cell ran."""
        return tuple(e for e in self.entries if e.record and e.record.state == "measured")


def gather(path: Path, machine: str | None = None) -> Study:
    """Read a study from its folder; of nothing there, every cell is not measured yet.

    Args:
        path: the folder.
        machine: machine file or name for the roofs; chosen by the GPU when not given.
    """
    folder = Folder(path)
    remarks: list[str] = []
    records = _records(folder, remarks)
    device, preset = _place(records)
    cells = deepcam(device, preset)
    entries = tuple(
        _entry(cell, records.get(cell.name), folder, machine, remarks) for cell in cells
    )
    whole = not remarks
    others = len(records.keys() - {cell.name for cell in cells})
    if others:
        remarks.append(
            f"{others} more cells in the folder belong to another device or size and are not shown"
        )
    return Study(
        entries=entries,
        pairs=pairs(device, preset),
        rivals=rivals(device, preset),
        preset=preset,
        on_gpu=device.startswith("cuda"),
        remarks=tuple(remarks),
        whole=whole,
    )


def _records(folder: Folder, remarks: list[str]) -> dict[str, CellRecord]:
    """Records by the names of their files, which alone say which cell they are of."""
    found = {}
    files = sorted((folder.path / "cells").glob("*.json"))[:_MOST_FILES]
    for file in files:
        try:
            record = folder.load(file.stem)
        except (FormatError, OSError) as error:
            remarks.append(f"left out: {error}")
            continue
        if record is not None:
            found[file.stem] = record
    return found


def _place(records: dict[str, CellRecord]) -> tuple[str, Preset]:
    """The device and size that most cells have, GPUs first."""
    places = collections.Counter(
        (str(record.configuration.get("device")), record.preset) for record in records.values()
    )
    best = max(places, key=lambda p: (p[0].startswith("cuda"), places[p], p), default=None)
    if best is None or not best[0].replace(":", "").isalnum():
        return "cuda:0", "paper"
    return best[0], "tiny" if best[1] == "tiny" else "paper"


def _entry(
    cell: Cell,
    record: CellRecord | None,
    folder: Folder,
    machine: str | None,
    remarks: list[str],
) -> Entry:
    file = folder.run_file(cell.name)
    if record is None or record.run is None:
        return Entry(cell=cell, record=record)
    if not file.is_file():
        remarks.append(f"the run of {cell.title} is missing: there is no {file}")
        return Entry(cell=cell, record=record)
    try:
        run = open_run(file)
        roofs, _ = machine_for(run, machine)
        analysis = analyze(run, roofs)
    except MansardError as error:
        remarks.append(f"the run of {cell.title} is left out: {error}")
        return Entry(cell=cell, record=record)
    return Entry(cell=cell, record=record, run=run, analysis=analysis, machine=roofs)
