"""What a counted run is told to count, and how it is told."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from mansard.collect.ncu.choose import chosen_launches, function_name
from mansard.collect.ncu.command import name_base
from mansard.collect.ncu.gate import build_gate, gate_text, why_no_gate
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.options import Conditions, Graphs, NcuOptions, Replay, Selection
from mansard.collect.ncu.passes import groups_for, runs_pay
from mansard.collect.ncu.plan import Plan, plan_all, plan_by_number, plan_by_time
from mansard.collect.ncu.trace import ProgramTrace
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.collect.ncu.vocabulary import is_collective
from mansard.collect.ncu.whole import Stretch, stretches_of
from mansard.counters.table import CounterTable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The launches of a counted run, as far as a trace tells them.

    Attributes:
        launches: traced launches that passed the filters; empty without a trace.
        stretches: the same as whole ranges or graphs, where these are counted.
        plan: which of them are counted; None without a trace.
        expected: how many launches ncu will count; None where that is unknown.
        gate: library that shows them to ncu; None where ncu's own filters do.
        ungated: why there is none, though it was wanted; empty otherwise.
        numbers: which launches of each kernel and shape ncu takes where it is not shown them.
        groups: counters that are counted together, a run of the program for each.
        left_out: counters that would need a run of their own, and are not worth it.
        ranks: processes of the job, which all run the program equally often.
    """

    launches: Sequence[TracedLaunch] = ()
    stretches: Sequence[Stretch] = ()
    plan: Plan | None = None
    expected: int | None = None
    gate: Path | None = None
    ungated: str = ""
    numbers: Sequence[int] = ()
    groups: Sequence[Sequence[str]] = ()
    left_out: Sequence[str] = ()
    ranks: int = 1

    @property
    def is_traced(self) -> bool:
        """Whether a trace tells the times."""
        return bool(self.launches or self.stretches)


def choose_target(
    tool: NcuTool, trace: ProgramTrace | None, options: NcuOptions, folder: Path
) -> Target:
    """Choose the launches to count.

    Args:
        tool: the ncu.
        trace: what the program launched; None where there is no trace.
        options: filters, and whether a sample is wanted.
        folder: where a library may be built that can be loaded before a program.
    """
    selection = options.selection
    if options.counts_whole:
        stretches = [] if trace is None else stretches_of(trace, options)
        return Target(stretches=stretches, expected=len(stretches) or selection.launch_count)
    launches = chosen_launches(trace.launches, selection) if trace is not None else []
    if trace is None or not launches:
        return Target(expected=selection.launch_count)
    if selection.sample is None:
        plan = plan_all(launches)
        return Target(launches=launches, plan=plan, expected=_expected(launches, selection))
    plan = plan_by_time(launches, selection)
    target = Target(launches=launches, plan=plan, expected=len(plan.picked))
    why = why_no_gate(tool, trace)
    if why is not None:
        return without_gate(target, tool, selection, why)
    gate = build_gate(folder, gate_text(trace, [launches[at] for at in sorted(plan.picked)]))
    if gate is None:
        why = "no C compiler works here (cc, gcc, clang), or the path of temporary files has blanks"
        return without_gate(target, tool, selection, why)
    return dataclasses.replace(target, gate=gate)


def without_gate(target: Target, tool: NcuTool, selection: Selection, why: str) -> Target:
    """The same launches where ncu can only take the same numbers of each kernel and shape.

    Args:
        target: what was to be counted.
        tool: the ncu.
        selection: how many of each.
        why: what keeps the chosen launches from being shown.
    """
    mangled = name_base(tool, selection) == "mangled"
    plan, numbers = plan_by_number(
        target.launches,
        selection,
        lambda each: (mangled and each.symbol) or function_name(each.name),
    )
    return dataclasses.replace(
        target, plan=plan, numbers=numbers, expected=len(plan.picked), gate=None, ungated=why
    )


def with_groups(
    target: Target,
    counters: Sequence[str],
    table: CounterTable,
    conditions: Conditions,
    program_s: float | None,
) -> Target:
    """Decide whether the program runs once for all counters, or once for each pass of them.

    Args:
        target: the launches.
        counters: vendor names.
        table: definitions for the chip.
        conditions: what a person asked for. Whole graphs and ranges are counted in one run.
        program_s: how long the traced run took; None where there was none, and then nothing tells
            which way takes less time. Nor does it for several ranks, which must decide alike.
    """
    whole = dataclasses.replace(target, groups=(tuple(counters),))
    replay = conditions.replay
    undecided = program_s is None or target.expected is None or target.ranks > 1
    if conditions.graphs is Graphs.GRAPH:
        return whole
    if replay is not Replay.APPLICATION and (replay is not Replay.AUTO or undecided):
        return whole
    found = groups_for(table, counters)
    if found is None or len(found[0]) == 1:
        return whole
    groups, homeless = found
    if replay is Replay.AUTO and not runs_pay(len(groups), target.expected or 0, program_s or 0.0):
        return whole
    return dataclasses.replace(target, groups=groups, left_out=homeless)


def _expected(launches: Sequence[TracedLaunch], selection: Selection) -> int:
    return sum(
        launch.kind == "kernel" and (selection.collectives or not is_collective(launch.name))
        for launch in launches
    )
