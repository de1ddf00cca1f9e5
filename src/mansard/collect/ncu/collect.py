"""The course of a collection with Nsight Compute: trace, count, put together, write."""

import contextlib
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mansard.collect.ncu.choose import chosen_launches
from mansard.collect.ncu.command import Job, command_line
from mansard.collect.ncu.count import Progress, Watcher, count_launches
from mansard.collect.ncu.failures import failure, program_code
from mansard.collect.ncu.gate import loadable_folder
from mansard.collect.ncu.installation import NcuTool, find_ncu
from mansard.collect.ncu.metrics import split_by_chip, table_of, wanted_counters
from mansard.collect.ncu.options import NcuOptions
from mansard.collect.ncu.process import Ended, resolve_program
from mansard.collect.ncu.target import choose_target, with_groups
from mansard.collect.ncu.trace import Traced, trace_program
from mansard.collect.ncu.write import Counted, write_counted
from mansard.collect.ranks import Rank, file_of_rank, this_rank
from mansard.errors import CollectError, DeviceError, InputError, MansardError, OutputError
from mansard.model.run import Run


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came of a collection.

    Attributes:
        run: what was written; None where nothing was counted.
        failure: why not, then.
        program_code: exit code of the program; 0 where it is not known to have failed.
        stopped_by: signal that ended the collection early; None if none did.
        report: where ncu's report is kept, if it is; further ones of it lie beside it.
        seconds: wall time by stage.
    """

    run: Run | None = None
    failure: MansardError | None = None
    program_code: int = 0
    stopped_by: int | None = None
    report: Path | None = None
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)


def collect_with_ncu(
    command: Sequence[str],
    output: Path,
    options: NcuOptions | None = None,
    *,
    watch: Watcher | None = None,
) -> Collected:
    """Run a program under Nsight Compute and write its launches as a run.

    Args:
        command: the program and its arguments; no shell sees them.
        output: run file to write; in a parallel job a folder with one file a rank.
        options: which launches, how, and where their times come from.
        watch: called a few times a second.

    Raises:
        InputError: the program does not exist.
        DeviceError: there is no ncu or no GPU.
        UsageError: options do not fit together, or this ncu lacks something.
        OutputError: the folder of the output cannot be written to.
    """
    options, watch = options or NcuOptions(), watch or _ignore
    program = resolve_program(command)
    tool = find_ncu(given=options.ncu)
    table = table_of(options)
    counters, lost = split_by_chip(tool, table, wanted_counters(table, options))
    if not counters:
        raise DeviceError(f"{tool.label} knows none of the counters of table {table.name}")
    # Faults of the filters are told before anything runs.
    chosen_launches((), options.selection)
    rank = this_rank()
    path = file_of_rank(output, rank)
    with _working_folder(path) as folder, loadable_folder(folder) as loadable:
        job = Job(
            program=program,
            report=folder / f"{path.stem}.ncu-rep",
            log=folder / "ncu.log",
            counters=counters,
            selection=options.selection,
            conditions=options.conditions,
        )
        command_line(tool, job)
        traced = _trace(program, folder, options, watch)
        if traced.ended is not None and (traced.ended.code or traced.ended.stopped_by):
            return _failed_alone(traced.ended)
        begin = time.perf_counter()
        target = choose_target(tool, traced.trace, options, loadable)
        target = with_groups(
            dataclasses.replace(target, ranks=rank.size),
            counters,
            table,
            options.conditions,
            traced.ended.seconds if traced.ended is not None else None,
        )
        planned_s = time.perf_counter() - begin
        counting = count_launches(tool, job, target, options.selection, watch)
        counted = Counted(command=program, counting=counting, trace=traced, lost_counters=lost)
        watch(Progress(stage="write", step=counting.log.step, expected=target.expected))
        collected = _conclude(counted, tool, options, path=path, rank=rank)
    return dataclasses.replace(collected, seconds={**collected.seconds, "plan": planned_s})


def _ignore(_progress: Progress) -> None:
    """Nobody watches."""


def _trace(program: Sequence[str], folder: Path, options: NcuOptions, watch: Watcher) -> Traced:
    if not options.traced:
        return Traced()
    inside = folder / "trace"
    inside.mkdir()
    return trace_program(
        program,
        inside,
        times=options.times,
        from_start=options.selection.from_start and not options.of_regions,
        tick=lambda: watch(Progress(stage="trace")),
    )


def _failed_alone(ended: Ended) -> Collected:
    """The program did not end well without ncu: with it, it would not either."""
    if ended.stopped_by is not None:
        return Collected(
            failure=CollectError("interrupted while the program was traced: nothing was counted"),
            stopped_by=ended.stopped_by,
        )
    how = f"with code {ended.code}" if ended.code > 0 else f"by signal {-ended.code}"
    return Collected(
        failure=CollectError(
            f"the program ended {how} in its run without ncu, so it was not counted. If that is "
            "how it always ends, --times ncu does without this run"
        ),
        program_code=ended.code if ended.code > 0 else 128 - ended.code,
    )


def _conclude(
    counted: Counted, tool: NcuTool, options: NcuOptions, *, path: Path, rank: Rank
) -> Collected:
    counting = counted.counting
    run: Run | None = None
    problem: MansardError | None = None
    unread: InputError | None = None
    report: Path | None = None
    if counting.reports:
        try:
            run = write_counted(counted, options, path=path, rank=rank)
        except InputError as error:
            unread = error
        except OutputError as error:
            problem = error
    if run is None and problem is None:
        problem = failure(tool, counting, unread)
    wanted = options.keep_report or (path.with_suffix(".ncu-rep") if run is None else None)
    if wanted is not None:
        kept = [_keep(each, wanted, number) for number, each in enumerate(counting.reports, 1)]
        report = next(filter(None, kept), None)
    seconds = {"count": counting.ended.seconds}
    if counted.trace.ended is not None:
        seconds["trace"] = counted.trace.ended.seconds
    return Collected(
        run=run,
        failure=problem,
        program_code=program_code(counting.ended, counting.log),
        stopped_by=counting.ended.stopped_by,
        report=report,
        seconds=seconds,
    )


def _keep(report: Path, wanted: Path, number: int) -> Path | None:
    """Move a report to its place; None for an empty one, which is not worth it."""
    if not report.stat().st_size:
        return None
    target = wanted / report.name if wanted.is_dir() else wanted
    if number > 1 and target == wanted:
        target = wanted.with_stem(f"{wanted.stem}-{number}")
    try:
        shutil.move(report, target)
    except OSError as error:
        raise OutputError(f"cannot keep the report as {target}: {error.strerror}") from error
    return target


@contextlib.contextmanager
def _working_folder(path: Path) -> Iterator[Path]:
    """A folder beside the output, where there is room for what must be moved there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(
            prefix=".mansard-", dir=path.parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise OutputError(
            f"cannot write in {path.parent}: {error.strerror or error}; choose another -o"
        ) from error
    with folder as name:
        yield Path(name).resolve()
