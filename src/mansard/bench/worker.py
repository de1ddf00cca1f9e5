"""A child process that compiles or measures, seen from the parent: it may die, we may not."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO

import msgspec

from mansard.bench.messages import Reply, Request

_CHILD = "mansard.bench.cuda.child"
_MOST_LINE_BYTES = 64 * 1024**2


class WorkerDied(Exception):  # noqa: N818  (it is an event; the request names what failed)
    """The child ended before it answered; the message says how."""


class Worker:
    """One child process, started when it is first asked something.

    It runs in a process group of its own, so that Ctrl-C reaches the parent only.
    """

    def __init__(self, module: str = _CHILD) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self.restarts = 0

    def ask(self, request: Request, timeout_s: float) -> Reply:
        """Send a request and wait for its answer.

        Raises:
            WorkerDied: as ``exchange``.
        """
        line = self.exchange(msgspec.json.encode(request), timeout_s)
        return msgspec.json.decode(line, type=Reply)

    def exchange(self, asked: bytes, timeout_s: float) -> bytes:
        """Send one line and wait for the line that answers it.

        Raises:
            WorkerDied: the child crashed, or took too long and was ended. The next request starts
                a new one.
        """
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise WorkerDied("the child has no pipes")
        try:
            process.stdin.write(asked + b"\n")
            process.stdin.flush()
            line = _read_line(process.stdout, timeout_s)
        except TimeoutError:
            self.close()
            raise WorkerDied(f"no answer within {timeout_s:g} s; the process was ended") from None
        except OSError:
            line = b""
        if not line:
            raise WorkerDied(self._last_words())
        return line

    def close(self) -> None:
        """End the child, at once."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._said):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the child)
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.restarts += 1
        return self._process

    def _last_words(self) -> str:
        """How the child ended, and the last line that it printed."""
        process = self._process
        code = process.wait() if process is not None else None
        said = ""
        if self._said is not None:
            size = self._said.seek(0, os.SEEK_END)
            self._said.seek(max(0, size - 2000))
            lines = self._said.read().decode(errors="replace").strip().splitlines()
            said = f": {lines[-1][:200]}" if lines else ""
        self.close()
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"the process was ended by {name}{said}"
        return f"the process ended with code {code}{said}"


def _read_line(pipe: IO[bytes], timeout_s: float) -> bytes:
    """One line from a pipe; empty at its end.

    Raises:
        TimeoutError: the line did not come in time.
    """
    end = time.monotonic() + timeout_s
    collected = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError
            part = os.read(pipe.fileno(), 65536)
            collected += part
            if not part:
                return b""
            if part.endswith(b"\n"):
                return bytes(collected)
            if len(collected) > _MOST_LINE_BYTES:
                return b""
