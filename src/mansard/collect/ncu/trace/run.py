"""Runs a program once without counters, traced by the first way that works here."""

import contextlib
import dataclasses
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mansard.collect.cupti.driver import load_driver
from mansard.collect.cupti.library import find_cupti
from mansard.collect.ncu.options import Times
from mansard.collect.ncu.process import Ended, run_program
from mansard.collect.ncu.trace.build import build_injection
from mansard.collect.ncu.trace.layout import MOST_BYTES, layout_text
from mansard.collect.ncu.trace.nsys import find_nsys, nsys_command, read_sqlite
from mansard.collect.ncu.trace.trace import ProgramTrace, read_trace
from mansard.errors import DeviceError, MansardError

_INJECTION, _NVTX_INJECTION = "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"
_INSIDE = "mansard.collect.ncu.trace.inside"
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?$")
#: Options of python that take a value of their own.
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")
_IMPORT_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """The outcome of a traced run.

    Attributes:
        trace: what ran; None where it could not be recorded.
        ended: how the program ended; None where it was not started.
        missing: why there is no trace.
    """

    trace: ProgramTrace | None = None
    ended: Ended | None = None
    missing: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """A way to trace: what to run, with which variables, and how to read what it wrote."""

    command: Sequence[str]
    environment: Mapping[str, str]
    read: Callable[[], ProgramTrace]


def trace_program(
    program: Sequence[str],
    folder: Path,
    *,
    times: Times = Times.AUTO,
    from_start: bool = True,
    tick: Callable[[], None] = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> Traced:
    """Run a program and record its launches.

    Args:
        program: the program and its arguments.
        folder: an empty folder for the trace; it must allow programs to run from it.
        times: ``nsys`` to insist on Nsight Systems.
        from_start: False where only what lies between cudaProfilerStart and -Stop is asked for.
        tick: called a few times a second.
        environment: variables of the program; ours when None.
    """
    variables = dict(os.environ if environment is None else environment)
    way, missing = _choose(program, folder, times, variables, from_start=from_start)
    if way is None:
        return Traced(missing=missing)
    ended = run_program(way.command, environment=way.environment, tick=tick)
    try:
        return Traced(trace=way.read(), ended=ended)
    except MansardError as error:
        return Traced(ended=ended, missing=str(error))


def _choose(
    program: Sequence[str],
    folder: Path,
    times: Times,
    variables: Mapping[str, str],
    *,
    from_start: bool,
) -> tuple[_Way | None, str]:
    missing: list[str] = []
    if times is not Times.NSYS:
        cupti = find_cupti(_driver_major())
        if cupti is None:
            missing.append("CUPTI was not found (pip install mansard[cuda])")
        else:
            way = _injected(program, folder, cupti, variables) or _inside(
                program, folder, cupti, variables
            )
            if way is not None:
                return way, ""
            missing.append(
                f"{_INJECTION} is set already"
                if _INJECTION in variables
                else "no C compiler works here (cc, gcc, clang), and the program is not Python "
                "with Mansard installed"
            )
    nsys = find_nsys(variables)
    if nsys is None:
        missing.append("nsys is not on PATH")
        return None, "; ".join(missing)
    output = folder / "trace"
    command = nsys_command(nsys, program, output, from_start=from_start)
    exported = output.with_suffix(".sqlite")
    return _Way(command, variables, lambda: read_sqlite(exported, from_start=from_start)), ""


def _injected(
    program: Sequence[str], folder: Path, cupti: str, variables: Mapping[str, str]
) -> _Way | None:
    if _INJECTION in variables:
        return None
    library = build_injection(folder, variables)
    if library is None:
        return None
    added = {
        _INJECTION: str(library),
        # CUPTI takes part in NVTX only where NVTX is told of it.
        _NVTX_INJECTION: variables.get(_NVTX_INJECTION, cupti),
        "MANSARD_TRACE_FOLDER": str(folder),
        "MANSARD_TRACE_CUPTI": cupti,
        "MANSARD_TRACE_LAYOUT": layout_text(),
        "MANSARD_TRACE_BYTES": str(MOST_BYTES),
    }
    return _Way(program, {**variables, **added}, lambda: read_trace(folder, "CUPTI, injected"))


def _inside(
    program: Sequence[str], folder: Path, cupti: str, variables: Mapping[str, str]
) -> _Way | None:
    command = inside_command(program, folder)
    if command is None or not _imports(program[0], variables):
        return None
    added = {_NVTX_INJECTION: variables.get(_NVTX_INJECTION, cupti)}
    return _Way(command, {**variables, **added}, lambda: read_trace(folder, "CUPTI, in Python"))


def inside_command(program: Sequence[str], folder: Path) -> list[str] | None:
    """The command of a Python program with the tracer in between; None for another program."""
    if not _PYTHON.match(Path(program[0]).name):
        return None
    at = 1
    while at < len(program) and program[at].startswith("-") and program[at] not in ("-m", "-c"):
        at += 2 if program[at] in _WITH_VALUE else 1
    if at >= len(program):
        return None
    return [*program[:at], "-m", _INSIDE, str(folder), *program[at:]]


def _imports(python: str, variables: Mapping[str, str]) -> bool:
    """Whether that Python has Mansard, and all that the tracer needs."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        ended = subprocess.run(
            [python, "-c", f"import {_INSIDE}"],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_IMPORT_S,
            check=False,
        )
        return ended.returncode == 0
    return False


def _driver_major() -> int | None:
    with contextlib.suppress(DeviceError):
        return load_driver().cuda_version[0]
    return None
