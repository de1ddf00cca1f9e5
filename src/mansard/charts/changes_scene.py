"""What the chart of a comparison shows: what took longer and what shorter, largest first."""

import dataclasses
from collections.abc import Iterator

from mansard.charts.change_text import (
    METRIC_WORDS,
    conditions_text,
    headline,
    marked,
    marks_in,
    moved_text,
    row_name,
    run_labels,
    shown_totals,
    value_text,
)
from mansard.charts.labels import count_text, known, printable
from mansard.charts.rows import ROW_TITLES
from mansard.model.comparison import Comparison, Difference

#: Rows of the chart.
ROWS = 15
_NAME = 60

#: Totals that stand below the title.
_BESIDE = ("flop", "bytes_dram", "launches")


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One row.

    Attributes:
        number: place of the row in the comparison, from 1.
        name: short name of the kernel, family, phase, ...
        before_s: time in the first run, for each rank and step; 0 where it is new.
        after_s: time in the second; 0 where it is gone.
        moved_s: ``after_s - before_s``.
        noise_s: half of its 99 % interval; None where the noise is unknown.
        sure: whether it is a change by what the repeats say.
        before: ``before_s`` in words.
        after: ``after_s`` in words.
        moved: ``moved_s`` in words, with its sign.
        change: the change in percent, with its mark.
    """

    number: int
    name: str
    before_s: float
    after_s: float
    moved_s: float
    noise_s: float | None
    sure: bool
    before: str
    after: str
    moved: str
    change: str


@dataclasses.dataclass(frozen=True, slots=True)
class ChangesScene:
    """All that the chart shows.

    Attributes:
        title: the two runs.
        subtitle: the headline of the comparison, and what else moved.
        bars: largest difference first.
        notes: what is not in the picture, what the marks mean, how both were recorded.
        origin: how both runs were recorded.
    """

    title: str
    subtitle: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...]
    origin: str

    @property
    def longest_s(self) -> float:
        """The longest time of a bar; 0 without any."""
        return max((max(bar.before_s, bar.after_s) for bar in self.bars), default=0.0)

    @property
    def reach_s(self) -> tuple[float, float]:
        """How far differences and their noise go, to less and to more time; both positive."""
        less = [bar.noise_s or 0.0 for bar in self.bars]
        low = max((n - bar.moved_s for n, bar in zip(less, self.bars, strict=True)), default=0.0)
        high = max((n + bar.moved_s for n, bar in zip(less, self.bars, strict=True)), default=0.0)
        return max(0.0, low), max(0.0, high)


def changes_scene(comparison: Comparison, *, rows: int = ROWS) -> ChangesScene:
    """Put the rows with the largest difference in time below one another."""
    known_rows = [row for row in comparison.rows if row.moved_s is not None]
    drawn = [row for row in known_rows if row.moved_s][:rows]
    places = {id(row): number for number, row in enumerate(comparison.rows, start=1)}
    conditions = "; ".join(f"{word} {said}" for word, said in conditions_text(comparison))
    return ChangesScene(
        title=" -> ".join(run_labels(comparison)),
        subtitle="; ".join([headline(comparison), *_beside(comparison)]),
        bars=tuple(_bar(row, places[id(row)]) for row in drawn),
        notes=tuple(_notes(comparison, drawn)),
        origin=f"Runs: {conditions}." if conditions else "Runs: not recorded how.",
    )


def _bar(row: Difference, number: int) -> Bar:
    time = row.changes["gpu_time"]
    before_s, after_s = (known(value) or 0.0 for value in (time.a, time.b))
    return Bar(
        number=number,
        name=row_name(row, _NAME),
        before_s=before_s,
        after_s=after_s,
        moved_s=after_s - before_s,
        noise_s=None if time.noise is None else time.noise * before_s,
        sure=time.verdict == "changed",
        before=value_text("gpu_time", time.a),
        after=value_text("gpu_time", time.b),
        moved=moved_text(row),
        change=marked(time),
    )


def _beside(comparison: Comparison) -> Iterator[str]:
    """The other totals that moved, in short."""
    for change in shown_totals(comparison):
        if change.metric in _BESIDE:
            yield f"{METRIC_WORDS[change.metric]} {marked(change)}"


def _notes(comparison: Comparison, drawn: list[Difference]) -> Iterator[str]:
    for sentence in comparison.unlike:
        yield f"Not recorded alike: {printable(sentence, 300)}."
    what = ROW_TITLES[comparison.by].lower()
    rest = [row for row in comparison.rows if row not in drawn]
    unknown = sum(row.moved_s is None for row in rest)
    more = [row.moved_s for row in rest if row.moved_s]
    if more:
        yield (
            f"The {len(drawn)} {what} that moved most; {len(more)} more moved"
            f" {value_text('gpu_time', sum(map(abs, more)))} in all."
        )
    if unknown:
        yield f"Of {count_text(unknown, 'row')} a time is unknown, so they have no bar."
    if drawn:
        yield (
            "Hollow: before; filled: after. Right of the line: longer; left of it: shorter. Broken"
            " edge: within the noise, or noise unknown; the whisker is the noise (99 %)."
        )
    said = [_only(row, ("gpu_time",)) for row in drawn]
    yield from (f"{line}." for line in marks_in([_only(comparison.totals, _BESIDE), *said]))


def _only(row: Difference, metrics: tuple[str, ...]) -> Difference:
    """A row with the changes that the chart shows, so that no mark is explained that is not."""
    shown = {metric: change for metric, change in row.changes.items() if metric in metrics}
    return dataclasses.replace(row, changes=shown)
