"""Runs a program in a process group of its own: output untouched, signals passed on, none left."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from mansard.errors import InputError

#: How often the caller hears that the program still runs.
_TICK_S = 0.2
#: After an interrupt ncu ends the program and writes its report; a large one takes its time.
_GRACE_S = 60.0
#: Time for a program to end after SIGTERM, before SIGKILL.
_LAST_S = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        code: exit code; negative for the number of the signal that ended it.
        seconds: how long it ran.
        stopped_by: signal that Mansard got meanwhile; None if it ended by itself.
    """

    code: int
    seconds: float
    stopped_by: int | None = None


class _Stopped(Exception):  # noqa: N818  (a message to ourselves, and no error)
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def resolve_program(command: Sequence[str]) -> tuple[str, ...]:
    """The command with its program checked: it exists and can be run.

    A Python script that is not executable is run by this Python.

    Raises:
        InputError: there is no command, or its program does not exist or cannot be run.
    """
    if not command:
        raise InputError("no program: give it after --, for example: -- python train.py")
    program = command[0]
    if shutil.which(program) is not None:
        return tuple(command)
    path = Path(program)
    if path.suffix == ".py" and path.is_file():
        return (sys.executable, *command)
    if path.is_dir():
        raise InputError(f"{program} is a folder, not a program")
    if path.is_file():
        raise InputError(f"{program} may not be run: give it the right with chmod +x")
    where = "" if "/" in program else " on PATH"
    raise InputError(f"there is no program {program}{where}: check its name")


def run_program(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    tick: Callable[[], None] = lambda: None,
    grace_s: float = _GRACE_S,
) -> Ended:
    """Run a program to its end.

    It gets this process's output, and its input unless that is a terminal, which belongs to the
    group in front. On the first Ctrl-C (or SIGTERM, SIGHUP) the program is interrupted and has
    ``grace_s`` to end; after that, or on a second signal, its whole group is ended.

    Args:
        command: program and arguments; no shell sees them.
        environment: its variables; ours when None.
        tick: called a few times a second while it runs.
        grace_s: time to end after an interrupt.

    Raises:
        InputError: the program cannot be started.
    """
    begin = time.perf_counter()
    stopped_by: int | None = None
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL if _input_is_a_terminal() else None,
            env=None if environment is None else dict(environment),
            process_group=0,
        )
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{command[0]} cannot be started: {reason}") from error
    try:
        with _signals_as_exceptions():
            try:
                _wait(process, tick)
            except (KeyboardInterrupt, _Stopped) as stop:
                stopped_by = stop.number if isinstance(stop, _Stopped) else signal.SIGINT
                # To the program alone: under ncu that is ncu, which ends the rest in order.
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
                with contextlib.suppress(KeyboardInterrupt, _Stopped, subprocess.TimeoutExpired):
                    _wait(process, tick, grace_s)
                _end_group(process)
    except BaseException:
        _end_group(process)
        raise
    return Ended(process.returncode, time.perf_counter() - begin, stopped_by)


def _wait(
    process: "subprocess.Popen[bytes]", tick: Callable[[], None], limit_s: float | None = None
) -> None:
    begin = time.perf_counter()
    while True:
        try:
            process.wait(_TICK_S)
        except subprocess.TimeoutExpired:
            if limit_s is not None and time.perf_counter() - begin > limit_s:
                raise
            tick()
        else:
            tick()
            return


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of the group: the program, and children that it left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.perf_counter() + _LAST_S
        while time.perf_counter() < deadline:
            process.poll()
            os.killpg(process.pid, 0)  # raises once nobody is left
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Let a batch system's SIGTERM end the program as Ctrl-C does, not leave it behind."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _input_is_a_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return True
