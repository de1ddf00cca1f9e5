"""From runs over time to trends: one a kernel, a phase and the whole, with its changes."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from mansard.analysis.robust import LEAST_EFFECT
from mansard.history.changes import LEAST_RUNS, Change, change_points
from mansard.history.runs import Night, read_nights
from mansard.model.notice import Notice


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One time over the runs.

    Attributes:
        of: ``total``, ``phase`` or ``kernel``.
        key: name of the phase or kernel; None for the total.
        values_s: one a run, of one step on one rank; 0 where it did not run.
        changes: the steps of its level, in order.
    """

    of: str
    key: str | None
    values_s: tuple[float, ...]
    changes: tuple[Change, ...]

    @property
    def change_s(self) -> float:
        """Last level less first level; 0 where nothing changed."""
        return self.changes[-1].after - self.changes[0].before if self.changes else 0.0

    @property
    def slower_since(self) -> Change | None:
        """The change that made it slower and still holds; None if there is none."""
        if not self.changes:
            return None
        last = self.changes[-1].after
        holding = (
            change
            for change in self.changes
            if change.after > change.before and last > change.before * (1 + LEAST_EFFECT)
        )
        return max(holding, key=lambda change: change.after - change.before, default=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Runs over time.

    Attributes:
        label: name of the folder.
        nights: the runs that are compared, in order.
        trends: the total, the phases, then the kernels; within each those that changed most
            first, then the longest.
        notices: what the user must know.
    """

    label: str
    nights: tuple[Night, ...]
    trends: tuple[Trend, ...]
    notices: tuple[Notice, ...]

    @property
    def slower(self) -> tuple[Trend, ...]:
        """Trends that are slower now, by a change that still holds."""
        return tuple(trend for trend in self.trends if trend.slower_since is not None)

    @property
    def partial(self) -> bool:
        """Whether some of the input could not be read."""
        return any(notice.partial for notice in self.notices)


def history(folder: Path | str) -> History:
    """Read the runs of a folder and find when something changed.

    Args:
        folder: with one Parquet file a run, or one folder of rank files a run. The commit of a
            run is ``extra["commit"]`` of its provenance.

    Raises:
        InputError: the folder holds no run with times.
    """
    folder = Path(folder)
    nights, notices = read_nights(folder)
    kept = _alike(nights)
    said = list(notices)
    if len(kept) < len(nights):
        gpus = ", ".join(kept[0].gpus) or "an unknown GPU"
        said.append(
            Notice(
                "other-gpu",
                f"left out: {len(nights) - len(kept)} runs on other GPUs; most are on {gpus}",
            )
        )
    if len(kept) < LEAST_RUNS:
        said.append(
            Notice(
                "few-runs",
                f"{len(kept)} runs are too few to tell a change from noise (it takes "
                f"{LEAST_RUNS}); trends are shown, changes are not looked for",
            )
        )
    label = folder.resolve().name
    return History(label=label, nights=kept, trends=_trends(kept), notices=tuple(said))


def _alike(nights: Sequence[Night]) -> tuple[Night, ...]:
    """The runs on the GPUs that most runs are on; of equally many, the latest."""
    count = Counter(night.gpus for night in nights)
    latest = {night.gpus: place for place, night in enumerate(nights)}
    most = max(count, key=lambda gpus: (count[gpus], latest[gpus]))
    return tuple(night for night in nights if night.gpus == most)


def _trends(nights: Sequence[Night]) -> tuple[Trend, ...]:
    phases = dict.fromkeys(key for night in nights for key in night.phases_s)
    kernels = dict.fromkeys(key for night in nights for key in night.kernels_s)
    several = 1 + len(phases) + len(kernels)

    def trend(of: str, key: str | None, value: Callable[[Night], float]) -> Trend:
        values = tuple(value(night) for night in nights)
        return Trend(of=of, key=key, values_s=values, changes=change_points(values, series=several))

    total = trend("total", None, lambda night: night.total_s)
    by_phase = [trend("phase", key, lambda n, k=key: n.phases_s.get(k, 0.0)) for key in phases]  # type: ignore[misc]
    by_kernel = [trend("kernel", key, lambda n, k=key: n.kernels_s.get(k, 0.0)) for key in kernels]  # type: ignore[misc]
    return (total, *sorted(by_phase, key=_order), *sorted(by_kernel, key=_order))


def _order(trend: Trend) -> tuple[float, float, str]:
    return -abs(trend.change_s), -max(trend.values_s), trend.key or ""
