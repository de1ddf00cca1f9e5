"""Whether advice was right: what it named before a change, and what the change won."""

from collections.abc import Iterator

from mansard.analysis.advice import advise
from mansard.analysis.compare import compare
from mansard.charts.labels import printable
from mansard.errors import MansardError
from mansard.model.advice import Advice
from mansard.study.blocks import Block, Heading, Items, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.pairs import Pair
from mansard.study.words import UNKNOWN, change, listed, si, time_text

#: Families of kernels that are named of each change: those with the largest differences.
_FAMILIES = 4

#: Recorded steps of the same work differ by as much of their time: those of the four optimizers,
#: whose forward and backward passes are the same, lie within it (docs/study.md).
SAME = 0.02


def changes(study: Study) -> Iterator[Block]:
    """Each change with the advice on the step before it and the step after it."""
    yield Heading("Was the advice right?")
    yield Paragraph(
        "Advice names a time that a change can win at most (docs/advice.md). A step is the time in "
        "which the GPU is busy, of the recorded step, and the time in which it idles: what the "
        "median of undisturbed steps is longer. Kernels are the matter of the rules on kernels; "
        "idle time is that of idle-gpu, here without the gaps that tracing itself makes. Each part "
        "is judged by one rule (docs/study.md). A change that wins more than was named, or that "
        "nothing named, is a fault of the advice."
    )
    rows = [row for pair in study.pairs for row in _rows(study, pair)]
    head = (
        "change",
        "part",
        "advice",
        "named",
        "before",
        "after",
        "won",
        "change of it",
        "verdict",
    )
    yield Table(head, tuple(rows), words=3)
    told = (*_sentences(study), *_compared(study))
    if told:
        yield Paragraph("What the advice said before, and where the time on the GPU changed:")
        yield Items(told)


def _rows(study: Study, pair: Pair) -> Iterator[tuple[str, ...]]:
    before, after = study.entry(pair.before), study.entry(pair.after)
    if before is None or after is None:
        return
    named = _named(before, pair)
    rules = ", ".join(f"{advice.rule} {si(advice.recoverable_s, 's')}" for advice in named)
    kernels = _total(named) if before.analysis is not None and before.machine is not None else None
    wins_idle = "idle-gpu" in pair.rules
    whole = _sum(kernels, before.idle_s if wins_idle else 0.0)
    if before.step_s is None or after.step_s is None:
        states = [
            each.state if each.step_s is None else time_text(each) for each in (before, after)
        ]
        gaps = [f"idle-gpu {si(before.idle_s, 's')}"] if wins_idle and before.idle_s else []
        words = listed([*gaps, *([rules] if rules else [])])
        yield (pair.change, "step", words, si(whole, "s"), *states, UNKNOWN, "", UNKNOWN)
        return
    of_busy = SAME * ((before.busy_s or 0.0) + (after.busy_s or 0.0))
    of_step = (before.spread_s or 0.0) + (after.spread_s or 0.0)
    parts = (
        ("GPU busy", rules or "nothing", kernels, before.busy_s, after.busy_s, of_busy),
        (
            "GPU idle",
            "idle-gpu" if wins_idle else "nothing",
            before.idle_s if wins_idle else 0.0,
            before.idle_s,
            after.idle_s,
            of_step + of_busy,
        ),
        ("step", "", whole, before.step_s, after.step_s, of_step),
    )
    for part, advice, known, old, new, noise in parts:
        won = None if old is None or new is None else old - new
        yield (
            pair.change,
            part,
            advice,
            si(known, "s"),
            si(old, "s"),
            si(new, "s"),
            UNKNOWN if won is None else _signed(won),
            change(new, old) if old else UNKNOWN,
            verdict(known, won, noise),
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _sentences(study: Study) -> Iterator[str]:
    """The advice that the table counts, each sentence once."""
    rules: dict[str, tuple[str, ...]] = {}
    for pair in study.pairs:
        rules[pair.before] = (*rules.get(pair.before, ()), *pair.rules)
    for name, wanted in rules.items():
        entry = study.entry(name)
        if entry is None or entry.analysis is None or entry.machine is None:
            continue
        for advice in advise(entry.analysis):
            if advice.rule in wanted:
                words = printable(advice.sentence, 700)
                yield f"{entry.cell.title}, {advice.rule}: {words}"


def _compared(study: Study) -> Iterator[str]:
    """The families of kernels in which each change won or lost most, by ``mansard compare``."""
    for pair in study.pairs:
        before, after = study.entry(pair.before), study.entry(pair.after)
        if before is None or after is None or before.run is None or after.run is None:
            continue
        try:
            found = compare(before.run, after.run, by="family", allow_unlike=True)
        except MansardError as error:
            yield f"{pair.change}: the runs cannot be compared: {printable(str(error), 300)}"
            continue
        times = [(row.key, row.changes["gpu_time"]) for row in found.rows[:_FAMILIES]]
        changed = [f"{name} {si(time.a, 's')} to {si(time.b, 's')}" for name, time in times]
        yield f"{pair.change}, families: {listed(changed)}"


def _named(before: Entry, pair: Pair) -> list[Advice]:
    """What the rules of a pair say of the kernels before it."""
    if before.analysis is None or before.machine is None:
        return []
    wanted = set(pair.rules) - {"idle-gpu"}
    return [advice for advice in advise(before.analysis) if advice.rule in wanted]


def _total(named: list[Advice]) -> float | None:
    """The rules name disjoint times, so their sum is a bound too."""
    times = [advice.recoverable_s for advice in named]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _signed(seconds: float) -> str:
    return si(seconds, "s") if seconds >= 0 else f"-{si(-seconds, 's')}"


def verdict(named: float | None, won: float | None, noise: float) -> str:
    """What to think of an advice, by one part of a step or the whole.

    Args:
        named: time that it named at most, 0 for nothing; None where that is not known.
        won: time by which the part became shorter; negative where it became longer.
        noise: by how much it differs without any change.
    """
    if won is None:
        return UNKNOWN
    if abs(won) <= noise:
        return "within the spread"
    if won < 0:
        return "longer"
    if named is None:
        return "shorter, advice unknown"
    if named == 0:
        return "shorter, not named"
    if won <= named + noise:
        return "shorter, within what was named"
    return "shorter, too little named"
