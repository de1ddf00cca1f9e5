"""The columns of a capture beside the counters: what each result is and where it ran."""

import fnmatch
import functools
import math
from collections.abc import Mapping, Sequence

from mansard.readers.ncu_rep.kind import Evidence, result_kind
from mansard.readers.ncu_rep.nvtx import EVERY_THREAD, Ranges, ranges_around
from mansard.readers.ncu_rep.recording import Recording
from mansard.readers.ncu_rep.shape import grid_in_blocks
from mansard.readers.ncu_rep.table import Counters
from mansard.readers.ncu_rep.vocabulary import vocabulary

LaunchColumns = Mapping[str, Sequence[int | str | None]]
_NO_RANGES = Ranges()
#: Different NVTX states that are kept decoded at a time.
_STATES = 1024


def launch_columns(recording: Recording, counters: Counters) -> LaunchColumns:
    """The columns, by name, one entry per result.

    A result that is no kernel has no grid and no block: what the file has there is a maximum over
    several kernels. Neither has a launch that failed.
    """
    results = recording.results
    devices = _devices(recording, counters)
    kinds = _kinds(recording, counters)
    grids = _grids(recording, counters)
    whole = [
        (grid, result.block) if grid and result.block and kind == "kernel" else (None, None)
        for grid, result, kind in zip(grids, results, kinds, strict=True)
    ]
    around = functools.lru_cache(_STATES)(ranges_around)
    of_process = recording.session.options.get("nvtx-push-pop-scope") == "process"
    ranges = [
        around(result.nvtx, EVERY_THREAD if of_process else result.thread)
        if result.nvtx
        else _NO_RANGES
        for result in results
    ]
    columns: dict[str, Sequence[int | str | None]] = {
        "row": list(range(len(results))),
        "id": [str(row) for row in range(len(results))],
        "host": [host for _, host in recording.owners],
        "process": [process for process, _ in recording.owners],
        "device": devices,
        "stream": [result.stream for result in results],
        "kind": kinds,
        # A range has no name of its own; ncu prints its kind.
        "name": [result.name or kind for result, kind in zip(results, kinds, strict=True)],
        "phase": [entry.phase for entry in ranges],
        "range": [entry.path for entry in ranges],
    }
    for axis, letter in enumerate("xyz"):
        columns[f"grid_{letter}"] = [None if grid is None else grid[axis] for grid, _ in whole]
        columns[f"block_{letter}"] = [None if block is None else block[axis] for _, block in whole]
    return columns


def _devices(recording: Recording, counters: Counters) -> list[int | None]:
    """Index of the GPU: as the launch says, else the only one of the file."""
    attributes = recording.session.devices
    only = next(iter(attributes)) if len(attributes) == 1 else None
    said = counters.columns.get(vocabulary().launch["device"])
    if said is None:
        return [only] * len(recording.results)
    return [int(value) if 0 <= value < 2**31 else only for value in said.tolist()]


def _kinds(recording: Recording, counters: Counters) -> list[str | None]:
    options = recording.session.options
    pattern = vocabulary().launch["graph"]
    marks = [
        column.tolist()
        for name, column in counters.columns.items()
        if fnmatch.fnmatchcase(name, pattern)
    ]
    kinds: list[str | None] = []
    for row, result in enumerate(recording.results):
        evidence = Evidence(
            name=result.name,
            has_code=result.has_code,
            has_shape=result.grid is not None and result.block is not None,
            has_graph_metrics=not all(math.isnan(column[row]) for column in marks),
            listed=recording.listed[row],
        )
        kinds.append(
            result_kind(
                evidence,
                replay=options.get("replay-mode"),
                graph_profiling=options.get("graph-profiling"),
            )
        )
    return kinds


def _grids(recording: Recording, counters: Counters) -> list[tuple[int, int, int] | None]:
    launch = vocabulary().launch
    unknown = [math.nan] * len(recording.results)
    in_metrics, sizes = (
        unknown if (column := counters.columns.get(launch[fact])) is None else column.tolist()
        for fact in ("grid_x", "grid_size")
    )
    before_2020 = recording.session.collector_version is None
    return [
        grid_in_blocks(
            result.grid,
            result.block,
            grid_size=None if math.isnan(size) else size,
            has_grid_metric=not math.isnan(grid_x),
            before_2020=before_2020,
        )
        for result, grid_x, size in zip(recording.results, in_metrics, sizes, strict=True)
    ]
