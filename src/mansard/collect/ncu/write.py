"""Writes what was counted as a run file: the report as it is, or joined with the trace."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mansard.collect.commit import commit_of_command
from mansard.collect.ncu.coverage import coverage_notices, measure_coverage
from mansard.collect.ncu.failures import log_notices
from mansard.collect.ncu.join import JoinContext, join, needed_counters
from mansard.collect.ncu.log import Log
from mansard.collect.ncu.options import NcuOptions
from mansard.collect.ncu.process import Ended
from mansard.collect.ncu.symbols import symbols_in
from mansard.collect.ncu.trace import Traced
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.collect.ranks import Rank
from mansard.counters.apply import Applied, apply
from mansard.counters.table import table_for
from mansard.engine import connect, identifier, literal
from mansard.model.capture import Capture
from mansard.model.columns import WORK_COLUMNS
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.readers.assemble import ImportOptions, assemble
from mansard.readers.ncu_rep import read_ncu_rep

_TABLE = "counted"
#: Why the conditions are as they are, for whoever reads the provenance.
_REASONS = {
    "clock_control": {
        "none": "clocks as the program finds them: locked ones give rates it never sees",
    },
    "cache_control": {
        "none": "caches as the launches before left them: empty ones add traffic it never has",
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A run under ncu that has ended, and the traced run before it.

    Attributes:
        command: the program and its arguments.
        report: what ncu wrote.
        ended: how it ended.
        log: what it said.
        launches: traced launches that it was asked to count; empty without a trace.
        trace: the traced run.
        lost_counters: counters that this ncu does not know.
    """

    command: Sequence[str]
    report: Path
    ended: Ended
    log: Log
    launches: Sequence[TracedLaunch]
    trace: Traced
    lost_counters: Sequence[str] = ()


def write_counted(counted: Counted, options: NcuOptions, *, path: Path, rank: Rank) -> Run:
    """Read the report and write the run.

    Raises:
        InputError: the report cannot be read, or holds no launch.
        OutputError: the run cannot be written.
    """
    with connect() as connection:
        capture = read_ncu_rep(counted.report, connection, _TABLE, name=counted.report.name)
        # ncu calls every host 127.0.0.1, and knows of no ranks.
        connection.execute(
            f"UPDATE {identifier(_TABLE)} SET host = {literal(rank.host)}, "
            f"rank = {'NULL' if rank.rank is None else rank.rank}"
        )
        said = [*log_notices(counted.log), *_own_notices(counted, options, rank)]
        extra = _facts(counted, options) | commit_of_command(counted.command)
        if rank.rank is not None:
            extra |= {"rank": str(rank.rank), "world_size": str(rank.size)}
        if counted.launches:
            applied = _applied(capture, options)
            names = needed_counters(capture, applied, (*options.keep, vocabulary().shared_bytes))
            context = JoinContext(
                rank=rank,
                symbols=symbols_in(counted.report),
                shared_bytes=vocabulary().shared_bytes,
                work_columns=[c.name for c in WORK_COLUMNS if c.name in applied.definitions],
            )
            slim = dataclasses.replace(capture, counters=names)
            capture = join(connection, slim, counted.launches, context)
            coverage = measure_coverage(connection, applied)
            said += coverage_notices(coverage, sampled=options.selection.sample is not None)
            extra |= coverage.facts
        capture = dataclasses.replace(capture, provenance=_with(capture.provenance, said, extra))
        chosen = ImportOptions(counters=options.counters, chip=options.chip, keep=options.keep)
        written = assemble([capture], connection, path, options=chosen)
    return Run((path,), (written,), (), path.name)


def _applied(capture: Capture, options: NcuOptions) -> Applied:
    devices = capture.provenance.devices
    device = devices[0] if devices else None
    table = table_for(
        name=options.counters,
        chip=device.chip if device else None,
        compute_capability=device.compute_capability if device else None,
    )
    return apply(table, capture.counters)


def _with(provenance: Provenance, notices: Sequence[Notice], extra: dict[str, str]) -> Provenance:
    return msgspec.structs.replace(
        provenance,
        notices=(*provenance.notices, *notices),
        extra={**provenance.extra, **extra},
    )


def _own_notices(counted: Counted, options: NcuOptions, rank: Rank) -> list[Notice]:
    said: list[Notice] = []
    selection = options.selection
    if counted.ended.code and not counted.log.has_errors:
        said.append(
            Notice(
                "ncu-failed",
                f"ncu ended with code {counted.ended.code} and did not say why: launches may be "
                "missing",
                partial=True,
            )
        )
    if counted.ended.stopped_by is not None:
        said.append(
            Notice(
                "interrupted",
                "the collection was interrupted: launches after that point were not counted",
                partial=True,
            )
        )
    if counted.lost_counters:
        said.append(
            Notice(
                "counters-unknown-to-ncu",
                f"this Nsight Compute does not know {', '.join(counted.lost_counters)}: columns "
                "made of them stay unknown. Use a newer one",
            )
        )
    if options.traced and not counted.launches:
        why = counted.trace.missing or "no traced launch passed the filters"
        if selection.sample is not None:
            text = (
                f"there is no trace ({why}), so the run holds only the launches that were counted, "
                f"at most {selection.sample} of each kernel and shape: its totals are not those of "
                "the program"
            )
        else:
            text = f"there is no trace ({why}), so times are those under ncu"
        said.append(Notice("no-trace", text, partial=selection.sample is not None))
    if counted.trace.trace is not None:
        said += counted.trace.trace.notices
    excluded = not selection.collectives and selection.kernel_name is None
    if excluded and not counted.launches and (rank.size > 1 or counted.log.processes > 1):
        said.append(
            Notice(
                "collectives-excluded",
                "kernels that wait for other ranks (NCCL, NVSHMEM and such) were left out, since "
                "a repeated launch of one rank alone hangs. --times trace gives their times, "
                "--collectives counts them all the same",
            )
        )
    return said


def _facts(counted: Counted, options: NcuOptions) -> dict[str, str]:
    conditions, trace = options.conditions, counted.trace.trace
    facts = {
        "count_wall_s": f"{counted.ended.seconds:.3f}",
        "times_from": trace.source if counted.launches and trace is not None else "ncu",
        "nvtx_scope": conditions.nvtx_scope.value,
    }
    for name, chosen in (
        ("clock_control", conditions.clocks.value),
        ("cache_control", conditions.caches.value),
    ):
        reason = _REASONS[name].get(chosen)
        if reason:
            facts[f"{name}_reason"] = reason
    if counted.trace.ended is not None:
        facts["trace_wall_s"] = f"{counted.trace.ended.seconds:.3f}"
    if counted.log.step.passes:
        facts["passes"] = str(counted.log.step.passes)
    if options.selection.sample is not None:
        facts["sample"] = str(options.selection.sample)
    return facts
