"""Limits on a comparison, for programs that check: ``gpu_time > +3%``.

The grammar is one metric, one sign and one percentage; nothing is evaluated.
"""

import dataclasses
import operator
import re

from mansard.analysis.changes import METRICS, TRACED, UNTRACED
from mansard.errors import UsageError
from mansard.model.comparison import Change, Comparison
from mansard.units import format_share

_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_GRAMMAR = re.compile(r"\s*([a-z0-9_]+)\s*(>=|<=|>|<)\s*([+-]?\d{1,9}(?:\.\d{1,9})?)\s*%\s*")
_LONGEST = 80


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """A change that must not be.

    Attributes:
        text: as the user wrote it.
        metric: one of METRICS.
        sign: ``>``, ``>=``, ``<`` or ``<=``.
        share: relative change, 0.03 for 3 %.
    """

    text: str
    metric: str
    sign: str
    share: float

    def broken_by(self, comparison: Comparison) -> str | None:
        """What breaks the limit, or None where nothing does.

        A change within the noise breaks none. Where the noise is unknown the numbers as they
        are decide, and the sentence says so.

        Raises:
            UsageError: the metric is not known in both runs.
        """
        change = comparison.totals.changes[self.metric]
        relative = change.relative
        if relative is None:
            raise UsageError(
                f"cannot check '{self.text}': {self.metric} is not known in both runs"
                + _remedy(self.metric)
            )
        if change.verdict in ("same", "within noise") and relative != 0:
            return None
        if not _SIGNS[self.sign](relative, self.share):
            return None
        return f"{self.metric} changed by {_signed(relative)} ({_noise(change)}): {self.text}"


def parse_limit(text: str) -> Limit:
    """Read a limit such as ``step_time > +3%`` or ``launches >= 1%``.

    Raises:
        UsageError: it is not a metric, a sign and a percentage.
    """
    found = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise UsageError(
            f"'{text[:_LONGEST]}' is no limit: write a metric, a sign (> >= < <=) and a "
            "percentage, e.g. 'gpu_time > +3%'"
        )
    metric, sign, percent = found.groups()
    if metric not in METRICS:
        raise UsageError(f"no metric '{metric}' to limit: choose one of {', '.join(METRICS)}")
    return Limit(" ".join(text.split()), metric, sign, float(percent) / 100)


def _remedy(metric: str) -> str:
    if metric == UNTRACED:
        return " (a profile of Mansard with a trace has it; a phase has none)"
    if metric == TRACED:
        return " (it takes start times, which a profile of Mansard has); gpu_time needs none"
    return ""


def _noise(change: Change) -> str:
    return "noise unknown" if change.noise is None else f"noise {format_share(change.noise)}"


def _signed(relative: float) -> str:
    return ("+" if relative > 0 else "-" if relative < 0 else "") + format_share(abs(relative))
