"""Two runs side by side: what moved, and whether it is more than noise.

Values are means over ranks and steps. A change of time or traffic is claimed only where both
runs have at least three repeats of it and their spread does not explain it; counts (FLOP,
launches) are exact and need none.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from statistics import fmean

from mansard import engine
from mansard.analysis.analyze import analyze
from mansard.analysis.changes import LEAST_CHANGE, Side, differences
from mansard.analysis.conditions import unlike, unlike_definitions
from mansard.analysis.launches import launches
from mansard.analysis.layers import KEYS, layers_of, names, why_none
from mansard.analysis.matching import Match, match_groups, match_kernels
from mansard.analysis.noise import LEAST_REPEATS
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.parts import Part
from mansard.analysis.repeats import observe
from mansard.analysis.timeline import host_steps_s
from mansard.errors import FormatError, UsageError
from mansard.model.analysis import Analysis
from mansard.model.comparison import Comparison, Difference
from mansard.model.notice import Notice
from mansard.model.run import Run
from mansard.units import format_share, format_si

#: What the rows can be.
ROWS = ("kernel", "family", "phase", *KEYS)

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
        by: rows: ``kernel`` (matched by name, then short name, then family and shape), ``family``,
            ``phase``, ``module``, ``layer`` (modules that are built alike taken together) or
            ``operator``; all but the first also compare different programs.
        allow_unlike: compare runs of different GPUs, clock or cache control or counter tables
            all the same, and say so in the result.
        options: how launches are counted and timed.

    Raises:
        UsageError: ``by`` is none of these, or a run does not name them; a part holds no
            launches; or the runs are unlike.
        FormatError: a file of a run is damaged.
    """
    if options is not None and options.names != "full":
        raise UsageError("compare matches short names by itself: leave names at 'full'")
    return _compared(a, b, (by,), allow_unlike=allow_unlike, options=options)[0]


def comparisons(
    a: Run | Part, b: Run | Part, *, by: str = "kernel", allow_unlike: bool = False
) -> tuple[Comparison, ...]:
    """Compare two runs by everything that both of them name, from one look at each.

    Args:
        a: the baseline.
        b: what is compared with it.
        by: what comes first, and must be named.
        allow_unlike: as in ``compare``.

    Raises:
        UsageError: as in ``compare``.
        FormatError: a file of a run is damaged.
    """
    rows = (by, *(other for other in ROWS if other != by))
    return _compared(a, b, rows, allow_unlike=allow_unlike, options=None)


def _compared(
    a: Run | Part,
    b: Run | Part,
    rows: Sequence[str],
    *,
    allow_unlike: bool,
    options: AnalysisOptions | None,
) -> tuple[Comparison, ...]:
    """By the first kind of rows, which must be known, and by the others that both runs name."""
    if rows[0] not in ROWS:
        raise UsageError(f"no rows by '{rows[0]}': choose one of {', '.join(ROWS)}")
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
        analyzed = [_analyzed(part, options) for part in (part_a, part_b)]
        lacking = [analysis for _, analysis in analyzed if not names(analysis, rows[0])]
        if lacking:
            told = (f"{each.label} {why_none(each, rows[0])}" for each in lacking)
            raise UsageError("; ".join(dict.fromkeys(told)))
        found = []
        for by in rows:
            if by != rows[0] and not all(names(analysis, by) for _, analysis in analyzed):
                continue
            one, two = (
                Side(
                    analysis,
                    observe(connection, part.of(launches(connection, part.run)), name, by=by),
                    host_steps_s(part),
                )
                for (part, analysis), name in zip(analyzed, "ab", strict=True)
            )
            found.append(_comparison(one, two, by, apart))
    return tuple(found)


def _comparison(a: Side, b: Side, by: str, apart: tuple[str, ...]) -> Comparison:
    clocks = _clock_change(a.analysis, b.analysis)
    totals, rows = differences(
        a,
        b,
        _matches(a, b, by),
        by=by,
        # What the clock alone explains is no change of the program.
        least=max(LEAST_CHANGE, abs(clocks or 0.0)),
    )
    return Comparison(
        label_a=a.analysis.label,
        label_b=b.analysis.label,
        by=by,
        totals=totals,
        rows=tuple(sorted(rows, key=_largest_move)),
        repeats_a=a.repeats.number,
        repeats_b=b.repeats.number,
        provenance_a=a.analysis.provenance,
        provenance_b=b.analysis.provenance,
        unlike=apart,
        notices=tuple(_notices(a, b, apart)),
    )


def _analyzed(part: Part, options: AnalysisOptions | None) -> tuple[Part, Analysis]:
    """The part, without files that turned out to be damaged, and its sums."""
    analysis = analyze(part, options=options)
    if analysis.totals.launches:
        return dataclasses.replace(part, run=analysis.run or part.run), analysis
    raise UsageError(f"{part.label} holds no launches to compare{_parts_there(part)}")


def _parts_there(part: Part) -> str:
    """What could be given instead of a phase or rank that is not there."""
    if part.phase is None and part.rank is None:
        return ""
    whole = analyze(part.run)
    word, groups = ("phases", whole.phases) if part.rank is None else ("ranks", whole.ranks)
    keys = [group.key for group in groups if group.key is not None]
    return f"; its {word} are {', '.join(keys[:20])}" if keys else f"; it names no {word}"


def _matches(a: Side, b: Side, by: str) -> list[Match]:
    if by == "kernel":
        return match_kernels(
            a.analysis.kernels, b.analysis.kernels, a.repeats.shapes, b.repeats.shapes
        )
    if by == "family":
        return match_groups(a.analysis.families, b.analysis.families)
    if by == "phase":
        return match_groups(a.analysis.phases, b.analysis.phases)
    return match_groups(layers_of(a.analysis, by), layers_of(b.analysis, by))


def _largest_move(row: Difference) -> tuple[bool, float, str]:
    moved = row.moved_s
    return moved is None, -abs(moved or 0.0), row.key or ""


def _clock_change(a: Analysis, b: Analysis) -> float | None:
    """Relative change of the mean SM clock."""
    before, after = a.totals.sm_clock_hz, b.totals.sm_clock_hz
    return None if not before or not after else after / before - 1


def _traced(a: Side, b: Side) -> Iterator[Notice]:
    """What of the step times is the trace's, where only one run tells."""
    if not (a.repeats.step_time_s and b.repeats.step_time_s):
        return
    if bool(a.host_steps_s) == bool(b.host_steps_s):
        return
    knows, other = (a, b) if a.host_steps_s else (b, a)
    yield Notice(
        "step-traced",
        "the step times are those of traced steps, which hold what the trace adds; left alone, a "
        f"step of {knows.analysis.label} takes {format_si(fmean(knows.host_steps_s), 's')}, and "
        f"{other.analysis.label} does not say: record it again with 'mansard profile'",
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
    yield from _traced(a, b)
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
