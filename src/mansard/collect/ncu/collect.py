"""The course of a collection with Nsight Compute: trace, count, put together, write."""

import codecs
import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mansard.collect.ncu.choose import chosen_launches
from mansard.collect.ncu.command import Job, command_line
from mansard.collect.ncu.failures import failure, program_code
from mansard.collect.ncu.installation import NcuTool, find_ncu
from mansard.collect.ncu.log import Log, Step
from mansard.collect.ncu.metrics import split_by_chip, table_of, wanted_counters
from mansard.collect.ncu.options import NcuOptions
from mansard.collect.ncu.process import Ended, resolve_program, run_program
from mansard.collect.ncu.trace import Traced, trace_program
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.collect.ncu.vocabulary import is_collective
from mansard.collect.ncu.write import Counted, write_counted
from mansard.collect.ranks import Rank, file_of_rank, this_rank
from mansard.errors import CollectError, DeviceError, InputError, MansardError, OutputError
from mansard.model.run import Run

#: Keeps ncu from copying its section files to the user's documents before each run.
_NO_DEPLOYMENT = "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a collection is.

    Attributes:
        stage: ``trace``, ``count`` or ``write``.
        step: where ncu is, while it counts.
        expected: launches that will be counted; None where that is unknown.
    """

    stage: str
    step: Step = dataclasses.field(default_factory=Step)
    expected: int | None = None


Watcher = Callable[[Progress], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came of a collection.

    Attributes:
        run: what was written; None where nothing was counted.
        failure: why not, then.
        program_code: exit code of the program; 0 where it is not known to have failed.
        stopped_by: signal that ended the collection early; None if none did.
        report: where ncu's report is kept, if it is.
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
    with _working_folder(path) as folder:
        job = Job(
            program=program,
            report=folder / f"{path.stem}.ncu-rep",
            log=folder / "ncu.log",
            counters=counters,
            selection=options.selection,
            conditions=options.conditions,
        )
        line = command_line(tool, job)
        traced = _trace(program, folder, options, watch)
        if traced.ended is not None and (traced.ended.code or traced.ended.stopped_by):
            return _failed_alone(traced.ended)
        launches = chosen_launches(traced.trace.launches, options.selection) if traced.trace else []
        expected = _expected(launches, options) if launches else options.selection.launch_count
        ended, log = _run_ncu(line, job.log, expected, watch)
        counted = Counted(
            command=program,
            report=job.report,
            ended=ended,
            log=log,
            launches=launches,
            trace=traced,
            lost_counters=lost,
        )
        watch(Progress(stage="write", step=log.step, expected=expected))
        return _conclude(counted, tool, options, path=path, rank=rank)


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
        from_start=options.selection.from_start,
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


def _run_ncu(
    line: Sequence[str], log_file: Path, expected: int | None, watch: Watcher
) -> tuple[Ended, Log]:
    log = Log()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    at = 0

    def tick() -> None:
        nonlocal at
        with contextlib.suppress(OSError), log_file.open("rb") as file:
            file.seek(at)
            data = file.read()
            at += len(data)
            log.feed(decoder.decode(data))
        watch(Progress(stage="count", step=log.step, expected=expected))

    environment = {_NO_DEPLOYMENT: "1", **os.environ}
    ended = run_program(line, environment=environment, tick=tick)
    tick()
    log.close()
    return ended, log


def _conclude(
    counted: Counted, tool: NcuTool, options: NcuOptions, *, path: Path, rank: Rank
) -> Collected:
    run: Run | None = None
    problem: MansardError | None = None
    report: Path | None = None
    if counted.report.exists():
        try:
            run = write_counted(counted, options, path=path, rank=rank)
        except (InputError, OutputError) as error:
            problem = error
    if run is None and not isinstance(problem, OutputError):
        problem = failure(tool, counted.ended, counted.log, counted.report.parent)
    wanted = options.keep_report or (path.with_suffix(".ncu-rep") if run is None else None)
    if wanted is not None and _worth_keeping(counted.report):
        report = _keep(counted.report, wanted)
    seconds = {"count": counted.ended.seconds}
    if counted.trace.ended is not None:
        seconds["trace"] = counted.trace.ended.seconds
    return Collected(
        run=run,
        failure=problem,
        program_code=program_code(counted.ended, counted.log),
        stopped_by=counted.ended.stopped_by,
        report=report,
        seconds=seconds,
    )


def _expected(launches: Sequence[TracedLaunch], options: NcuOptions) -> int:
    """How many launches ncu will count, as far as the trace tells."""
    kernels = [
        launch
        for launch in launches
        if launch.kind == "kernel"
        and (options.selection.collectives or not is_collective(launch.name))
    ]
    sample = options.selection.sample
    if sample is None:
        return len(kernels)
    shapes = Counter((each.symbol, each.shape, each.shared_bytes) for each in kernels)
    return sum(min(sample, count) for count in shapes.values())


def _worth_keeping(report: Path) -> bool:
    return report.exists() and report.stat().st_size > 0


def _keep(report: Path, wanted: Path) -> Path:
    target = wanted / report.name if wanted.is_dir() else wanted
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
