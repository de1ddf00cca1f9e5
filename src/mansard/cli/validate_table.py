"""Prints a validation: findings, verdicts and limits, in 80 columns."""

import textwrap
from typing import TYPE_CHECKING

from mansard.units import format_share, format_si
from mansard.validate.cases import OTHER_WORK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mansard.validate import Finding, Limit, Validation

_WIDTH = 80
_CASE_WIDTH = 31
#: Ratios beyond this need no digits.
_LARGE = 9999
_MARKS = {
    "holds": "holds",
    "deviates": "DEVIATES",
    "unknown": "UNKNOWN",
    "failed": "FAILED",
    "skipped": "skipped",
}


def print_validation(found: "Validation", *, to_stderr: bool = False) -> None:
    """Print what was found.

    Args:
        found: the validation.
        to_stderr: where standard output is taken by the JSON.
    """
    import sys

    stream = sys.stderr if to_stderr else sys.stdout
    stream.write("\n".join(validation_lines(found)) + "\n")


def validation_lines(found: "Validation") -> list[str]:
    """The lines of the report."""
    shown = [each for each in found.findings if _is_row(each)]
    lines = [*_head(found), ""]
    if shown:
        lines += [_row("case", "quantity", "expected", "counted", "ratio", "")]
        lines += [*map(_finding, shown), ""]
    lines += [line for each in found.findings if each.state != "holds" for line in _reason(each)]
    if found.verdicts:
        lines += ["", "Definitions"]
        for verdict in found.verdicts:
            lines += _wrapped(f"{_short(verdict.quantity):18} ", verdict.text)
        lines += _other_work(found.findings)
    if found.limits:
        lines += ["", "Limits that the chip states, and what was measured", _LIMIT_HEAD]
        lines += [_limit(each) for each in found.limits]
    lines += [line for remark in found.remarks for line in _wrapped("note: ", remark)]
    return [*lines, "", _summary(found)]


def _head(found: "Validation") -> list[str]:
    origin = found.provenance
    facts = [
        f"driver {origin['driver_version']}" if origin.get("driver_version") else "",
        f"CUPTI {origin['cupti_version']}" if origin.get("cupti_version") else "",
        f"counter table {origin['counter_table']}" if origin.get("counter_table") else "",
    ]
    return _wrapped("", ", ".join([found.device.name or "GPU", *filter(None, facts)]))


def _is_row(finding: "Finding") -> bool:
    """Whether a finding has a line of its own: that nothing else was counted is told in one."""
    return (finding.quantity not in ("", OTHER_WORK) and finding.state != "skipped") or (
        finding.quantity == OTHER_WORK and finding.state in ("deviates", "unknown")
    )


def _other_work(findings: "Iterable[Finding]") -> list[str]:
    none = [f.case for f in findings if f.quantity == OTHER_WORK and f.state == "holds"]
    return [f"{OTHER_WORK:18} none on {len(none)} kernels"] if none else []


def _row(case: str, quantity: str, expected: str, counted: str, ratio: str, state: str) -> str:
    left = f"{_cut(case, _CASE_WIDTH):{_CASE_WIDTH}} {_cut(quantity, 16):16}"
    return f"{left} {expected:>7} {counted:>7} {ratio:>6} {state}".rstrip()


def _finding(finding: "Finding") -> str:
    return _row(
        finding.case,
        _short(finding.quantity),
        _expected(finding),
        _number(finding.counted),
        _ratio(finding.ratio),
        _MARKS[finding.state],
    )


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.4g}" if ratio < _LARGE else f">{_LARGE}"


def _expected(finding: "Finding") -> str:
    if finding.low == 0 and finding.high:
        return f"<{_number(finding.high)}"
    return _number(finding.low)


def _number(value: float | None) -> str:
    return format_si(value).replace(" ", "") if value != 0 else "0"


def _short(quantity: str) -> str:
    """A column as people say it: ``tensor bf16``, ``l2 bytes``."""
    kind, _, rest = quantity.partition("_")
    if kind == "bytes":
        return f"{rest.replace('_', ' ')} bytes"
    return rest.replace("_", " ") if kind in ("flop", "op") else quantity


def _reason(finding: "Finding") -> list[str]:
    what = f"{finding.case}, {_short(finding.quantity)}" if finding.quantity else finding.case
    reason = finding.reason
    if finding.state == "deviates":
        reason += f". Expected: {finding.why}"
    return _wrapped(f"{_MARKS[finding.state]}: ", f"{what}: {reason}")


_LIMIT_HEAD = f"{'':27} {'a clock':>8} {'clock':>9} {'limit':>12} {'measured':>12} {'share':>7}"


def _limit(limit: "Limit") -> str:
    name = f"{limit.name}, {limit.label}" if limit.label else limit.name
    unit = {"flop/s": "FLOP/s", "byte/s": "B/s"}[limit.unit]
    per_clock = "-" if limit.per_clock is None else f"{limit.per_clock:.8g}"
    return (
        f"{_cut(name, 27):27} {per_clock:>8} {format_si(limit.clock_hz, 'Hz'):>9} "
        f"{format_si(limit.value, unit):>12} {format_si(limit.measured, unit):>12} "
        f"{format_share(limit.share):>7}"
    ).rstrip()


def _summary(found: "Validation") -> str:
    counts = dict.fromkeys(_MARKS, 0)
    for finding in found.findings:
        counts[finding.state] += 1
    words = {
        "holds": "hold",
        "deviates": "deviate",
        "unknown": "unknown",
        "failed": "failed",
        "skipped": "skipped",
    }
    told = ", ".join(f"{number} {words[state]}" for state, number in counts.items() if number)
    ending = " (interrupted: the rest was not run)" if found.partial else ""
    return f"{told or 'nothing was compared'}{ending}"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=head, subsequent_indent=" " * min(len(head), 19)
    ) or [head.rstrip()]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
