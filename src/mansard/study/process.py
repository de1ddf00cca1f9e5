"""One cell in a fresh process: another framework's memory, backend or crash does not reach it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_CHILD = (sys.executable, "-m", "mansard.study.child")

#: The end of a log that is searched for the reason of a crash.
_TAIL_BYTES = 4000
_MOST_LETTERS = 300


class Ended(Exception):  # noqa: N818  (an event; the cell's record tells of it)
    """The process did not end well; the message says how."""


def run_process(
    arguments: Sequence[str],
    log: Path,
    *,
    limit_s: float,
    command: Sequence[str] = _CHILD,
) -> None:
    """Run the process of a cell to its end.

    It is in a session of its own, so that Ctrl-C reaches the parent alone, which then ends it with
    everything that it started.

    Args:
        arguments: of the process.
        log: where its output goes.
        limit_s: after this it is ended.
        command: what is started; never through a shell.

    Raises:
        Ended: it crashed, failed or took too long.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Ended(f"the cell took more than {limit_s:.0f} s and was ended") from None
        finally:
            _end(process)
    if code:
        raise Ended(f"the process {_how(code)}{_last_words(log)}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all of its session, if it still runs."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _last_words(log: Path) -> str:
    """The last line of a log, as text for a sentence."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1][-_MOST_LETTERS:].strip()}" if lines else ""
