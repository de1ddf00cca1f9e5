"""Two runs side by side: what moved, and whether it is more than noise.

Values are means over ranks and steps. A change of time or traffic is claimed only where both
runs have at least three repeats of it and their spread does not explain it; counts (FLOP,
launches) are exact and need none.
"""

from collections.abc import Iterator

from mansard import engine
from mansard.analysis.analyze import analyze
from mansard.analysis.changes import LEAST_CHANGE, Side, differences
from mansard.analysis.conditions import unlike, unlike_definitions
from mansard.analysis.launches import launches
from mansard.analysis.matching import Match, match_groups, match_kernels
from mansard.analysis.noise import LEAST_REPEATS
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.parts import Part
from mansard.analysis.repeats import observe
from mansard.errors import FormatError, UsageError
from mansard.model.analysis import Analysis
from mansard.model.comparison import Comparison, Difference
from mansard.model.notice import Notice
from mansard.model.run import Run
from mansard.units import format_share, format_si

#: What the rows can be.
ROWS = ("kernel", "family", "phase")

#: Clocks that differ by more are told.
_CLOCKS_DIFFER = 0.02


def compare(
    a: Run | Part,
    b: Run | Part,
    *,
    by: str = "kernel",
    allow_unlike: bool = False,
    options: AnalysisOptions | None = None,
) -> Comparison:
    """Say what changed from one run to another.

    Args:
        a: the baseline: a run, or a phase or rank of one (``Part``).
        b: what is compared with it.
        by: rows: ``kernel`` (matched by name, then short name, then family and shape), ``family``
            or ``phase``; the last two also compare different programs.
        allow_unlike: compare runs of different GPUs, clock or cache control or counter tables
            all the same, and say so in the result.
        options: how launches are counted and timed.

    Raises:
        UsageError: ``by`` is none of these, a part holds no launches, or the runs are unlike.
        FormatError: a file of a run is damaged.
    """
    if by not in ROWS:
        raise UsageError(f"no rows by '{by}': choose one of {', '.join(ROWS)}")
    if options is not None and options.names != "full":
        raise UsageError("compare matches short names by itself: leave names at 'full'")
    part_a, part_b = (side if isinstance(side, Part) else Part(side) for side in (a, b))
    apart = unlike(part_a.run.provenance, part_b.run.provenance)
    if apart and not allow_unlike:
        raise UsageError(
            f"the runs were not recorded alike ({'; '.join(apart)}), so their numbers do not "
            "compare; record both alike, or give --allow-unlike (allow_unlike=True)",
            slug="unlike-runs",
        )
    with (
        engine.connect() as connection,
        engine.translated(FormatError, "the launches of a run are damaged"),
    ):
        one, two = (
            Side(
                _analyzed(part, options),
                observe(
                    connection,
                    part.of(launches(connection, part.run)),
                    name,
                    by="phase" if by == "phase" else "key",
                ),
            )
            for part, name in ((part_a, "a"), (part_b, "b"))
        )
        clocks = _clock_change(one.analysis, two.analysis)
        totals, rows = differences(
            one,
            two,
            _matches(one, two, by),
            by=by,
            # What the clock alone explains is no change of the program.
            least=max(LEAST_CHANGE, abs(clocks or 0.0)),
        )
    return Comparison(
        label_a=part_a.label,
        label_b=part_b.label,
        by=by,
        totals=totals,
        rows=tuple(sorted(rows, key=_largest_move)),
        repeats_a=one.repeats.number,
        repeats_b=two.repeats.number,
        provenance_a=part_a.run.provenance,
        provenance_b=part_b.run.provenance,
        unlike=apart,
        notices=tuple(_notices(one, two, apart)),
    )


def _analyzed(part: Part, options: AnalysisOptions | None) -> Analysis:
    analysis = analyze(part, options=options)
    if analysis.totals.launches:
        return analysis
    phases = [phase.key for phase in analyze(part.run).phases if phase.key is not None]
    there = f"; its phases are {', '.join(phases[:20])}" if part.phase and phases else ""
    raise UsageError(f"{part.label} holds no launches to compare{there}")


def _matches(a: Side, b: Side, by: str) -> list[Match]:
    if by == "kernel":
        return match_kernels(
            a.analysis.kernels, b.analysis.kernels, a.repeats.shapes, b.repeats.shapes
        )
    if by == "family":
        return match_groups(a.analysis.families, b.analysis.families)
    return match_groups(a.analysis.phases, b.analysis.phases)


def _largest_move(row: Difference) -> tuple[bool, float, str]:
    moved = row.moved_s
    return moved is None, -abs(moved or 0.0), row.key or ""


def _clock_change(a: Analysis, b: Analysis) -> float | None:
    """Relative change of the mean SM clock."""
    before, after = a.totals.sm_clock_hz, b.totals.sm_clock_hz
    return None if not before or not after else after / before - 1


def _untraced(a: Analysis, b: Analysis) -> Iterator[Notice]:
    """What a step takes when nothing records it: that of a trace holds what the trace adds."""
    one, two = (
        passed.host_s / passed.steps if passed and passed.host_s and passed.steps else None
        for passed in (a.timeline, b.timeline)
    )
    if one is None or two is None:
        return
    yield Notice(
        "step-traced",
        "the step time is that of the traced step; left alone, a step takes "
        f"{format_si(one, 's')}, then {format_si(two, 's')} ({format_share(two / one - 1)})",
    )


def _notices(a: Side, b: Side, apart: tuple[str, ...]) -> Iterator[Notice]:
    for side in (a, b):
        for notice in side.analysis.notices:
            if notice.partial:
                yield Notice(notice.code, f"{side.analysis.label}: {notice.message}", partial=True)
    if apart:
        yield Notice(
            "unlike-runs",
            f"the runs were not recorded alike ({'; '.join(apart)}): part or all of a change may "
            "come from that",
        )
    changed = unlike_definitions(a.analysis.provenance, b.analysis.provenance)
    if changed:
        yield Notice(
            "other-definitions",
            f"{', '.join(changed)} are made by other formulas in one run than in the other; "
            "import both with the same options",
        )
    least = min(a.repeats.number, b.repeats.number)
    if least < LEAST_REPEATS:
        yield Notice(
            "no-repeats",
            f"no repeats: noise unknown. It takes {LEAST_REPEATS} steps or ranks of each run to "
            f"tell a change from noise, and one has {least}: record more steps (mansard profile "
            "--steps 5), or give a folder of several runs",
        )
    yield from _untraced(a.analysis, b.analysis)
    clocks = _clock_change(a.analysis, b.analysis)
    if clocks is not None and abs(clocks) > _CLOCKS_DIFFER:
        yield Notice(
            "clocks-differ",
            f"the mean SM clock was {format_si(a.analysis.totals.sm_clock_hz, 'Hz')}, then "
            f"{format_si(b.analysis.totals.sm_clock_hz, 'Hz')}: that alone changes times by up to "
            f"{format_share(abs(clocks))}, and less is not called a change",
        )
    if a.analysis.totals.flop_complete != b.analysis.totals.flop_complete:
        lower = (a if b.analysis.totals.flop_complete else b).analysis.label
        yield Notice(
            "flop-not-alike",
            f"not every path was counted in {lower}: its FLOP are a lower bound, those of the "
            "other are not",
        )
