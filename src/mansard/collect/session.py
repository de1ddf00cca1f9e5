"""``mansard.profile``: one collection around the steps of a program."""

import atexit
import contextlib
import dataclasses
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mansard.collect.cupti_instruments import CuptiInstruments
from mansard.collect.instruments import Level
from mansard.collect.procedure import Collection, Course
from mansard.collect.ranks import file_of_rank, this_rank
from mansard.collect.record import Origin, write_recording
from mansard.collect.recording import ProcedureOptions, Recording
from mansard.collect.torch_hooks import TorchHooks
from mansard.collect.torch_names import TorchNamer
from mansard.collect.watch import PhaseRule, Watch
from mansard.errors import CollectError, MansardError, UsageError
from mansard.model.notice import Notice
from mansard.model.run import Run


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """How a profile is taken.

    Attributes:
        procedure: level, steps and warm-up.
        phases: where phases come from.
        columns: columns of a run to make; all that the chip can count when None.
        operators: whether PyTorch's operators and modules are named.
        last: whether no other profile follows in this process, so that CUPTI leaves it for good
            and the program goes on at its full speed.
    """

    procedure: ProcedureOptions = dataclasses.field(default_factory=ProcedureOptions)
    phases: PhaseRule = PhaseRule.AUTO
    columns: Sequence[str] | None = None
    operators: bool = True
    last: bool = False


class Profile:
    """A profile that is being taken; ``mansard.profile`` makes it.

    Attributes:
        run: what was written, once it is; None before, and where nothing was recorded.
        failure: why the collection stopped early, if it did. The program itself goes on.
    """

    def __init__(
        self,
        path: Path,
        options: ProfileOptions,
        *,
        hooks: "Callable[[Profile], contextlib.AbstractContextManager[object]] | None" = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._options, self._hooks = options, hooks or listen_to_torch
        self._rank = this_rank()
        self._path = file_of_rank(path, self._rank)
        self._say = say or to_stderr
        self._instruments = CuptiInstruments(options.columns)
        self._watch = Watch(self._instruments.now_ns, options.phases)
        settle = 1 if self._rank.size > 1 else 0
        procedure = dataclasses.replace(options.procedure, settle=settle)
        self._collection = Collection(self._instruments, procedure, self._watch)
        self._course: Course | None = self._collection.run()
        self._scope = contextlib.ExitStack()
        self._inside = False
        self._started = time.perf_counter()
        self.run: Run | None = None
        self.failure: MansardError | None = None
        next(self._course)

    @property
    def done(self) -> bool:
        """Whether all was collected (or the collection gave up); further steps cost nothing."""
        return self._course is None

    @property
    def recording(self) -> Recording:
        """What was collected so far."""
        return self._collection.recording

    @property
    def watch(self) -> Watch:
        """Where hooks of a framework tell what it does."""
        return self._watch

    def __enter__(self) -> Self:
        self._scope.enter_context(self._watch.listening())
        self._scope.enter_context(self._hooks(self))
        torch = sys.modules.get("torch")
        if torch is not None and self._options.operators:
            self._collection.namer = TorchNamer(torch, self._instruments.now_ns)
        atexit.register(self.close)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """One iteration of the program; each pass of the counters takes one."""
        self.begin_step()
        try:
            yield
        except BaseException:
            self.close()
            raise
        self.end_step()

    def begin_step(self) -> None:
        """Tell that an iteration begins; ``step`` is easier where a with-block fits."""
        if self._inside:
            raise UsageError("a step began inside another step of the same profile")
        self._inside = True
        self._advance()

    def end_step(self) -> None:
        """Tell that the iteration has ended."""
        if not self._inside:
            raise UsageError("a step ended that had not begun")
        self._inside = False
        self._advance()

    def close(self) -> None:
        """Hand the counters back and write what was collected; may be called again."""
        atexit.unregister(self.close)
        self._scope.close()
        self._inside = False
        course, self._course = self._course, None
        try:
            if course is not None:
                course.close()
        except MansardError as error:
            self._fail(error)
        finally:
            self._release()
        if self.run is None:
            self._write(finished=course is None)
        if course is not None:
            self._leave()

    def _advance(self) -> None:
        """Resume the collection; an error of ours ends it and never reaches the program."""
        if self._course is None:
            return
        try:
            next(self._course)
        except StopIteration:
            self._finish()
        except MansardError as error:
            self._fail(error)
            self._finish()
        except Exception as error:  # noqa: BLE001  (a fault of ours must not end the program)
            self._fault(error)
            self._finish()

    def _finish(self) -> None:
        self._course = None
        self._scope.close()
        self._release()
        self._write(finished=True)
        self._leave()

    def _leave(self) -> None:
        """Take CUPTI out of the process, where nobody needs it any more.

        Not in a job of several ranks: NCCL's watchdog makes CUDA calls from a thread of its own,
        and one that is inside CUPTI while it goes would end the program.
        """
        if self._options.last and self._rank.size == 1:
            self._instruments.detach()

    def _release(self) -> None:
        try:
            self._instruments.close()
        except MansardError as error:
            self._fail(error)

    def _fault(self, error: Exception) -> None:
        """Show a fault of Mansard whole, and go on as after any failure."""
        traceback.print_exception(error)
        self._fail(CollectError(f"a fault in Mansard ended the collection: {error!r}"))

    def _fail(self, error: MansardError) -> None:
        if self.failure is None:
            self.failure = error
            self._say(f"the collection stopped: {error}")
            notice = Notice("collection-stopped", str(error), partial=True)
            self._collection.recording.notices.append(notice)

    def _write(self, *, finished: bool) -> None:
        recording = self._collection.recording
        trace = recording.steps[0].trace if recording.steps else recording.pending
        if trace is None:
            if self.failure is None:
                self.failure = CollectError(
                    f"nothing was recorded: {recording.iterations} iterations ended, all of them "
                    "warm-up. Let more run, each inside 'with p.step():', or lower the warm-up",
                    slug="no-steps",
                )
                self._say(str(self.failure))
            return
        try:
            origin = Origin(
                rank=self._rank,
                devices={device: self._instruments.facts(device) for device in trace.devices},
                table=self._instruments.table(trace.devices[0]),
                versions=self._instruments.versions,
            )
            self.run = write_recording(recording, origin, self._path)
        except MansardError as error:
            self._fail(error)
            return
        except Exception as error:  # noqa: BLE001  (as in _advance)
            self._fault(error)
            return
        spent = time.perf_counter() - self._started
        state = "" if finished and recording.steps else ", incomplete"
        self._say(
            f"{self._path}: {len(trace.kernels)} kernels, {recording.iterations} iterations, "
            f"{spent:.1f} s{state}"
        )


@contextlib.contextmanager
def listen_to_torch(taken: Profile) -> Iterator[None]:
    """Let PyTorch, if the program has loaded it, tell a profile of its phases."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    hooks = TorchHooks(torch, taken.watch.note)
    hooks.install()
    try:
        yield
    finally:
        hooks.remove()


def profile(
    path: Path | str,
    *,
    steps: int = 1,
    warmup: int = 3,
    level: Level | str = Level.COUNTERS,
    phases: PhaseRule | str = PhaseRule.AUTO,
    columns: Sequence[str] | None = None,
    operators: bool = True,
    last: bool = False,
) -> Profile:
    """Count what each kernel of a training step does, inside this process.

    A training loop repeats itself: the first steps warm up, one is traced undisturbed, and each
    further one is a pass of the hardware counters. When all is collected the run file is written
    and the loop goes on at full speed.

    Args:
        path: run file to write (Parquet); in a parallel job a folder with one file a rank.
        steps: iterations to record, each with all its passes.
        warmup: iterations before the first.
        level: ``counters`` of every launch, ``phases``, or ``trace`` (times alone).
        phases: ``auto``, ``own``, ``torch`` or ``none``; see ``PhaseRule``.
        columns: columns of a run to make, e.g. ``("flop_vector_fp32", "bytes_dram")``; all that
            the chip can count by default.
        operators: name PyTorch's operator and module behind each kernel, from one more iteration
            that is watched through a dispatch mode.
        last: no other profile follows in this process: CUPTI then leaves it for good. Otherwise
            what it leaves in each driver call slows a program that is bound by launches.

    Raises:
        DeviceError: there is no GPU, driver or CUPTI that could be used.
        UsageError: an option has a value that does not exist.

    Example:
        >>> with mansard.profile("run.parquet") as p:  # doctest: +SKIP
        ...     for batch in loader:
        ...         with p.step():
        ...             train(batch)
    """
    if steps < 1 or warmup < 0:
        raise UsageError(f"steps is {steps} and warmup {warmup}; at least 1 and 0 are needed")
    options = ProfileOptions(
        procedure=ProcedureOptions(level=_choice(Level, level), steps=steps, warmup=warmup),
        phases=_choice(PhaseRule, phases),
        columns=columns,
        operators=operators,
        last=last,
    )
    return Profile(Path(path), options)


def profile_callable(
    function: Callable[..., Any],
    *arguments: Any,
    path: Path | str = "run.parquet",
    steps: int = 3,
    warmup: int = 3,
    level: Level | str = Level.COUNTERS,
) -> Run:
    """Profile a function by calling it as often as the passes need, for kernels and notebooks.

    Args:
        function: what to run; it must do the same work at each call.
        arguments: passed to it.
        path: run file to write.
        steps: calls to record, so that the run shows the spread.
        warmup: calls before the first.
        level: as for ``profile``.

    Returns:
        The run.

    Raises:
        CollectError: the collection failed.
    """
    with profile(path, steps=steps, warmup=warmup, level=level) as taken:
        while not taken.done:
            with taken.step():
                function(*arguments)
    if taken.run is None:
        raise taken.failure or CollectError("nothing was recorded")
    return taken.run


def _choice(kind: Any, value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(each.value for each in kind)
        raise UsageError(f"'{value}' is not one of {known}") from None


def to_stderr(text: str) -> None:
    """Say something where it does not mix with the program's results."""
    sys.stderr.write(f"mansard: {text}\n")
