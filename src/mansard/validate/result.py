"""What a validation found: frozen values, written as JSON."""

from typing import Any, Literal

import msgspec

from mansard.model.device import DeviceFacts

#: Version of the format.
#: 1: first.
VALIDATION_FORMAT = "mansard-validation/1"

State = Literal["holds", "deviates", "unknown", "failed", "skipped"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of one case.

    Attributes:
        case: name of the case.
        quantity: column of a run, or ``other work``; empty when the case did not run.
        state: ``holds``; ``deviates``; ``unknown``: a counter is missing, so nothing can be said;
            ``failed``: the case did not end; ``skipped``: this chip or machine cannot run it.
        low: least value that is right, in FLOP (operations) or bytes.
        high: greatest value that is right.
        tolerance: relative, on both ends.
        counted: what was counted; None where it is unknown.
        ratio: counted to the nearer end of what is right; None where there is none.
        why: why exactly this is right.
        reason: why the finding is not ``holds``, if it is not.
    """

    case: str
    quantity: str
    state: State
    low: float | None = None
    high: float | None = None
    tolerance: float = 0.0
    counted: float | None = None
    ratio: float | None = None
    why: str = ""
    reason: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one definition after all cases.

    Attributes:
        quantity: column of a run.
        formula: how the column was made from counters.
        meaning: what it counts.
        tolerance: within which it held.
        holds: cases in which it did.
        deviates: cases in which it did not, with their ratio.
        unknown: cases in which it could not be counted.
        text: the same in words.
    """

    quantity: str
    formula: str
    meaning: str
    tolerance: float
    holds: tuple[str, ...]
    deviates: dict[str, float | None]
    unknown: tuple[str, ...]
    text: str


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What the chip's own counters state as the most that a path or level does.

    Attributes:
        name: compute path or memory level.
        label: tells several of one name apart; empty for the limit itself.
        per_clock: FLOP (operations) or bytes in one clock, of the whole chip.
        clock_hz: that clock while a kernel ran.
        value: their product.
        unit: of ``value``.
        counter: formula over the counters that state it.
        meaning: what it counts.
        machine: name of the machine whose ceiling stands beside it.
        measured: highest ceiling that was measured there, in ``unit``.
        share: that ceiling to the limit at the ceiling's own clock; for memory other than shared
            and L1, whose clocks are their own, at ``clock_hz``.
    """

    name: str
    label: str = ""
    per_clock: float | None
    clock_hz: float | None
    value: float | None
    unit: Literal["flop/s", "byte/s"]
    counter: str
    meaning: str
    machine: str | None = None
    measured: float | None = None
    share: float | None = None


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """All findings on one GPU.

    Attributes:
        findings: in the order of the cases.
        verdicts: one for each definition that was compared.
        limits: what the chip states; empty where it could not be read.
        counted: by case, all columns that were counted, compared or not; None for unknown.
        device: the GPU.
        provenance: driver, versions, counter table, date.
        remarks: what a reader must know.
        partial: whether an interrupt ended it early.
    """

    schema: str = VALIDATION_FORMAT
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...] = ()
    limits: tuple[Limit, ...] = ()
    counted: dict[str, dict[str, float | None]] = {}
    device: DeviceFacts = DeviceFacts()
    provenance: dict[str, Any] = {}
    remarks: tuple[str, ...] = ()
    partial: bool = False

    @property
    def holds(self) -> bool:
        """Whether something was compared, and all of it held."""
        states = {finding.state for finding in self.findings}
        return "holds" in states and states <= {"holds", "skipped"}
