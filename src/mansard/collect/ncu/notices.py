"""What must be said of a collection with ncu, and the facts of it for the provenance."""

from collections.abc import Sequence

from mansard.collect.ncu.count import Counting
from mansard.collect.ncu.options import NcuOptions, Replay
from mansard.collect.ncu.target import Target
from mansard.collect.ncu.trace import Traced
from mansard.collect.ranks import Rank
from mansard.model.notice import Notice

#: Why the conditions are as they are, for whoever reads the provenance.
_REASONS = {
    "clock_control": {
        "none": "clocks as the program finds them: locked ones give rates it never sees",
    },
    "cache_control": {
        "none": "caches as the launches before left them: empty ones add traffic it never has",
    },
}


def counting_notices(
    counting: Counting, traced: Traced, options: NcuOptions, rank: Rank
) -> list[Notice]:
    """What must be said of how launches were chosen and counted.

    Args:
        counting: what came of the runs under ncu.
        traced: the traced run.
        options: what was asked for.
        rank: this process in its job.
    """
    said = [*_of_runs(counting), *_of_choice(counting.target, traced, options)]
    if traced.trace is not None:
        said += traced.trace.notices
    selection = options.selection
    filtered = not (selection.collectives or options.counts_whole)
    excluded = filtered and selection.kernel_name is None
    # In a run for each pass, ncu connects to each process as often.
    repeated = options.conditions.replay is Replay.APPLICATION
    alone = rank.size == 1 and (repeated or counting.log.processes <= 1)
    if excluded and not counting.target.launches and not alone:
        said.append(
            Notice(
                "collectives-excluded",
                "kernels that wait for other ranks (NCCL, NVSHMEM and such) were left out, since "
                "a repeated launch of one rank alone hangs. --times trace gives their times, "
                "--collectives counts them all the same",
            )
        )
    return said


def unknown_notice(counters: Sequence[str]) -> Notice:
    """That an ncu does not know some counters."""
    return Notice(
        "counters-unknown-to-ncu",
        f"this Nsight Compute does not know {', '.join(counters)}: columns made of them stay "
        "unknown. Use a newer one",
    )


def _of_runs(counting: Counting) -> list[Notice]:
    said: list[Notice] = []
    if counting.ended.code and not counting.log.has_errors:
        said.append(
            Notice(
                "ncu-failed",
                f"ncu ended with code {counting.ended.code} and did not say why: launches may be "
                "missing",
                partial=True,
            )
        )
    if counting.ended.stopped_by is not None:
        said.append(
            Notice(
                "interrupted",
                "the collection was interrupted: launches after that point were not counted",
                partial=True,
            )
        )
    if counting.refused:
        said.append(
            Notice(
                "counters-refused",
                "Nsight Compute does not count these in ranges and graphs, since it changes the "
                f"code of kernels for them: {', '.join(counting.refused)}. Columns made "
                "of them stay unknown; counting kernels one by one gives them",
            )
        )
    if counting.missing:
        said.append(
            Notice(
                "runs-incomplete",
                "the program runs once for each group of counters, and not all runs ended well: "
                f"{', '.join(counting.missing)} were not counted",
                partial=True,
            )
        )
    if counting.target.left_out:
        said.append(
            Notice(
                "counters-left-out",
                f"{', '.join(counting.target.left_out)} would need another run of the program for "
                "work of integers alone, so columns made of them stay unknown; --replay kernel "
                "counts them",
            )
        )
    return said


def _of_choice(target: Target, traced: Traced, options: NcuOptions) -> list[Notice]:
    said: list[Notice] = []
    selection = options.selection
    if options.traced and not target.is_traced:
        why = traced.missing or "no traced launch passed the filters"
        if selection.sample is not None:
            text = (
                f"there is no trace ({why}), so the run holds only the launches that were counted, "
                f"at most {selection.sample} of each kernel and shape: its totals are not those of "
                "the program"
            )
        elif options.counts_whole:
            text = (
                f"there is no trace ({why}), so ranges and graphs have the times of ncu, where "
                "these are of use"
            )
        else:
            text = f"there is no trace ({why}), so times are those under ncu"
        said.append(Notice("no-trace", text, partial=selection.sample is not None))
    if target.ungated:
        said.append(
            Notice(
                "sampled-by-number",
                f"the same launches of every kernel and shape were counted (the "
                f"{', '.join(f'{number}.' for number in target.numbers)}), since "
                f"{target.ungated}. This takes more of them, and launches that do other work may "
                "have none of their kind among them",
            )
        )
    return said


def facts_of(counting: Counting, traced: Traced, options: NcuOptions) -> dict[str, str]:
    """Numbers and conditions for the provenance.

    Args:
        counting: what came of the runs under ncu.
        traced: the traced run.
        options: what was asked for.
    """
    conditions, trace, target = options.conditions, traced.trace, counting.target
    facts = {
        "count_wall_s": f"{counting.ended.seconds:.3f}",
        "times_from": trace.source if target.is_traced and trace is not None else "ncu",
        "nvtx_scope": conditions.nvtx_scope.value,
    }
    for name, chosen in (
        ("clock_control", conditions.clocks.value),
        ("cache_control", conditions.caches.value),
    ):
        reason = _REASONS[name].get(chosen)
        if reason:
            facts[f"{name}_reason"] = reason
    if traced.ended is not None:
        facts["trace_wall_s"] = f"{traced.ended.seconds:.3f}"
    if counting.passes:
        facts["passes"] = str(counting.passes)
    if len(target.groups) > 1:
        facts["counted_runs"] = str(len(counting.reports))
    if options.selection.sample is not None:
        facts["sample"] = str(options.selection.sample)
    return facts
