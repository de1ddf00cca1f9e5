"""Runs the cells of a study, each in a process of its own, and keeps what is finished."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from mansard.study.cell import CellRecord, Folder
from mansard.study.measure import blank
from mansard.study.plan import Cell
from mansard.study.process import Ended, run_process
from mansard.workloads.workload import Framework

#: A cell may take so long.
TIME_LIMIT_S = 300.0

#: The cells of the quick study on a GPU may take so long together.
QUICK_BUDGET_S = 300.0

#: Called with what is being done and the share that is done.
Progress = Callable[[str, float], None]

#: ``kept``: it was measured before. ``not started``: the budget or an interrupt came first.
Outcome = Literal["measured", "unavailable", "failed", "kept", "not started"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How cells are run.

    Attributes:
        preset: name of the sizes.
        again: measure cells anew that were measured before.
        time_limit_s: for each cell.
        budget_s: no cell is started after this, and none runs beyond it; None is no limit.
        absent: frameworks that are not installed, with the reason: no process is started for them.
    """

    preset: str = "paper"
    again: bool = False
    time_limit_s: float = TIME_LIMIT_S
    budget_s: float | None = None
    absent: Mapping[Framework, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class StudyRun:
    """What became of each cell.

    Attributes:
        outcomes: by name of the cell, in the order of the plan.
        interrupted: whether Ctrl-C ended it.
        out_of_time: whether the budget ended it.
    """

    outcomes: dict[str, Outcome]
    interrupted: bool = False
    out_of_time: bool = False


#: Runs one cell within a time limit.
Start = Callable[[Cell, float], None]


def is_kept(folder: Folder, cell: Cell, options: RunOptions) -> bool:
    """Whether what the folder has of a cell is whole, and is not to be measured anew."""
    found = folder.find(cell.name)
    return not options.again and found is not None and found.is_whole


def can_begin(cells: Sequence[Cell], folder: Folder, options: RunOptions) -> bool:
    """Whether some cell is kept, or has a framework that is installed."""
    return any(
        cell.configuration.framework not in options.absent or is_kept(folder, cell, options)
        for cell in cells
    )


def run_cells(
    cells: Sequence[Cell],
    folder: Folder,
    *,
    options: RunOptions | None = None,
    progress: Progress | None = None,
    start: Start | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> StudyRun:
    """Run cells in their order; a cell that fails leaves the others alone.

    Args:
        cells: what to run.
        folder: where the files go; cells measured there before are kept.
        options: limits, and whether to begin anew.
        progress: told of each cell.
        start: runs one cell; by default in a child process.
        clock: gives seconds.
    """
    options = options or RunOptions()
    folder.make()
    start = start or _in_child(folder, options)
    outcomes: dict[str, Outcome] = {
        cell.name: "kept" if is_kept(folder, cell, options) else "not started" for cell in cells
    }
    for cell in cells:
        reason = options.absent.get(cell.configuration.framework)
        if reason is not None and outcomes[cell.name] == "not started":
            _note_absence(cell, folder, options.preset, reason)
            outcomes[cell.name] = "unavailable"
    began = clock()

    def left_s() -> float:
        return math.inf if options.budget_s is None else options.budget_s - (clock() - began)

    for number, cell in enumerate(cells):
        if outcomes[cell.name] != "not started":
            continue
        if progress is not None:
            progress(cell.title, number / len(cells))
        limit = min(options.time_limit_s, left_s())
        if limit <= 0:
            return StudyRun(outcomes, out_of_time=True)
        with _set_aside(folder, cell) as earlier:
            try:
                start(cell, limit)
            except Ended as error:
                spent = left_s() <= 0
                if spent and folder.find(cell.name) is None:
                    return StudyRun(outcomes, out_of_time=True)
                cause = f"the time of all cells was out, {limit:.0f} s after this one began"
                _note_end(cell, folder, options.preset, cause if spent else str(error))
            except KeyboardInterrupt:
                return StudyRun(outcomes, interrupted=True)
            found = folder.find(cell.name)
            if found is None:
                found = _note_end(cell, folder, options.preset, "the process wrote no result")
            # What was measured better before comes back.
            outcomes[cell.name] = found.state if _worth(found) >= _worth(earlier) else "failed"
    return StudyRun(outcomes)


def _worth(record: CellRecord | None) -> int:
    """0 without a measurement, 1 with times alone because the profile was cut off, 2 whole."""
    if record is None or record.state != "measured":
        return 0
    return 2 if record.is_whole else 1


@contextlib.contextmanager
def _set_aside(folder: Folder, cell: Cell) -> Iterator[CellRecord | None]:
    """Keep the earlier files of a cell until there are better ones: nothing measured is lost."""
    before = folder.find(cell.name)
    files = (folder.cell_file(cell.name), folder.run_file(cell.name))
    kept = [(file, file.with_name(f"{file.name}.earlier")) for file in files]
    for file, aside in kept:
        if file.is_file():
            file.replace(aside)
    try:
        yield before
    finally:
        found, earlier = folder.find(cell.name), kept[0][1]
        better = found is not None and _worth(found) >= _worth(before)
        for file, aside in kept:
            if better or not earlier.exists():
                aside.unlink(missing_ok=True)
            else:
                file.unlink(missing_ok=True)
        if not better and earlier.exists():
            for file, aside in reversed(kept):
                if aside.exists():
                    aside.replace(file)


def _in_child(folder: Folder, options: RunOptions) -> Start:
    def start(cell: Cell, limit_s: float) -> None:
        arguments = (
            str(folder.path),
            cell.configuration.device,
            options.preset,
            cell.name,
        )
        run_process(arguments, folder.log_file(cell.name), limit_s=limit_s)

    return start


def _note_absence(cell: Cell, folder: Folder, preset: str, reason: str) -> None:
    """Say in the record of a cell that its framework is absent; what was measured stays."""
    if not _worth(folder.find(cell.name)):
        folder.save(
            msgspec.structs.replace(blank(cell, preset), state="unavailable", reason=reason)
        )


def _note_end(cell: Cell, folder: Folder, preset: str, reason: str) -> CellRecord:
    """Put the end of a process into the record of its cell; times that it has stay."""
    found = folder.find(cell.name)
    if found is not None and found.state == "measured":
        found = msgspec.structs.replace(found, collect_reason=f"ended in the profile: {reason}")
    else:
        found = msgspec.structs.replace(blank(cell, preset), reason=reason)
    folder.save(found)
    return found
