"""The analysis: a run under the roofs of a machine."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from mansard import engine
from mansard.analysis import cube
from mansard.analysis.collected import absent_columns
from mansard.analysis.file_statistics import within
from mansard.analysis.findings import Findings, findings
from mansard.analysis.floors import resources
from mansard.analysis.grids import idle_sms, shapes, sm_count
from mansard.analysis.groups import group, kernel
from mansard.analysis.launches import Launches, launches
from mansard.analysis.layers import layers
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.parts import Part
from mansard.analysis.ranks import fleet
from mansard.analysis.sql_engine import Scan, embedded
from mansard.analysis.timeline import host_steps_s, timeline
from mansard.analysis.whole_files import on_whole_files
from mansard.errors import FormatError
from mansard.model.analysis import Analysis, Group, Kernel
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.run import Run

#: A sum of many values is rounded.
_ROUNDING = 1 + 1e-9


def analyze(
    run: Run | Part,
    machine: Machine | None = None,
    *,
    options: AnalysisOptions | None = None,
    notices: Sequence[Notice] = (),
    scan: Scan = embedded,
) -> Analysis:
    """Place a run under the roofs of a machine.

    Each launch gets a least time for every resource (see ``analysis.floors``); times, work,
    traffic and floors are then summed by kernel, phase, family and rank, and by module and
    operator of the framework where they are known.

    Args:
        run: the recorded launches, or a part of them.
        machine: the roofs; without them there are no floors, bounds or percentages.
        options: how to count and time; the defaults of ``AnalysisOptions`` when not given.
        notices: what the caller already has to say of this run and machine.
        scan: what runs the queries over the launches; see ``analysis.spark`` for another.

    Returns:
        The analysis. Of a run of several files, those that are damaged are named in its notices
        and left out; ``Analysis.run`` is what remains.

    Raises:
        FormatError: the only file of the run is damaged, or all are.
    """
    options = options or AnalysisOptions()
    part = run if isinstance(run, Part) else Part(run)
    given, engine_of = part.run, scan

    def analyzed(whole: Run) -> Analysis:
        of = part if whole is given else dataclasses.replace(part, run=whole)
        scan = engine_of if whole is given else engine_of.on(whole)
        return _analyze(of, machine, options, notices=notices, scan=scan)

    return on_whole_files(given, analyzed, scan=scan)


def _analyze(
    part: Part,
    machine: Machine | None,
    options: AnalysisOptions,
    *,
    notices: Sequence[Notice],
    scan: Scan,
) -> Analysis:
    run = part.run
    with (
        engine.connect() as connection,
        engine.translated(FormatError, f"the launches of {run.label or 'the run'} are damaged"),
    ):
        found = part.of(launches(connection, run))
        plan = cube.Plan(
            launches=found,
            resources=resources(machine, found) if machine else (),
            absent=absent_columns(run),
            options=options,
            scan=scan,
        )
        plan = cube.build(connection, plan, machine)
        rows = cube.roll_up(connection, plan)
        shaped = shapes(connection, found, plan.scan)
        named = layers(connection, plan)
        kinds = cube.kinds(connection)
        idle = idle_sms(connection, found, sm_count(run.provenance, machine))
        passed = timeline(connection, found, plan.scan)
        steps_s = host_steps_s(part)
        if passed is not None and steps_s:
            passed = dataclasses.replace(passed, host_s=statistics.fmean(steps_s) * passed.steps)
        beside = fleet(connection, plan, traced=passed is not None)
        totals_row = next(row for row in rows if row.of == "totals")
        _check_limits(totals_row, found)
        faulty = cube.faulty_columns(connection, found) if totals_row.count("invalid") else []
    totals = group(totals_row, plan)
    kernels = sorted(
        (_on_grids(kernel(row, plan, shaped), idle) for row in rows if row.of == "kernel"),
        key=_longest,
    )
    facts = Findings(run, machine, plan, totals_row, totals, kernels, kinds, faulty)
    return Analysis(
        label=part.label,
        provenance=run.provenance,
        machine=machine,
        totals=totals,
        phases=tuple(group(row, plan) for row in rows if row.of == "phase"),
        families=tuple(
            sorted((group(row, plan) for row in rows if row.of == "family"), key=_longest)
        ),
        ranks=tuple(sorted((group(row, plan) for row in rows if row.of == "rank"), key=_by_rank)),
        kernels=tuple(kernels),
        modules=named["module"],
        layers=named["layer"],
        operators=named["operator"],
        notices=findings(facts, (*run.all_notices, *notices)),
        options=dataclasses.asdict(options),
        timeline=passed,
        fleet=beside,
        run=run,
    )


def _check_limits(totals: cube.Row, launches: Launches) -> None:
    """Refuse values that the files' own statistics exclude: bytes within a file were changed."""
    for column, (_, most) in launches.limits.items():
        total = totals.value(column)
        if total is not None and not 0 <= total <= totals.count("launches") * most * _ROUNDING:
            raise FormatError(
                f"the launches are damaged: {column} sums up to {total:g}, "
                f"but no launch had more than {most:g} when they were written"
            )
    shortest, longest = totals.value("shortest_s"), totals.value("longest_s")
    taken = launches.limits.get("duration_s")
    if taken is None or shortest is None or longest is None:
        return
    if not within(taken, shortest, longest):
        raise FormatError(
            f"the launches are damaged: they take {shortest:g} to {longest:g} s, "
            f"but took {taken[0]:g} to {taken[1]:g} s when they were written"
        )


def _on_grids(kernel: Kernel, idle: Mapping[str | None, tuple[int, float]]) -> Kernel:
    """The kernel with what is known of its grids."""
    if kernel.key not in idle:
        return kernel
    count, idle_s = idle[kernel.key]
    return dataclasses.replace(kernel, idle_sm_launches=count, idle_sm_s=idle_s)


def _longest(group: Group) -> tuple[bool, float, str]:
    return group.duration_s is None, -(group.duration_s or 0.0), group.key or ""


def _by_rank(group: Group) -> tuple[bool, int]:
    return group.key is None, int(group.key or 0)
