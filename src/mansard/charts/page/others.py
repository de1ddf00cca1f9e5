"""Runs of more kernels than the page has room for: the shortest become one row."""

import dataclasses
from collections.abc import Iterable, Sequence

from mansard.model.analysis import Analysis, Kernel

#: Kernels that stand in the page one by one.
MOST_KERNELS = 20_000

#: Key of the row of all others.
OTHERS = "(other kernels)"

_SUMS = (
    "duration_s",
    "flop",
    "op_int",
    "zero_flop_launches",
    "zero_flop_duration_s",
    "near_zero_flop_launches",
    "near_zero_flop_duration_s",
    "short_launches",
    "floor_s",
)


def bounded(analysis: Analysis, most: int = MOST_KERNELS) -> Analysis:
    """Return the analysis with at most ``most`` kernels, the last of them all the others."""
    rest = analysis.kernels[most - 1 :]
    if len(rest) < 2:
        return analysis
    return dataclasses.replace(analysis, kernels=(*analysis.kernels[: most - 1], _together(rest)))


def _together(kernels: Sequence[Kernel]) -> Kernel:
    floors = {
        name: _total(kernel.floors_s.get(name) for kernel in kernels)
        for name in dict.fromkeys(name for kernel in kernels for name in kernel.floors_s)
    }
    undecided = any((kernel.bound or "").startswith("unknown") for kernel in kernels)
    largest = max(
        (name for name in floors if floors[name]), key=lambda n: floors[n] or 0.0, default=None
    )
    sums = {name: _total(getattr(kernel, name) for kernel in kernels) for name in _SUMS}
    return Kernel(
        **sums,  # type: ignore[arg-type]
        key=OTHERS,
        short_name=f"{len(kernels)} other kernels",
        family="other",
        launches=sum(kernel.launches for kernel in kernels),
        kernels=len(kernels),
        flop_complete=all(kernel.flop_complete for kernel in kernels),
        flop_by_path={
            path: _total(kernel.flop_by_path.get(path) for kernel in kernels)
            for path in kernels[0].flop_by_path
        },
        bytes_by_level={
            level: _total(kernel.bytes_by_level.get(level) for kernel in kernels)
            for level in kernels[0].bytes_by_level
        },
        floors_s=floors,
        bound=f"unknown among {largest}" if undecided else largest,
        launches_above_roof=sum(kernel.launches_above_roof for kernel in kernels),
        untimed_launches=sum(kernel.untimed_launches for kernel in kernels),
        partial_levels=tuple(
            level
            for level in kernels[0].bytes_by_level
            if any(
                level in kernel.partial_levels or kernel.bytes_by_level.get(level) is None
                for kernel in kernels
            )
        ),
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
