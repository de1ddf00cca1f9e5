"""Writes what was counted as a run file: the report as it is, or joined with the trace."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mansard.collect.commit import commit_of_command
from mansard.collect.ncu.count import Counting
from mansard.collect.ncu.coverage import coverage_notices, measure_coverage
from mansard.collect.ncu.failures import log_notices
from mansard.collect.ncu.join import JoinContext, join, needed_counters
from mansard.collect.ncu.merge import read_reports
from mansard.collect.ncu.notices import counting_notices, facts_of, unknown_notice
from mansard.collect.ncu.options import NcuOptions
from mansard.collect.ncu.trace import Traced
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.collect.ncu.whole import with_times
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
from mansard.readers.ncu_rep.times import RANGE_TIME_CODES

_TABLE = "counted"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Runs under ncu that have ended, and the traced run before them.

    Attributes:
        command: the program and its arguments.
        counting: what came of the counted runs.
        trace: the traced run.
        lost_counters: counters that this ncu does not know.
    """

    command: Sequence[str]
    counting: Counting
    trace: Traced
    lost_counters: Sequence[str] = ()


def write_counted(counted: Counted, options: NcuOptions, *, path: Path, rank: Rank) -> Run:
    """Read the report and write the run.

    Raises:
        InputError: the report cannot be read, or holds no launch.
        OutputError: the run cannot be written.
    """
    counting, target = counted.counting, counted.counting.target
    with connect() as connection:
        names = vocabulary()
        capture, symbols = read_reports(connection, counting.reports, _TABLE, names.shared_bytes)
        # ncu calls every host 127.0.0.1, and knows of no ranks.
        connection.execute(
            f"UPDATE {identifier(capture.table)} SET host = {literal(rank.host)}, "
            f"rank = {'NULL' if rank.rank is None else rank.rank}"
        )
        said = [
            *log_notices(counting.log),
            *counting_notices(counting, counted.trace, options, rank),
        ]
        if counted.lost_counters:
            said.append(unknown_notice(counted.lost_counters))
        extra = facts_of(counting, counted.trace, options) | commit_of_command(counted.command)
        if rank.rank is not None:
            extra |= {"rank": str(rank.rank), "world_size": str(rank.size)}
        if target.launches:
            applied = _applied(capture, options)
            needed = needed_counters(capture, applied, (*options.keep, names.shared_bytes))
            context = JoinContext(
                rank=rank,
                symbols=symbols,
                shared_bytes=names.shared_bytes,
                work_columns=[c.name for c in WORK_COLUMNS if c.name in applied.definitions],
                plan=target.plan,
            )
            slim = dataclasses.replace(capture, counters=needed)
            capture = join(connection, slim, target.launches, context)
            coverage = measure_coverage(connection, applied)
            said += coverage_notices(coverage, sampled=options.selection.sample is not None)
            extra |= coverage.facts
        if target.stretches:
            without = with_times(connection, capture, symbols, target.stretches)
            capture = _timed(capture, without)
        origin = _with(capture.provenance, said, extra)
        if len(target.groups) > 1:
            origin = msgspec.structs.replace(origin, replay="application")
        capture = dataclasses.replace(capture, provenance=origin)
        chosen = ImportOptions(counters=options.counters, chip=options.chip, keep=options.keep)
        written = assemble([capture], connection, path, options=chosen)
    return Run((path,), (written,), (), path.name)


def _timed(capture: Capture, without: int) -> Capture:
    """The capture with what must be said of times from a trace."""
    origin = capture.provenance
    if without:
        differ = Notice(
            "runs-differ",
            f"the traced run does not have the ranges, graphs and kernels of the counted run: "
            f"{without} rows have no time of it",
        )
        notices = (*origin.notices, differ)
    else:
        notices = tuple(each for each in origin.notices if each.code not in RANGE_TIME_CODES)
    return dataclasses.replace(capture, provenance=msgspec.structs.replace(origin, notices=notices))


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
