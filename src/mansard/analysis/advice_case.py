"""What every rule of the advice looks at, and the words that they share."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

from mansard.analysis.grids import sm_count
from mansard.analysis.options import AnalysisOptions
from mansard.model.analysis import Analysis, Kernel, quotient
from mansard.model.machine import Machine
from mansard.units import format_si

#: Kernels of optimizers, as PyTorch, apex and TensorFlow name them.
OPTIMIZER = re.compile(r"adam|lamb(?!da)|sgd|addcmul|addcdiv|lerp|L2Norm", re.IGNORECASE)

_LISTED = 3
_LONGEST_NAME = 44


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """An analysis under examination.

    Attributes:
        analysis: what was found.
    """

    analysis: Analysis

    @property
    def machine(self) -> Machine | None:
        """The roofs."""
        return self.analysis.machine

    @property
    def total_s(self) -> float:
        """Time of all launches on the GPU; 0 where it is not known."""
        return self.analysis.totals.duration_s or 0.0

    def option(self, name: str) -> float:
        """A numeric setting of the analysis, or its default."""
        value = self.analysis.options.get(name)
        return float(getattr(AnalysisOptions(), name) if value is None else value)

    def told(self, code: str) -> bool:
        """Whether the analysis has a notice of this code."""
        return any(notice.code == code for notice in self.analysis.notices)

    @property
    def sm_count(self) -> int | None:
        """Multiprocessors of the GPUs of the run, where all have as many."""
        return sm_count(self.analysis.provenance, self.machine)

    @property
    def launch_cost_s(self) -> float | None:
        """What starting one launch takes the host, where the machine knows it."""
        cost = self.machine.launch_cost("stream") if self.machine else None
        return None if cost is None else cost.value


def mean_launch_s(kernel: Kernel) -> float | None:
    """Mean time of a launch."""
    return quotient(kernel.duration_s, kernel.launches - kernel.untimed_launches)


def time_of(kernels: Iterable[Kernel]) -> float:
    """Time on the GPU."""
    return sum(kernel.duration_s or 0.0 for kernel in kernels)


def launches_of(kernels: Iterable[Kernel]) -> int:
    """Number of launches."""
    return sum(kernel.launches for kernel in kernels)


def floor_of(kernels: Iterable[Kernel]) -> float | None:
    """Least time, None where the floor of any is unknown."""
    floors = [kernel.floor_s for kernel in kernels]
    known = [floor for floor in floors if floor is not None]
    return sum(known) if len(known) == len(floors) else None


def recoverable_of(kernels: Iterable[Kernel]) -> float | None:
    """Time above the floors, None where any is unknown."""
    times = [kernel.recoverable_s for kernel in kernels]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def keys_of(kernels: Iterable[Kernel]) -> tuple[str, ...]:
    """Their keys."""
    return tuple(kernel.key or "" for kernel in kernels)


def listed(kernels: Sequence[Kernel]) -> str:
    """The longest kernels by name, and how many more there are."""
    names = list(dict.fromkeys(_cut(kernel.short_name) for kernel in kernels))
    rest = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def seconds(value: float | None) -> str:
    """A time in words."""
    return format_si(value, "s")


def count(number: int, word: str) -> str:
    """A number and its noun: ``1 launch``, ``2,709 launches``."""
    plural = "" if number == 1 else "es" if word.endswith("ch") else "s"
    return f"{number:,} {word}{plural}"


def level_word(level: str) -> str:
    """A level or pipe as people write it."""
    return level.upper() if level in ("l1", "l2", "dram") else level


def _cut(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    tail = _LONGEST_NAME // 3
    return f"{name[: _LONGEST_NAME - tail - 3]}...{name[-tail:]}"
