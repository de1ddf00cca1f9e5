"""What a run comes to in sentences, each with the filter that shows the kernels behind it."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from mansard.charts.labels import (
    above_roof,
    count_text,
    key_label,
    known,
    positive,
    printable,
    resource_label,
    unknown_paths,
)
from mansard.charts.page.detail import Detail
from mansard.charts.rows import share
from mansard.charts.step_words import traced_words, untraced_words
from mansard.model.analysis import Analysis, Group, Kernel, quotient
from mansard.model.paths import INTEGER_PATHS
from mansard.units import format_share, format_si

#: Filter value of launches outside any phase, or of unknown rank; the same in state.js.
NONE = "(none)"

#: Entries of a list within a sentence.
_MOST = 4

#: Entries below this share of the time are not worth a word.
_LEAST = 0.005


@dataclasses.dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a sentence.

    Attributes:
        text: what it says.
        filter: (key, value) of the filter that shows what it speaks of; None for plain text.
    """

    text: str
    filter: tuple[str, str] | None = None


Sentence = tuple[Phrase, ...]


def summary(analysis: Analysis, detail: Detail) -> tuple[Sentence, ...]:
    """Say what a run comes to: time, floors, where time can be won, precision, launches."""
    sentences = [
        _time(analysis),
        _floors(analysis),
        _by_bound(analysis),
        _by_group(analysis, "family", analysis.families, "family"),
        _by_group(analysis, "phase", analysis.phases, _filter(detail, "phase")),
        _ranks(analysis, detail),
        _precision(analysis),
        _zero(analysis),
        _near_zero(analysis),
        _launches(analysis),
        _above(analysis),
        _unknown(analysis),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _time(analysis: Analysis) -> Sentence:
    totals, passed = analysis.totals, analysis.timeline
    said = (
        f"{format_si(known(totals.duration_s), 's')} on the GPU, in"
        f" {count_text(totals.launches, 'launch')} of {count_text(totals.kernels, 'kernel')}."
    )
    for words in (traced_words(passed), untraced_words(passed)) if passed else ():
        if words:
            said += f" {words[0].upper()}{words[1:]}."
    return (Phrase(said),)


def _floors(analysis: Analysis) -> Sentence:
    totals = analysis.totals
    if analysis.machine is None:
        return (Phrase("No machine is known, so there are no floors, bounds or efficiencies."),)
    if totals.floor_s is None:
        return ()
    return (
        Phrase(
            f"The floors of the launches add up to {format_si(totals.floor_s, 's')},"
            f" {format_share(totals.efficiency)} of the measured time:"
            f" {format_si(totals.recoverable_s, 's')} are recoverable."
        ),
    )


def _by_bound(analysis: Analysis) -> Sentence:
    bounds: dict[str, list[Kernel]] = {}
    for kernel in analysis.kernels:
        if kernel.bound is not None:
            bounds.setdefault(bound_key(kernel), []).append(kernel)
    entries = [
        (_recoverable(members), _bound_words(key), f", {count_text(len(members), 'kernel')}",
         ("bound", key))
        for key, members in bounds.items()
    ]  # fmt: skip
    return _listed("Recoverable by what bounds the kernel: ", entries, analysis)


def bound_key(group: Group) -> str:
    """Return the resource that bounds a group as a filter value; ``?`` when undecided."""
    bound = group.bound or ""
    return "?" if bound.startswith("unknown") else bound


def _bound_words(key: str) -> str:
    return "undecided" if key == "?" else resource_label(key)


def _by_group(
    analysis: Analysis, word: str, groups: Sequence[Group], key: str | None = None
) -> Sentence:
    if len(groups) < 2:
        return ()
    entries = [
        (
            group.recoverable_s or 0.0,
            key_label(group, 40),
            "",
            (word, NONE if group.key is None else group.key) if key else None,
        )
        for group in groups
    ]
    return _listed(f"By {word}: ", entries, analysis)


def _filter(detail: Detail, by: str) -> str | None:
    """Return the filter by phase or rank, if the page can have it."""
    return by if any(part.by == by for part in detail.parts) else None


def _listed(
    lead: str, entries: Iterable[tuple[float, str, str, tuple[str, str] | None]], analysis: Analysis
) -> Sentence:
    """Return the largest entries of (recoverable_s, name, what else of it, filter)."""
    total = known(analysis.totals.duration_s)
    worth = [entry for entry in entries if total and entry[0] > _LEAST * total]
    worth.sort(key=lambda entry: -entry[0])
    if not worth:
        return ()
    phrases = [Phrase(lead)]
    for seconds, name, more, chosen in worth[:_MOST]:
        if len(phrases) > 1:
            phrases.append(Phrase(", "))
        phrases.append(Phrase(f"{name} ({format_si(seconds, 's')}{more})", chosen))
    rest = worth[_MOST:]
    more = f", and {len(rest)} more ({format_si(sum(e[0] for e in rest), 's')})" if rest else ""
    return (*phrases, Phrase(more + "."))


def _recoverable(kernels: Iterable[Kernel]) -> float:
    return sum(kernel.recoverable_s or 0.0 for kernel in kernels)


def _ranks(analysis: Analysis, detail: Detail) -> Sentence:
    timed = [rank for rank in analysis.ranks if known(rank.duration_s)]
    if len(timed) < 2:
        return ()
    slowest = max(timed, key=lambda rank: rank.duration_s or 0.0)
    mean = sum(rank.duration_s or 0.0 for rank in timed) / len(timed)
    longer = (slowest.duration_s or 0.0) / mean - 1
    chosen = (_filter(detail, "rank"), NONE if slowest.key is None else slowest.key)
    return (
        Phrase(f"{len(timed)} ranks; the longest on the GPU is "),
        Phrase(f"rank {key_label(slowest, 20)}", (chosen[0], chosen[1]) if chosen[0] else None),
        Phrase(
            f" with {format_si(slowest.duration_s, 's')},"
            f" {format_share(longer)} more than their mean."
        ),
        *_widest(analysis, detail),
    )


def _widest(analysis: Analysis, detail: Detail) -> Sentence:
    """Name the kernel whose time differs most from rank to rank."""
    times: dict[str | None, list[float]] = {}
    for part in detail.parts:
        if part.by == "rank" and known(part.kernel.duration_s) is not None:
            times.setdefault(part.kernel.key, []).append(part.kernel.duration_s or 0.0)
    spreads = {key: max(spent) - min(spent) for key, spent in times.items() if len(spent) > 1}
    key = max(spreads, key=lambda name: spreads[name], default=None)
    if key is None or not spreads[key]:
        return ()
    place, kernel = next((p, k) for p, k in enumerate(analysis.kernels, start=1) if k.key == key)
    low, high = (format_si(bound, "s") for bound in (min(times[key]), max(times[key])))
    return (
        Phrase(" The ranks differ most in "),
        Phrase(f"kernel {place}", ("select", str(place))),
        Phrase(f" ({printable(kernel.short_name or kernel.key, 60)}): {low} to {high}."),
    )


def _precision(analysis: Analysis) -> Sentence:
    totals = analysis.totals
    integer = {path.name for path in INTEGER_PATHS}
    done = [
        (work, path)
        for path, work in totals.flop_by_path.items()
        if path not in integer and positive(work)
    ]
    phrases: list[Phrase] = []
    for work, path in sorted(done, key=lambda entry: -(entry[0] or 0.0)):
        part = format_share(quotient(work, totals.flop))
        phrases.append(Phrase(", " if phrases else "FLOP by precision: "))
        phrases.append(Phrase(f"{path} {part}", ("path", path)))
    unknown = list(unknown_paths(analysis))
    if unknown and not totals.flop_complete:
        listed = ", ".join(printable(path, 24) for path in unknown[:_MOST])
        more = f" and {len(unknown) - _MOST} more" if len(unknown) > _MOST else ""
        phrases.append(Phrase(f"{'; ' if phrases else 'FLOP '}not collected: {listed}{more}"))
    return (*phrases, Phrase(".")) if phrases else ()


def _zero(analysis: Analysis) -> Sentence:
    totals = analysis.totals
    return _census(
        analysis,
        totals.zero_flop_launches,
        totals.zero_flop_duration_s,
        ("do no floating-point work", "zero"),
    )


def _near_zero(analysis: Analysis) -> Sentence:
    totals = analysis.totals
    limit = analysis.options.get("near_zero_intensity")
    below = f" (below {limit:g} FLOP/byte)" if isinstance(limit, int | float) else ""
    return _census(
        analysis,
        totals.near_zero_flop_launches,
        totals.near_zero_flop_duration_s,
        (f"do next to none{below}", "near"),
    )


def _census(
    analysis: Analysis, launches: int | None, time: float | None, what: tuple[str, str]
) -> Sentence:
    if not launches:
        return ()
    totals = analysis.totals
    kernels = sum(1 for kernel in analysis.kernels if IS[what[1]](kernel))
    return (
        Phrase(
            f"{count_text(launches, 'launch')}"
            f" ({format_share(quotient(launches, totals.launches))}) of "
        ),
        Phrase(count_text(kernels, "kernel"), ("is", what[1])),
        Phrase(
            f" {what[0]}: {format_share(quotient(known(time), known(totals.duration_s)))}"
            " of the time."
        ),
    )


def _launches(analysis: Analysis) -> Sentence:
    totals = analysis.totals
    cost = analysis.machine.launch_cost("stream") if analysis.machine else None
    bound = [kernel for kernel in analysis.kernels if kernel.bound == "launch"]
    phrases = []
    if bound:
        parts = [share(kernel, analysis) or 0.0 for kernel in bound]
        verb = "takes" if len(bound) == 1 else "take"
        phrases += [
            Phrase(count_text(len(bound), "kernel"), ("bound", "launch")),
            Phrase(
                f" {verb} less time to do than to launch:"
                f" {count_text(sum(kernel.launches for kernel in bound), 'launch')},"
                f" {format_share(sum(parts))} of the time. "
            ),
        ]
    if totals.short_launches:
        kernels = sum(1 for kernel in analysis.kernels if IS["short"](kernel))
        limit = analysis.options.get("short_launch_s")
        below = f" (below {format_si(limit, 's')})" if isinstance(limit, int | float) else ""
        phrases += [
            Phrase(
                f"{count_text(totals.short_launches, 'launch')}"
                f" ({format_share(quotient(totals.short_launches, totals.launches))}) of "
            ),
            Phrase(count_text(kernels, "kernel"), ("is", "short")),
            Phrase(f" {'is' if totals.short_launches == 1 else 'are'} short{below}. "),
        ]
    if cost and cost.value:
        cost_s = cost.value * totals.launches
        part = format_share(quotient(cost_s, known(totals.duration_s)))
        phrases.append(
            Phrase(
                f"To start all launches one by one costs {format_si(cost_s, 's')},"
                f" {part} of the time on the GPU."
            )
        )
    return tuple(phrases)


def _above(analysis: Analysis) -> Sentence:
    above = [kernel for kernel in analysis.kernels if IS["above"](kernel)]
    if not above:
        return ()
    return (
        Phrase(count_text(len(above), "kernel"), ("is", "above")),
        Phrase(
            f" {'has' if len(above) == 1 else 'have'} launches faster than the roof allows, so"
            " something is wrong there: see the warnings."
        ),
    )


def _unknown(analysis: Analysis) -> Sentence:
    unknown = [kernel for kernel in analysis.kernels if IS["unknown"](kernel)]
    if not unknown:
        return ()
    parts = [share(kernel, analysis) for kernel in unknown]
    time = None if None in parts else sum(part or 0.0 for part in parts)
    return (
        Phrase("FLOP or time of "),
        Phrase(count_text(len(unknown), "kernel"), ("is", "unknown")),
        Phrase(f" are unknown ({format_share(time)} of the time)."),
    )


#: What the filter ``is`` can ask of a kernel; ``script/state.js`` asks the same.
IS: dict[str, Callable[[Kernel], bool]] = {
    "zero": lambda kernel: bool(kernel.zero_flop_launches),
    "near": lambda kernel: bool(kernel.near_zero_flop_launches),
    "short": lambda kernel: bool(kernel.short_launches),
    "tiny": lambda kernel: kernel.tiny,
    "above": lambda kernel: kernel.launches_above_roof > 0 or above_roof(kernel),
    "unknown": lambda kernel: kernel.flop is None or kernel.duration_s is None,
}
