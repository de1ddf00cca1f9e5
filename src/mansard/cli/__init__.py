"""The command line: each command translates its options into one public function."""

import contextlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from mansard.cli.called import called_as
from mansard.errors import MansardError

#: Exit codes. 0: all was done; 2: cannot be used; 3: done, but the input was partial.
PARTIAL = 3
INTERRUPTED = 130
#: What the shell adds to the number of a signal.
_SIGNAL_BASE = 128

_LONGEST_MESSAGE = 2000
_LONGEST_NAME = 200
#: Digits of a width of a terminal.
_LONGEST_WIDTH = 4


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Every error of ours, and whatever the system refuses (a full disk, a right that is missing),
    becomes one line on standard error; anything else is a fault of Mansard and keeps its traceback.
    """
    _open_closed_streams()
    columns = os.environ.get("COLUMNS", "").strip().lstrip("0")
    if columns == "" or len(columns) > _LONGEST_WIDTH:
        # Some terminals and editors say 0 for unknown; tables of no width would be empty, and of
        # a million letters without end.
        os.environ.pop("COLUMNS", None)
    signals: list[int] = []
    try:
        with _ended_by_signals(signals):
            _run(arguments)
    except MansardError as error:
        _tell(str(error))
        if error.slug:
            _tell_more(error.slug)
        _exit(error.exit_code)
    except KeyboardInterrupt:
        _tell("interrupted")
        _exit(_code_of(signals))
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            # The reader of our output went away (mansard ... | head): not an error of ours.
            _exit(0)
        if stop.code == INTERRUPTED:
            _tell("interrupted")
            _exit(_code_of(signals))
        _exit(stop.code)
    except BrokenPipeError:
        _exit(0)
    except MemoryError:
        _tell("there is not enough memory")
        _exit(MansardError.exit_code)
    except OSError as error:
        if _is_of_the_program(error):
            raise
        _tell(_sentence(error))
        _exit(MansardError.exit_code)


def _run(arguments: list[str] | None) -> None:
    from mansard.cli.app import app

    try:
        app(args=arguments)
    finally:
        # A full disk shows here, and not when the interpreter is gone.
        sys.stdout.flush()


def _open_closed_streams() -> None:
    """Give a process that was started without standard streams (``>&-``) some of its own.

    Else the first file that is opened would take their place. Output fails with an error, as
    elsewhere; what would be told is not.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere(os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _nowhere(os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal lacks is no reason to fail.
            stream.reconfigure(errors="backslashreplace")


def _nowhere(access: int) -> TextIO:
    """A stream that lasts as long as the process; with O_RDONLY, each write to it fails."""
    return os.fdopen(os.open(os.devnull, access), "w", encoding="utf-8", closefd=False)


@contextlib.contextmanager
def _ended_by_signals(seen: list[int]) -> Iterator[None]:
    """Let a batch system's SIGTERM, or the end of the terminal, end us as Ctrl-C does.

    So temporary files go, and what a command promises to keep is kept.

    Args:
        seen: takes the numbers of the signals that came.
    """

    def stop(number: int, _: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before: dict[int, object] = {}
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None)):
        # Who started us may have said that we are to go on (nohup).
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # not the main thread
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number in before:
            signal.signal(number, signal.SIG_DFL)


def _code_of(signals: list[int]) -> int:
    return _SIGNAL_BASE + signals[0] if signals else INTERRUPTED


def _is_of_the_program(error: BaseException) -> bool:
    """Whether the program under ``mansard profile`` raised it: then it keeps its traceback."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == "runpy" for frame, _ in frames)


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"cannot write the output: {reason}"
    return f"{str(error.filename)[:_LONGEST_NAME]}: {reason}"


def _tell(message: str) -> None:
    words = " ".join(message.split())[:_LONGEST_MESSAGE]
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"mansard: {line}\n")


def _tell_more(slug: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"         more: {called_as()} doctor --explain {slug}\n")


def _exit(code: object) -> None:
    """Exit; what could not be written is not tried again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)  # type: ignore[arg-type]
