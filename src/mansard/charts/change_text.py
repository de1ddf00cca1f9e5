"""Changes in words: what every form of a comparison says alike."""

import math
from collections.abc import Iterable

from mansard.charts.labels import printable, run_facts
from mansard.model.comparison import Change, Comparison, Difference
from mansard.units import format_share, format_si

#: Characters of the name of a run.
_LABEL = 60

#: How a metric is called, in reading order.
METRIC_WORDS = {
    "step_time_untraced": "step, untraced",
    "step_time": "step, traced",
    "gpu_time": "GPU time",
    "flop": "FLOP",
    "op_int": "integer OP",
    "bytes_shared": "shared bytes",
    "bytes_l1": "L1 bytes",
    "bytes_l2": "L2 bytes",
    "bytes_dram": "DRAM bytes",
    "bytes_link": "link bytes",
    "launches": "launches",
    "zero_flop_launches": "no-FLOP launches",
    "short_launches": "short launches",
}

#: How a headline calls those whose short word says too little.
_HEADS = {
    "step_time_untraced": "step time without a trace",
    "step_time": "step time of a traced step",
}

_UNITS = {
    "step_time_untraced": "s",
    "step_time": "s",
    "gpu_time": "s",
    "flop": "FLOP",
    "op_int": "OP",
    **{f"bytes_{level}": "B" for level in ("shared", "l1", "l2", "dram", "link")},
}

#: What the marks after a change mean.
MARKS = {
    "within noise": "~",
    "noise unknown": "?",
}
LEGEND = {
    "~": "within the noise, or below 1 %",
    "?": "noise unknown: fewer than 3 repeats",
    "*": "noise from the launches of one step: drift from run to run does not show in it",
}

#: From this factor on a percentage is hard to read.
_FACTOR = 10

#: From this change on a time is also given as a factor.
_SPEED = 0.05
_NO_CHANGE = ("same", "within noise", "unknown")


def value_text(metric: str, value: float | None) -> str:
    """Return a value with its unit; counts are means over ranks and steps."""
    if value is None:
        return "-"
    if metric in _UNITS:
        return format_si(value, _UNITS[metric])
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def change_text(change: Change) -> str:
    """Return the change in percent, or as a factor; ``new`` and ``gone`` where one side has none.

    At most nine letters, without a mark.
    """
    relative = change.relative
    if relative is None:
        return "-"
    if relative == math.inf:
        return "new"
    if relative == -1:
        return "gone"
    if relative == 0 or change.verdict == "same":
        return "="
    if relative >= _FACTOR - 1:
        factor = 1 + relative
        return f"x {factor:.3g}" if factor < 1000 else f"x {factor:.1e}"
    return ("+" if relative > 0 else "-") + format_share(abs(relative))


def mark(change: Change) -> str:
    """Return the sign for how sure a change is; nothing where it is."""
    if change_text(change) in ("-", "=", "new", "gone"):
        return ""
    if change.verdict == "changed":
        return "*" if change.repeats == "launches" else ""
    return MARKS.get(change.verdict, "")


def marked(change: Change) -> str:
    """Return a change with its mark."""
    return f"{change_text(change)} {mark(change)}".rstrip()


def noise_text(change: Change) -> str:
    """Return the noise of a change, or why there is none."""
    if change.relative is None:
        return "-"
    if change.noise is None:
        return "unknown" if change.verdict == "noise unknown" else "-"
    return f"± {format_share(change.noise)}"


def speed_text(change: Change) -> str:
    """Return how many times as fast, or as long, the second run is; empty where that says nothing.

    Nothing is said of what is new or gone, unchanged, or within the noise.
    """
    relative = change.relative
    if not change.a or not change.b or relative is None or change.verdict in _NO_CHANGE:
        return ""
    fast = change.a / change.b
    # Below five percent the percentage is easier to read.
    if abs(relative) < _SPEED:
        return ""
    factor = f"{max(fast, 1 / fast):#.3g}".rstrip(".")
    return f"{factor}x as fast" if fast > 1 else f"{factor}x as long"


def moved_text(difference: Difference) -> str:
    """Return the difference in time with its sign."""
    moved = difference.moved_s
    if moved is None:
        return "-"
    return ("+" if moved > 0 else "-" if moved < 0 else "") + format_si(abs(moved), "s")


def also_text(difference: Difference) -> str:
    """Return what else changed beside the time, e.g. ``FLOP +586 %, launches 797->556``."""
    parts = []
    unknown = []
    for metric, change in difference.changes.items():
        if metric in ("gpu_time", "short_launches"):
            continue
        word = METRIC_WORDS[metric].removesuffix(" bytes")
        if change.a is None and change.b is None:
            continue
        if change.relative is None:
            unknown.append(word)
        elif metric.endswith("launches"):
            if change.relative:
                counts = f"{value_text(metric, change.a)}->{value_text(metric, change.b)}"
                parts.append(f"{word} {counts}")
        elif change_text(change) != "=" and change.verdict != "within noise":
            parts.append(f"{word} {marked(change)}")
    if difference.matched_by.startswith("only"):
        return "only in " + ("the first" if difference.matched_by == "only a" else "the second")
    said = ", ".join(parts) or "same work, bytes and launches"
    return said + (f"; unknown: {', '.join(unknown)}" if unknown else "")


def row_name(difference: Difference, limit: int) -> str:
    """Return the name of a row, with how many kernels were taken together."""
    name = difference.short_name or difference.key
    if name is None:
        return "(none)"
    more = max(len(difference.names_a), len(difference.names_b)) - 1
    tail = f" +{more}" if more > 0 else ""
    return printable(name, limit - len(tail)) + tail


def conditions_text(comparison: Comparison) -> list[tuple[str, str]]:
    """Return how both runs were recorded: one phrase where they agree, else both."""
    facts_a = dict(run_facts(comparison.provenance_a))
    facts_b = dict(run_facts(comparison.provenance_b))
    lines = []
    for word in ("GPU", "driver", "collector", "clock control", "cache control", "counter table"):
        one, other = facts_a[word], facts_b[word]
        if one is None and other is None:
            continue
        both = one or "not recorded"
        if one != other:
            both += f" -> {other or 'not recorded'}"
        lines.append((word, both))
    missing = [
        word
        for word in ("GPU", "clock control", "cache control")
        if facts_a[word] is None and facts_b[word] is None
    ]
    if missing:
        lines.append(("not recorded", ", ".join(missing)))
    return lines


def shown_totals(comparison: Comparison) -> list[Change]:
    """Return the changes of the totals that say something: not those of nothing to nothing."""
    return [change for change in comparison.totals.changes.values() if change.a or change.b]


def marks_in(differences: Iterable[Difference]) -> list[str]:
    """Return the legend of the marks that occur."""
    found = {mark(change) for row in differences for change in row.changes.values()}
    return [f"{sign} {meaning}" for sign, meaning in LEGEND.items() if sign in found]


def repeats_text(comparison: Comparison) -> str:
    """Return what the values are means over."""
    a, b = comparison.repeats_a, comparison.repeats_b
    counted = f"{a}" if a == b else f"{a} and {b}"
    return f"means over ranks and steps ({counted})"


def headline(comparison: Comparison) -> str:
    """Return the one line that says it all: of the step where its time is known."""
    changes = comparison.totals.changes
    times = [changes[metric] for metric in (*_HEADS, "gpu_time") if metric in changes]
    first = next((time for time in times if time.relative is not None), times[-1])
    word = _HEADS.get(first.metric, METRIC_WORDS[first.metric])
    if first.relative is None:
        return f"{word} unknown"
    # One number a file: its repeats are files, not steps.
    few = "fewer than 3 files" if first.metric == "step_time_untraced" else "no repeats"
    sure = {
        "changed": f"noise {noise_text(first)}",
        "within noise": f"within the noise, {noise_text(first)}",
        "noise unknown": f"{few}: noise unknown",
        "same": "the same",
        "unknown": "unknown",
    }[first.verdict]
    values = f"{value_text(first.metric, first.a)} -> {value_text(first.metric, first.b)}"
    speed = speed_text(first)
    change = f"{change_text(first)}, {speed}" if speed else change_text(first)
    return f"{word} {values}, {change} ({sure})"


def run_labels(comparison: Comparison) -> tuple[str, str]:
    """Return the short names of the two runs, so that they show where the names differ."""
    names = (comparison.label_a, comparison.label_b)
    short = (printable(names[0], _LABEL), printable(names[1], _LABEL))
    if short[0] != short[1] or names[0] == names[1]:
        return short
    # Names of one study begin alike for longer than there is room.
    differs = (place for place, (a, b) in enumerate(zip(*names, strict=False)) if a != b)
    start = max(0, next(differs, min(map(len, names))) - _LABEL // 3)
    return (
        printable("..." + names[0][start:], _LABEL),
        printable("..." + names[1][start:], _LABEL),
    )
