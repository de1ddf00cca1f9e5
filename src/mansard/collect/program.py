"""Runs an unchanged program in this process and takes a profile of its iterations."""

import contextlib
import dataclasses
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from mansard.collect.boundaries import Rule, boundaries
from mansard.collect.cupti.driver import load_driver
from mansard.collect.cupti.library import find_cupti
from mansard.collect.imports import after_import
from mansard.collect.instruments import Level
from mansard.collect.session import Profile, ProfileOptions, to_stderr
from mansard.collect.torch_phases import Event
from mansard.errors import CollectError, InputError

_NO_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer="
_SPLIT = "XLA command buffers are off for JAX, so that its kernels can be counted one by one"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """How a program is profiled.

    Attributes:
        profile: how its profile is taken.
        iterations_by: how iterations are told apart.
        then: whether the program goes on or is stopped when all is collected.
    """

    profile: ProfileOptions = dataclasses.field(default_factory=ProfileOptions)
    iterations_by: Rule = dataclasses.field(default_factory=lambda: Rule("optimizer"))
    then: Literal["continue", "stop"] = "continue"


class _ProgramStopped(SystemExit):
    """Ends the program when all is collected; its own clean-up runs."""


class _Steps:
    """Passes iterations on to a profile, which begins with the first of them.

    By then the program has loaded its framework, so the profile finds the CUPTI of that.
    """

    def __init__(self, make: Callable[[], Profile], then: str) -> None:
        self._make, self._then = make, then
        self._inside = False
        self.profile: Profile | None = None

    @property
    def done(self) -> bool:
        return self.profile is not None and self.profile.done

    def begin_step(self) -> None:
        if self.profile is None:
            self.profile = self._make()
            self.profile.__enter__()
        if self._inside or self.profile.done:
            return
        self._inside = True
        self.profile.begin_step()

    def end_step(self) -> None:
        if not self._inside or self.profile is None:
            return
        self._inside = False
        self.profile.end_step()
        if self.done and self._then == "stop":
            raise _ProgramStopped(0)

    def next_step(self) -> None:
        self.end_step()
        self.begin_step()

    def note(self, event: Event) -> None:
        if self.profile is not None:
            self.profile.watch.note(event)


def profile_program(
    command: Sequence[str],
    path: Path,
    *,
    options: ProgramOptions | None = None,
    run: Callable[[Sequence[str]], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Profile:
    """Run a script and profile its iterations.

    Args:
        command: the script and its arguments.
        path: run file to write.
        options: what is collected, and what an iteration is.
        run: how the command is started; ``run_script`` by default, or ``run_module``.
        say: takes messages for the user.

    Returns:
        The profile, closed.

    Raises:
        InputError: the script does not exist.
        DeviceError: no GPU or driver, told before the program starts.
        CollectError: no iteration was seen.
    """
    options = options or ProgramOptions()
    say = say or to_stderr
    load_driver()
    split = prepare_environment(options.profile.procedure.level)

    def make() -> Profile:
        return Profile(path, options.profile, hooks=contextlib.nullcontext, say=say)

    steps = _Steps(make, options.then)
    with (
        after_import("jax", lambda _: say(_SPLIT) if split else None),
        boundaries(options.iterations_by, steps),
        contextlib.suppress(_ProgramStopped),
    ):
        try:
            (run or run_script)(command)
        finally:
            if steps.profile is not None:
                steps.profile.close()
    if steps.profile is None:
        raise CollectError(
            f"no iteration of {command[0]} was seen: nothing told where one ends "
            f"(--iterations-by {options.iterations_by.kind}). A program without a PyTorch "
            "optimizer needs --iterations-by range, call or cudaProfilerStart",
            slug="no-steps",
        )
    return steps.profile


def run_script(command: Sequence[str]) -> None:
    """Run a file as ``python FILE ARGS`` would."""
    script = Path(command[0])
    if not script.is_file():
        raise InputError(f"there is no script {script}")
    with _arguments(command, script.resolve().parent):
        runpy.run_path(str(script), run_name="__main__")


def run_module(command: Sequence[str]) -> None:
    """Run a module as ``python -m MODULE ARGS`` would."""
    if importlib.util.find_spec(command[0].split(".", maxsplit=1)[0]) is None:
        raise InputError(f"there is no module {command[0]}")
    with _arguments(command, Path.cwd()):
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)


@contextlib.contextmanager
def _arguments(command: Sequence[str], folder: Path) -> Iterator[None]:
    """Let the program see its own arguments, and find what lies in its folder."""
    arguments, path = sys.argv, list(sys.path)
    sys.argv = list(command)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, path


def prepare_environment(level: Level) -> bool:
    """Set what must be set before a framework starts: NVTX to us, and no command buffers in JAX.

    Returns:
        Whether command buffers were switched off, which the user of JAX should know.
    """
    library = find_cupti()
    if library is not None:
        os.environ.setdefault("NVTX_INJECTION64_PATH", library)
    flags = os.environ.get("XLA_FLAGS", "")
    if (
        level is not Level.COUNTERS
        or "xla_gpu_enable_command_buffer" in flags
        or importlib.util.find_spec("jax") is None
    ):
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {_NO_COMMAND_BUFFERS}".strip()
    return True
