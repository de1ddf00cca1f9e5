"""Runs a program under ncu: once, or once for each group of counters."""

import codecs
import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from mansard.collect.ncu.command import Job, command_line
from mansard.collect.ncu.gate import gate_variables, times_opened
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.log import Log, Step
from mansard.collect.ncu.metrics import refused_counters
from mansard.collect.ncu.options import Replay, Selection
from mansard.collect.ncu.process import Ended, run_program
from mansard.collect.ncu.target import Target, without_gate

#: Keeps ncu from copying its section files to the user's documents before each run.
_NO_DEPLOYMENT = "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"
_DEAF = "the library that shows them was not heard by the program"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a collection is.

    Attributes:
        stage: ``trace``, ``count`` or ``write``.
        step: where ncu is, while it counts; launches of earlier runs included.
        expected: launches that will be counted in all runs; None where that is unknown.
    """

    stage: str
    step: Step = dataclasses.field(default_factory=Step)
    expected: int | None = None


Watcher = Callable[[Progress], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """What came of the runs under ncu.

    Attributes:
        folder: where it worked.
        reports: what ncu wrote, a report a group of counters.
        ended: how they ended: the first that did not end well, with the seconds of all.
        log: what ncu said in all of them.
        target: what was counted.
        refused: counters that ncu does not count in this way.
        missing: counters of runs that gave no report.
        passes: passes of a launch in all runs; 0 where unknown.
    """

    folder: Path
    reports: Sequence[Path]
    ended: Ended
    log: Log
    target: Target
    refused: Sequence[str] = ()
    missing: Sequence[str] = ()
    passes: int = 0


def count_launches(
    tool: NcuTool, job: Job, target: Target, selection: Selection, watch: Watcher
) -> Counting:
    """Run the program under ncu, once for each group of counters.

    A later run is not begun when one did not end well: what was counted until then is kept.

    Args:
        tool: the ncu.
        job: the program, and where report and log go.
        target: launches and groups of counters.
        selection: how many of each, if they cannot be shown one by one.
        watch: called a few times a second.
    """
    log, ended = Log(), Ended(0, 0.0, None)
    reports: list[Path] = []
    refused: list[str] = []
    missing: list[str] = []
    passes = 0
    if len(target.groups) > 1:
        # Each run is one pass, so nothing is repeated in it.
        conditions = dataclasses.replace(job.conditions, replay=Replay.KERNEL)
        job = dataclasses.replace(job, conditions=conditions)
    for number, counters in enumerate(target.groups, start=1):
        if ended.code or ended.stopped_by is not None:
            missing += counters
            continue
        one = dataclasses.replace(job, counters=counters, report=_numbered(job.report, number))
        run = _Run(tool, one, target, selection, watch, before=log.step.kernels)
        run.until_counted()
        target = run.target
        refused += run.refused
        log.add(run.log)
        passes += run.log.step.passes or 0
        ended = dataclasses.replace(run.ended, seconds=ended.seconds + run.ended.seconds)
        if one.report.exists():
            reports.append(one.report)
        else:
            missing += counters
            ended = dataclasses.replace(ended, code=ended.code or 1)
    return Counting(
        folder=job.report.parent,
        reports=reports,
        ended=ended,
        log=log,
        target=target,
        refused=refused,
        missing=missing if reports else (),
        passes=passes,
    )


class _Run:
    """One run under ncu, repeated where ncu says that it could not count so."""

    def __init__(
        self,
        tool: NcuTool,
        job: Job,
        target: Target,
        selection: Selection,
        watch: Watcher,
        *,
        before: int,
    ) -> None:
        self.target = target
        self.refused: list[str] = []
        self.log = Log()
        self.ended = Ended(0, 0.0, None)
        self._tool, self._selection = tool, selection
        self._job = dataclasses.replace(job, gate=target.gate, numbers=target.numbers)
        self._watch, self._before = watch, before

    def until_counted(self) -> None:
        """Run; once more without counters that are refused, or without a gate that is not heard."""
        self._once()
        while not self._job.report.exists() and self.ended.stopped_by is None:
            more = refused_counters(self.log.messages, self._job.counters)
            left = tuple(each for each in self._job.counters if each not in more)
            if more and left:
                self.refused += more
                self._job = dataclasses.replace(self._job, counters=left)
            elif self._unheard():
                self.target = without_gate(self.target, self._tool, self._selection, _DEAF)
                numbers = self.target.numbers
                self._job = dataclasses.replace(self._job, gate=None, numbers=numbers)
            else:
                break
            self._once()

    def _unheard(self) -> bool:
        """Whether nothing was counted since the gate was never asked, or harmed the program.

        Of several ranks none may run once more alone.
        """
        gate, log = self._job.gate, self.log
        if gate is None or self.target.ranks > 1 or times_opened(gate):
            return False
        return log.no_kernels or bool(log.exit_code and not log.shut_down)

    def _once(self) -> None:
        line = command_line(self._tool, self._job)
        log = Log()
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        at = 0

        def tick() -> None:
            nonlocal at
            with contextlib.suppress(OSError), self._job.log.open("rb") as file:
                file.seek(at)
                data = file.read()
                at += len(data)
                log.feed(decoder.decode(data))
            self._tell(log.step)

        environment = {_NO_DEPLOYMENT: "1", **os.environ}
        if self._job.gate is not None:
            environment |= gate_variables(self._job.gate)
        self._job.log.unlink(missing_ok=True)
        self.ended = run_program(line, environment=environment, tick=tick)
        tick()
        log.close()
        self.log = log

    def _tell(self, step: Step) -> None:
        each = self.target.expected
        self._watch(
            Progress(
                stage="count",
                step=dataclasses.replace(step, kernels=self._before + step.kernels),
                expected=None if each is None else each * len(self.target.groups),
            )
        )


def _numbered(report: Path, number: int) -> Path:
    return report if number == 1 else report.with_stem(f"{report.stem}-{number}")
