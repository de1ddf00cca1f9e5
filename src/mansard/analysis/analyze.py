"""The analysis: a run under the roofs of a machine."""

import dataclasses
from collections.abc import Mapping, Sequence

from mansard import engine
from mansard.analysis import cube
from mansard.analysis.collected import absent_columns
from mansard.analysis.findings import Findings, findings
from mansard.analysis.floors import resources
from mansard.analysis.grids import idle_sms, shapes, sm_count
from mansard.analysis.groups import group, kernel
from mansard.analysis.launches import launches
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.parts import Part
from mansard.analysis.ranks import fleet
from mansard.analysis.sql_engine import Scan, embedded
from mansard.analysis.timeline import timeline
from mansard.errors import FormatError
from mansard.model.analysis import Analysis, Group, Kernel
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.run import Run


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
    traffic and floors are then summed by kernel, phase, family and rank.

    Args:
        run: the recorded launches, or a part of them.
        machine: the roofs; without them there are no floors, bounds or percentages.
        options: how to count and time; the defaults of ``AnalysisOptions`` when not given.
        notices: what the caller already has to say of this run and machine.
        scan: what runs the queries over the launches; see ``analysis.spark`` for another.

    Raises:
        FormatError: a file of the run is damaged.
    """
    options = options or AnalysisOptions()
    part = run if isinstance(run, Part) else Part(run)
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
        kinds = cube.kinds(connection)
        idle = idle_sms(connection, found, sm_count(run.provenance, machine))
        passed = timeline(connection, found, plan.scan)
        beside = fleet(connection, plan, traced=passed is not None)
        totals_row = next(row for row in rows if row.of == "totals")
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
        notices=findings(facts, (*run.all_notices, *notices)),
        options=dataclasses.asdict(options),
        timeline=passed,
        fleet=beside,
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
