"""The result of a comparison: what changed from one run to another, and whether it is noise."""

import dataclasses
import math
from typing import Literal

from mansard.model.notice import Notice
from mansard.model.provenance import Provenance

#: Version of the JSON comparison.
#: 1: first.
COMPARISON_FORMAT = "mansard-comparison/1"

#: ``changed``: beyond the noise, or a count that is exact. ``same``: equal. ``within noise``: the
#: repeats differ as much. ``noise unknown``: too few repeats to say. ``unknown``: a value is.
Verdict = Literal["changed", "same", "within noise", "noise unknown", "unknown"]

#: Where the noise comes from; empty where it is not known.
RepeatsOf = Literal["steps and ranks", "files", "launches", ""]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One quantity in both runs, for each rank and step.

    Attributes:
        metric: which one, e.g. ``gpu_time``.
        a: its mean in the first run, in SI; None where it is not known.
        b: its mean in the second.
        noise: half of the 99 % interval of ``b - a``, over ``a``; None where it is not known.
        repeats: what the noise was taken from: ``steps and ranks``, ``files``, ``launches`` (of
            one step: drift from run to run does not show in them), or nothing.
        repeats_a: number of them in the first run.
        repeats_b: number of them in the second.
        verdict: whether it is a change.
    """

    metric: str
    a: float | None
    b: float | None
    noise: float | None = None
    repeats: RepeatsOf = ""
    repeats_a: int = 0
    repeats_b: int = 0
    verdict: Verdict = "unknown"

    @property
    def relative(self) -> float | None:
        """Change over the first value; infinite from zero, None where a value is unknown."""
        if self.a is None or self.b is None:
            return None
        if self.a == 0:
            return 0.0 if self.b == 0 else math.inf
        return self.b / self.a - 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Launches of both runs that belong together: a kernel, family, phase, ..., or all of them.

    Attributes:
        key: name, that of the first run where it has one.
        short_name: of kernels; None for other rows.
        family: of kernels; None for other rows.
        matched_by: ``name``, ``short name``, ``family and shape``, ``only a`` or ``only b``.
        names_a: keys of what was taken together in the first run.
        names_b: the same in the second.
        changes: by metric.
    """

    key: str | None
    short_name: str | None = None
    family: str | None = None
    matched_by: str = "name"
    names_a: tuple[str | None, ...] = ()
    names_b: tuple[str | None, ...] = ()
    changes: dict[str, Change]

    @property
    def moved_s(self) -> float | None:
        """Time on the GPU that the second run takes more, for each rank and step."""
        time = self.changes["gpu_time"]
        if time.a is None or time.b is None:
            return None
        return time.b - time.a


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side. Values are means over ranks and steps, so lengths do not matter.

    Attributes:
        label_a: name of the first run, the baseline.
        label_b: name of the second.
        by: what the rows are: kernel, family, phase, module, layer or operator.
        totals: everything.
        rows: those with the largest difference in time first.
        repeats_a: ranks times steps of the first run.
        repeats_b: the same of the second.
        provenance_a: origin of the first run.
        provenance_b: origin of the second.
        unlike: conditions in which the runs differ, as sentences; empty unless that was allowed.
        notices: what the user must know of both, and of the comparison.
    """

    label_a: str
    label_b: str
    by: str
    totals: Difference
    rows: tuple[Difference, ...]
    repeats_a: int
    repeats_b: int
    provenance_a: tuple[Provenance, ...]
    provenance_b: tuple[Provenance, ...]
    unlike: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
