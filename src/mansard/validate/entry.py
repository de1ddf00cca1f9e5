"""The public function: known work under the collector, compared with arithmetic."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mansard.counters.table import CounterTable, load_table
from mansard.errors import DeviceError, UsageError
from mansard.model.machine import Machine
from mansard.model.provenance import Definition
from mansard.store import load_machine, shipped_machines
from mansard.validate.cases import Case, Lacking
from mansard.validate.catalogue import all_cases, batches, chosen
from mansard.validate.judge import failed, findings_of, skipped, verdicts_of
from mansard.validate.messages import CaseCount, Opening
from mansard.validate.result import Finding, Limit, Validation
from mansard.validate.rig import CasesLost, ChildRig, Rig
from mansard.validate.stated import limits_from
from mansard.version import __version__

#: Called before each part with its name and the share that is done.
Progress = Callable[[str, float], None]


def validate(
    device: str = "cuda:0",
    *,
    only: Sequence[str] = (),
    progress: Progress | None = None,
    make_rig: Callable[[int], Rig] = ChildRig,
) -> Validation:
    """Check the counter definitions of a GPU with kernels whose work and traffic are known.

    The kernels run under the collector of ``mansard.profile``; what it counts is compared with
    arithmetic: FLOP to the last one, bytes within 3 %. A crash of a kernel loses that kernel. An
    interrupt (Ctrl-C) keeps what is finished; the result is then ``partial``.

    Args:
        device: ``cuda:N``.
        only: names or groups of cases, or parts of them; all by default.
        progress: called before each part with its name and the share that is done.
        make_rig: makes what runs the cases on a device of this index.

    Returns:
        Findings, a verdict for each definition, and the limits that the chip states.

    Raises:
        DeviceError: there is no GPU that gives counters.
        UsageError: no such device, or no case is chosen.
    """
    if isinstance(only, str):
        only = (only,)
    run = _Run(make_rig(_index(device)), progress or _quiet)
    try:
        run.measure(tuple(only))
    finally:
        run.close()
    return run.validation()


def chip_limits(
    device: str = "cuda:0", *, make_rig: Callable[[int], Rig] = ChildRig
) -> tuple[Limit, ...]:
    """What the counters of a GPU state as the most that each path and level does.

    Args:
        device: ``cuda:N``.
        make_rig: makes what reads them on a device of this index.

    Raises:
        DeviceError: there is no GPU that gives counters, or they gave no values.
        UsageError: no such device.
    """
    rig = make_rig(_index(device))
    try:
        opening = rig.open()
        return limits_from(rig.limits(), measured_machine(opening.opened.facts.name))
    except CasesLost as error:
        raise DeviceError(f"the limits that the chip states could not be read: {error}") from error
    finally:
        rig.close()


def _index(device: str) -> int:
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise UsageError(f"no device '{device[:40]}': give cuda:0 (or another number)")
    return int(number or 0)


class _Run:
    """The state of one validation."""

    def __init__(self, rig: Rig, progress: Progress) -> None:
        self._rig, self._progress = rig, progress
        self._began = dt.datetime.now(dt.UTC)
        self._opening: Opening | None = None
        self._cases: tuple[Case | Lacking, ...] = ()
        self._counts: dict[str, CaseCount] = {}
        self._failures: dict[str, str] = {}
        self._definitions: dict[str, Definition] = {}
        self._limits: tuple[Limit, ...] = ()
        self._remarks: list[str] = []
        self._partial = False

    def measure(self, only: tuple[str, ...]) -> None:
        """Open the device, read its limits, and count the cases; an interrupt ends it."""
        self._progress("opening the GPU", 0.0)
        self._opening = self._rig.open()
        self._remarks += self._opening.opened.caveats
        self._cases = chosen(all_cases(self._opening.opened, self._table()), only)
        todo = batches(self._cases)
        total = sum(len(batch) for batch in todo) + 1
        try:
            self._read_limits(self._opening)
            for batch in todo:
                done = 1 + len(self._counts) + len(self._failures)
                self._progress(batch[0].group, done / total)
                self._count(batch)
            self._progress("done", 1.0)
        except KeyboardInterrupt:
            self._partial = True
            done = len(self._counts) + len(self._failures)
            self._remarks.append(f"Interrupted: {done} of {total - 1} cases were finished before.")

    def close(self) -> None:
        """End what runs the cases."""
        self._rig.close()

    def validation(self) -> Validation:
        """Everything that was found."""
        findings = tuple(self._findings())
        opening = self._opening
        if opening is None:
            raise UsageError("nothing was opened")
        return Validation(
            findings=findings,
            verdicts=verdicts_of(findings, self._definitions),
            limits=self._limits,
            counted={name: count.columns for name, count in self._counts.items() if count.columns},
            device=opening.opened.facts,
            provenance=self._provenance(opening),
            remarks=tuple(dict.fromkeys(self._remarks)),
            partial=self._partial,
        )

    def _read_limits(self, opening: Opening) -> None:
        try:
            read = self._rig.limits()
        except CasesLost as error:
            self._remarks.append(f"The limits that the chip states could not be read: {error}.")
            return
        self._limits = limits_from(read, measured_machine(opening.opened.facts.name))

    def _count(self, batch: Sequence[Case]) -> None:
        """Count cases together; where that fails, in halves, down to the one that is at fault."""
        try:
            counted = self._rig.count(batch)
        except DeviceError as error:
            if not self._counts:
                raise  # nothing was found that would be lost
            self._failures |= {case.name: str(error) for case in batch}
            return
        except CasesLost as error:
            if len(batch) == 1:
                self._failures[batch[0].name] = str(error)
                return
            middle = len(batch) // 2
            self._count(batch[:middle])
            self._count(batch[middle:])
            return
        self._counts |= {count.name: count for count in counted.cases}
        self._definitions |= counted.definitions
        self._remarks += counted.remarks

    def _findings(self) -> Iterable[Finding]:
        for case in self._cases:
            if isinstance(case, Lacking):
                yield skipped(case)
            elif case.name in self._failures:
                yield failed(case, self._failures[case.name])
            elif case.name in self._counts:
                yield from findings_of(case, self._counts[case.name], self._table())
            elif not self._partial:
                yield failed(case, "the child gave no answer for this case")

    def _table(self) -> CounterTable:
        return load_table(self._opening.table if self._opening else "generic")

    def _provenance(self, opening: Opening) -> dict[str, Any]:
        ended = dt.datetime.now(dt.UTC)
        return {
            "created": self._began.isoformat(timespec="seconds"),
            "duration_s": round((ended - self._began).total_seconds(), 1),
            "mansard_version": __version__,
            "counter_table": opening.table,
            "chip": opening.chip,
            "cupti_version": opening.cupti,
            "clock_control": "none",
            "cache_control": "none",
            **opening.opened.texts,
        }


def measured_machine(gpu: str | None) -> Machine | None:
    """The shipped machine that was measured on a GPU of this name."""
    for name in shipped_machines():
        machine = load_machine(name)
        if gpu and machine.device.name == gpu and machine.basis == "measured":
            return machine
    return None


def _quiet(_name: str, _share: float) -> None:
    """Nobody looks."""
