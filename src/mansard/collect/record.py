"""Writes a recording as a run file: rows to a capture table, then through the counter table."""

import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mansard import engine
from mansard.collect.clocks import without_impossible
from mansard.collect.commit import commit_of
from mansard.collect.graphs import without_unseen
from mansard.collect.launches import Trace, busy_ns
from mansard.collect.ranks import Rank
from mansard.collect.recording import Recording, StepRecording
from mansard.collect.rows import NS_PER_S, RowContext, rows
from mansard.counters.apply import apply
from mansard.counters.formula import Formula
from mansard.counters.table import CounterTable
from mansard.errors import OutputError
from mansard.model.capture import CAPTURE_COLUMNS, Capture
from mansard.model.columns import COUNTER_PREFIX, WORK_COLUMNS
from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.readers.assemble import assemble
from mansard.version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLE = "collected"
#: Beside the columns of every capture: what only a collector inside the process knows.
_OWN_COLUMNS = (
    ("step", "INTEGER"),
    ("start_s", "DOUBLE"),
    ("duration_s", "DOUBLE"),
    ("op", "VARCHAR"),
    ("module", "VARCHAR"),
    ("bytes_link", "DOUBLE"),
)
#: Sums over kernels may differ from the count of the whole step by this much.
_SAME_WORK = 1e-3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a recording was made.

    Attributes:
        rank: the process.
        devices: the GPUs, by index.
        table: counter table of their chip.
        versions: of CUPTI and the driver's CUDA.
    """

    rank: Rank
    devices: Mapping[int, DeviceFacts]
    table: CounterTable
    versions: Mapping[str, str]


def write_recording(recording: Recording, origin: Origin, path: Path) -> Run:
    """Write what was collected as one run file.

    Returns:
        The run that was written.

    Raises:
        OutputError: the file cannot be written.
    """
    steps, notices = _steps(recording)
    steps, hidden = without_unseen(steps, origin.table)
    steps, cleared = without_impossible(steps, origin.table, origin.devices)
    notices += (*hidden, *cleared)
    counters = _counters(steps)
    applied = apply(origin.table, counters)
    work = [c.name for c in WORK_COLUMNS if c.name in applied.definitions]
    notices += check_work(recording, steps, {c: applied.definitions[c].formula for c in work})
    notices += _zero_notice(recording, applied.definitions)
    context = RowContext(rank=origin.rank, work_columns=work)
    provenance = Provenance(
        sources=(Path(sys.argv[0]).name,) if sys.argv and sys.argv[0] else (),
        collector="Mansard (CUPTI, inside the process)",
        collector_version=f"{__version__}, CUPTI {origin.versions.get('cupti', '')}".rstrip(),
        driver_version=driver_version(Path("/proc/driver/nvidia/version")),
        cuda_version=origin.versions.get("cuda"),
        devices=tuple(origin.devices[index] for index in sorted(origin.devices)),
        clock_control="none",
        cache_control="none",
        replay="application",
        notices=tuple(notices),
        extra={**_extra(recording, steps), **job_facts(origin.rank)},
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    with engine.connect() as connection:
        _load(connection, steps, context, counters)
        capture = Capture(_TABLE, counters, provenance)
        written = assemble([capture], connection, path)
    return Run((path,), (written,), (), path.name)


def _steps(recording: Recording) -> tuple[list[StepRecording], list[Notice]]:
    """The recorded steps; of one that was cut short, at least its trace."""
    steps, notices = list(recording.steps), list(recording.notices)
    if not steps and recording.pending is not None:
        steps.append(StepRecording(trace=recording.pending))
        notices.append(
            Notice(
                "counters-incomplete",
                "the collection ended before all passes were done: times and names are there, "
                "counters are not. Let the program run more iterations",
                partial=True,
            )
        )
    return steps, notices


def _counters(steps: Sequence[StepRecording]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for step in steps:
        for counted in (step.kernels, *(step.segments or {}).values()):
            found |= dict.fromkeys(counted.counters if counted else ())
    return tuple(found)


def check_work(
    recording: Recording, steps: Sequence[StepRecording], formulas: Mapping[str, str]
) -> list[Notice]:
    """Compare the work of all kernels with that of the step counted as a whole.

    Args:
        recording: its survey is the other side.
        steps: the recorded steps; the first is compared.
        formulas: by column of work, its formula over counters.
    """
    kernels = steps[0].kernels if steps else None
    if not recording.survey or kernels is None:
        return []
    sums = {c: sum(v or 0.0 for v in kernels.column(c)) for c in kernels.counters}
    totals = {
        c: sum(survey.get(c) or 0.0 for survey in recording.survey.values())
        for c in kernels.counters
    }
    found = []
    for column, text in formulas.items():
        formula = Formula.parse(text)
        one, other = formula.evaluate(sums), formula.evaluate(totals)
        if one is None or other is None or abs(one - other) <= _SAME_WORK * max(one, other):
            continue
        found.append(
            Notice(
                "work-differs",
                f"{column} is {one:.6g} summed over the kernels and {other:.6g} counted over a "
                "whole step: the iterations do not do the same work, or a kernel was missed",
            )
        )
    return found


def _zero_notice(recording: Recording, definitions: Mapping[str, object]) -> list[Notice]:
    if not recording.zeros:
        return []
    named = ", ".join(sorted(recording.zeros))
    return (
        [
            Notice(
                "counted-zero",
                "these counters were 0 over a whole step, so they are 0 for each launch without "
                f"counting them one by one: {named}",
            )
        ]
        if definitions
        else []
    )


def _extra(recording: Recording, steps: Sequence[StepRecording]) -> dict[str, str]:
    facts = {
        "level": str(recording.level),
        "iterations": str(recording.iterations),
        "passes": str(recording.passes),
        **{f"{name}_wall_s": f"{spent:.3f}" for name, spent in recording.seconds.items()},
    }
    if recording.host_ns:
        # The first ones tune and compile, and CUPTI delays each call a little: the fastest tells.
        # A program that does not wait for the GPU runs ahead of it, so no less than it was busy.
        busy = busy_ns(steps[0].trace.launches) if steps else 0
        facts["step_host_s"] = f"{max(min(recording.host_ns), busy) / NS_PER_S:.6f}"
    if steps:
        facts |= trace_facts(steps[0].trace)
    for framework in ("torch", "jax"):
        module = sys.modules.get(framework)
        if module is not None:
            facts[framework] = str(getattr(module, "__version__", "?"))
    return facts


def job_facts(rank: Rank) -> dict[str, str]:
    """What job this process is of: the commit of its program, and the number of its ranks."""
    program = sys.argv[0] if sys.argv else ""
    facts = commit_of(Path(program))
    if rank.rank is not None:
        facts |= {"rank": str(rank.rank), "world_size": str(rank.size)}
    return facts


def trace_facts(trace: Trace) -> dict[str, str]:
    """How well an iteration filled the GPU: wall time, busy time, and the time of its kernels."""
    wall = trace.end_ns - trace.start_ns
    busy = busy_ns(trace.launches)
    kernels = sum(kernel.end_ns - kernel.start_ns for kernel in trace.kernels)
    return {
        "step_wall_s": f"{wall / NS_PER_S:.6f}",
        "gpu_busy_s": f"{busy / NS_PER_S:.6f}",
        "gpu_busy_share": f"{busy / wall:.4f}" if wall else "",
        "kernel_time_s": f"{kernels / NS_PER_S:.6f}",
    }


def driver_version(file: Path) -> str | None:
    """Version of the display driver, from the kernel module's own file."""
    try:
        first = file.read_text(errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return None
    words = (word for word in first.split() if word[:1].isdecimal() and "." in word)
    return next(words, None)


def _load(
    connection: "DuckDBPyConnection",
    steps: Sequence[StepRecording],
    context: RowContext,
    counters: Sequence[str],
) -> None:
    """Create the capture table; lines of JSON keep unknown apart from zero on the way."""
    columns = {
        **dict(CAPTURE_COLUMNS),
        **dict(_OWN_COLUMNS),
        **dict.fromkeys(context.work_columns, "DOUBLE"),
        **{f"{COUNTER_PREFIX}{counter}": "DOUBLE" for counter in counters},
    }
    typed = ", ".join(f"{engine.literal(n)}: {engine.literal(t)}" for n, t in columns.items())
    with tempfile.NamedTemporaryFile("w", prefix="mansard-", suffix=".jsonl") as lines:
        for row in rows(steps, context):
            lines.write(json.dumps(row))
            lines.write("\n")
        lines.flush()
        connection.execute(
            f"CREATE TABLE {engine.identifier(_TABLE)} AS SELECT * FROM read_json("
            f"{engine.literal(lines.name)}, format = 'newline_delimited', "
            f"columns = {{{typed}}}, maximum_object_size = 16777216)"
        )
