"""The analysis: a run under the roofs of a machine."""

import dataclasses
from collections.abc import Sequence

from mansard import engine
from mansard.analysis import cube
from mansard.analysis.collected import absent_columns
from mansard.analysis.findings import Findings, findings
from mansard.analysis.floors import resources
from mansard.analysis.groups import group, kernel
from mansard.analysis.launches import launches
from mansard.analysis.options import AnalysisOptions
from mansard.errors import FormatError
from mansard.model.analysis import Analysis, Group
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.run import Run


def analyze(
    run: Run,
    machine: Machine | None = None,
    *,
    options: AnalysisOptions | None = None,
    notices: Sequence[Notice] = (),
) -> Analysis:
    """Place a run under the roofs of a machine.

    Each launch gets a least time for every resource (see ``analysis.floors``); times, work,
    traffic and floors are then summed by kernel, phase, family and rank.

    Args:
        run: the recorded launches.
        machine: the roofs; without them there are no floors, bounds or percentages.
        options: how to count and time; the defaults of ``AnalysisOptions`` when not given.
        notices: what the caller already has to say of this run and machine.

    Raises:
        FormatError: a file of the run is damaged.
    """
    options = options or AnalysisOptions()
    with (
        engine.connect() as connection,
        engine.translated(FormatError, f"the launches of {run.label or 'the run'} are damaged"),
    ):
        found = launches(connection, run)
        plan = cube.Plan(
            launches=found,
            resources=resources(machine, found.live) if machine else (),
            absent=absent_columns(run),
            options=options,
        )
        plan = cube.build(connection, plan)
        rows = cube.roll_up(connection, plan)
        shapes = cube.shapes(connection, found)
        kinds = cube.kinds(connection)
        totals_row = next(row for row in rows if row.of == "totals")
        faulty = cube.faulty_columns(connection, found) if totals_row.count("invalid") else []
    totals = group(totals_row, plan)
    kernels = sorted(
        (kernel(row, plan, shapes) for row in rows if row.of == "kernel"), key=_longest
    )
    facts = Findings(run, machine, plan, totals_row, totals, kernels, kinds, faulty)
    return Analysis(
        label=run.label,
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
    )


def _longest(group: Group) -> tuple[bool, float, str]:
    return group.duration_s is None, -(group.duration_s or 0.0), group.key or ""


def _by_rank(group: Group) -> tuple[bool, int]:
    return group.key is None, int(group.key or 0)
