"""Compares what was counted with what must be: findings, a verdict per definition. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from mansard.counters.table import CounterTable
from mansard.model.provenance import Definition
from mansard.validate.cases import OTHER_WORK, Case, Expected, Lacking
from mansard.validate.messages import CaseCount
from mansard.validate.result import Finding, Verdict


def skipped(lacking: Lacking) -> Finding:
    """A case that cannot run here."""
    return Finding(case=lacking.name, quantity="", state="skipped", reason=lacking.reason)


def failed(case: Case, reason: str) -> Finding:
    """A case that did not end."""
    return Finding(case=case.name, quantity="", state="failed", reason=reason)


def findings_of(case: Case, count: CaseCount, table: CounterTable) -> tuple[Finding, ...]:
    """Compare every quantity of a case.

    Args:
        case: with what must be counted.
        count: what was.
        table: tells what this chip cannot count at all.
    """
    if count.lacking:
        return (skipped(Lacking(case.name, count.lacking)),)
    return tuple(
        _finding(case, _corrected(each, case, count), count, table) for each in case.expected
    )


def verdicts_of(
    findings: Iterable[Finding], definitions: Mapping[str, Definition]
) -> tuple[Verdict, ...]:
    """What is known of each definition after all cases.

    Args:
        findings: of all cases.
        definitions: how each column was made.
    """
    by_quantity: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.quantity in definitions and finding.state != "skipped":
            by_quantity.setdefault(finding.quantity, []).append(finding)
    return tuple(
        _verdict(quantity, definitions[quantity], found) for quantity, found in by_quantity.items()
    )


def _corrected(expected: Expected, case: Case, count: CaseCount) -> Expected:
    """The work that the machine code holds, where it was read; or that a split product has."""
    if expected.per_part and count.parts > 1:
        more = expected.per_part * count.parts
        why = f"{expected.why}; the library forms sums in {count.parts} parts: up to {more:g} more"
        return msgspec.structs.replace(expected, high=expected.high + more, why=why)
    code = case.machine_code
    if code is None or count.loop_flop is None or expected.quantity != code.quantity:
        return expected
    low = count.loop_flop * code.loop_runs
    high = low + count.once_flop * code.threads
    why = f"{count.loop_flop:g} FLOP in the loop of the machine code x {code.loop_runs} runs"
    if high > low:
        why += (
            f"; up to {count.once_flop:g} FLOP outside of it for each of {code.threads} threads, "
            "of instructions with which the compiler moves constants"
        )
    return msgspec.structs.replace(expected, low=low, high=high, why=f"{expected.why}; {why}")


def _finding(case: Case, expected: Expected, count: CaseCount, table: CounterTable) -> Finding:
    finding = Finding(
        case=case.name,
        quantity=expected.quantity,
        state="unknown",
        low=expected.low,
        high=expected.high,
        tolerance=expected.tolerance,
        why=expected.why,
    )
    absent = table.unavailable.get(expected.quantity)
    if absent is not None:
        return msgspec.structs.replace(finding, state="skipped", reason=absent.message)
    if not count.launches:
        reason = "the collector saw no launch of this case"
        return msgspec.structs.replace(finding, reason=reason)
    counted, missing = _counted(expected, count.columns, table)
    if counted is None:
        reason = f"not counted: {', '.join(missing)}"
        return msgspec.structs.replace(finding, reason=reason)
    least = expected.low * (1 - expected.tolerance)
    most = expected.high * (1 + expected.tolerance)
    right = least <= counted <= most
    return msgspec.structs.replace(
        finding,
        state="holds" if right else "deviates",
        counted=counted,
        ratio=_ratio(counted, expected),
        reason="" if right else _difference(counted, expected),
    )


def _counted(
    expected: Expected, columns: Mapping[str, float | None], table: CounterTable
) -> tuple[float | None, tuple[str, ...]]:
    """The quantity, or the columns that are missing; what a chip cannot count is no part of it."""
    wanted = [column for column in expected.summed if column not in table.unavailable]
    if expected.quantity == OTHER_WORK:
        # Rare integer types are not collected; the others must not hide behind that.
        wanted = [column for column in wanted if columns.get(column) is not None]
    missing = tuple(column for column in wanted if columns.get(column) is None)
    if missing or not wanted:
        return None, missing or expected.summed[:1]
    return sum(columns[column] or 0.0 for column in wanted), ()


def _ratio(counted: float, expected: Expected) -> float | None:
    """Counted to the nearer end of the range that is right."""
    end = expected.high if counted > expected.high else expected.low
    return counted / end if end else None


def _difference(counted: float, expected: Expected) -> str:
    if counted > expected.high:
        return f"{counted - expected.high:.12g} too many"
    return f"{expected.low - counted:.12g} too few"


def _verdict(quantity: str, definition: Definition, findings: list[Finding]) -> Verdict:
    holds = tuple(each.case for each in findings if each.state == "holds")
    deviates = {each.case: each.ratio for each in findings if each.state == "deviates"}
    unknown = tuple(each.case for each in findings if each.state == "unknown")
    tolerance = max(each.tolerance for each in findings)
    return Verdict(
        quantity=quantity,
        formula=definition.formula,
        meaning=definition.meaning,
        tolerance=tolerance,
        holds=holds,
        deviates=deviates,
        unknown=unknown,
        text=_text(tolerance, holds, deviates, unknown),
    )


def _text(
    tolerance: float,
    holds: tuple[str, ...],
    deviates: Mapping[str, float | None],
    unknown: tuple[str, ...],
) -> str:
    parts = []
    if holds:
        how = f"within {100 * tolerance:g} %" if tolerance else "exactly"
        parts.append(f"holds {how} on {len(holds)} kernel{'s' if len(holds) > 1 else ''}")
    if deviates:
        ratios = (
            f"{name} ({'not 0' if ratio is None else f'{ratio:.4g}'})"
            for name, ratio in deviates.items()
        )
        parts.append(f"deviates on {', '.join(ratios)}")
    if unknown:
        parts.append(f"not counted on {', '.join(unknown)}")
    return "; ".join(parts)
