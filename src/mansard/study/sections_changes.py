"""Whether advice was right: what it named before a change, and what the change won."""

from collections.abc import Iterator

from mansard.analysis.advice import advise
from mansard.analysis.compare import compare
from mansard.charts.change_text import headline
from mansard.charts.labels import printable
from mansard.errors import MansardError
from mansard.model.advice import Advice
from mansard.study.blocks import Block, Heading, Items, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.plan import Pair
from mansard.study.words import UNKNOWN, change, si


def changes(study: Study) -> Iterator[Block]:
    """Each change with the advice on the step before it and the step after it."""
    yield Heading("Was the advice right?")
    yield Paragraph(
        "Advice names a time that a change can win at most (docs/advice.md). Beside it stands what "
        "the step became, by the medians of undisturbed steps. A change that wins more than was "
        "named, or that nothing named, is a fault of the advice. Gaps of an idle GPU (idle-gpu) "
        "are those of the traced step, which tracing makes longer: its time stands beside."
    )
    rows = []
    for pair in study.pairs:
        before, after = study.entry(pair.before), study.entry(pair.after)
        if before is None or after is None:
            continue
        named = _named(before, pair)
        won = _won(before, after)
        rows.append(
            (
                pair.change,
                _rules(named, before),
                _total_text(named, before),
                _traced(before),
                si(before.step_s, "s") if before.step_s else before.state,
                si(after.step_s, "s") if after.step_s else after.state,
                UNKNOWN if won is None else _signed(won),
                change(after.step_s, before.step_s),
                verdict(_total(named), won, _noise(before, after)),
            )
        )
    head = ("change", "advice", "named", "traced", "before", "after", "won", "step", "verdict")
    yield Table(head, tuple(rows), words=2)
    told = (*_sentences(study), *_compared(study))
    if told:
        yield Paragraph("What the advice said before, and what the traces say of the changes:")
        yield Items(told)


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
    """What the comparison of the two runs of each pair says in a line."""
    for pair in study.pairs:
        before, after = study.entry(pair.before), study.entry(pair.after)
        if before is None or after is None or before.run is None or after.run is None:
            continue
        try:
            line = headline(compare(before.run, after.run, by="phase", allow_unlike=True))
        except MansardError as error:
            line = f"the runs cannot be compared: {error}"
        yield f"{pair.change}, traced: {line}"


def _traced(entry: Entry) -> str:
    """Time of the traced step, whose gaps the advice saw."""
    passed = None if entry.analysis is None else entry.analysis.timeline
    if passed is None or not passed.steps:
        return UNKNOWN if entry.step_s is not None else ""
    return si(passed.elapsed_s / passed.steps, "s")


def _named(before: Entry, pair: Pair) -> list[Advice]:
    if before.analysis is None or before.machine is None:
        return []
    return [advice for advice in advise(before.analysis) if advice.rule in pair.rules]


def _rules(named: list[Advice], before: Entry) -> str:
    if before.analysis is None:
        return ""
    return (
        ", ".join(f"{advice.rule} {si(advice.recoverable_s, 's')}" for advice in named)
        or "none of its rules"
    )


def _total_text(named: list[Advice], before: Entry) -> str:
    if named:
        return si(_total(named), "s")
    if before.analysis is not None and before.machine is not None:
        return "nothing"
    return UNKNOWN if before.step_s is not None else before.state


def _total(named: list[Advice]) -> float | None:
    """The rules name disjoint times, so their sum is a bound too."""
    times = [advice.recoverable_s for advice in named]
    known = [time for time in times if time is not None]
    return sum(known) if known and len(known) == len(times) else None


def _won(before: Entry, after: Entry) -> float | None:
    if before.step_s is None or after.step_s is None:
        return None
    return before.step_s - after.step_s


def _noise(before: Entry, after: Entry) -> float:
    return (before.spread_s or 0.0) + (after.spread_s or 0.0)


def _signed(seconds: float) -> str:
    return si(seconds, "s") if seconds >= 0 else f"-{si(-seconds, 's')}"


def verdict(named: float | None, won: float | None, noise: float) -> str:
    """What to think of an advice.

    Args:
        named: time that it named at most; None where it named none.
        won: time by which the step became shorter; negative where it became longer.
        noise: spread of both steps.
    """
    if won is None:
        return UNKNOWN
    if abs(won) <= noise:
        return "within the spread"
    if won < 0:
        return "slower"
    if named is None:
        return "faster, not named"
    if won <= named + noise:
        return "faster, within what was named"
    return "faster than was named"
