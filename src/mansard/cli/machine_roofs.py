"""The roofs of machines side by side: the best of each path and level, however it is reached.

Machines reach a path by unlike instructions (``wgmma``, ``mma.sync``, a library), which have no
common row in ``mansard.bench.fleet.compare``; their best ones compare.
"""

import functools
from collections.abc import Callable, Iterator, Sequence

import msgspec

from mansard.bench.fleet import ratios_to_first
from mansard.model.machine import Ceiling, Machine
from mansard.model.paths import MACHINE_LEVELS, MACHINE_PATHS

_LAUNCHES = ("stream", "graph node")


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """The roof of one path or level on several machines.

    Attributes:
        name: the path, the level, or how kernels are launched.
        unit: of the values: ``flop/s``, ``byte/s`` or ``s``.
        values: one for each machine; None where it has none.
        reached_by: instruction, or access of a level, of each.
        ratios: to the first machine; None where one of the two has none.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    reached_by: tuple[str | None, ...]
    ratios: tuple[float | None, ...]


def roofs(machines: Sequence[Machine]) -> tuple[Roof, ...]:
    """The roofs that some of the machines have: paths, then levels, then the cost of a launch."""
    found = []
    for name, find in _wanted():
        best = [find(machine) for machine in machines]
        known = [ceiling for ceiling in best if ceiling is not None]
        if known:
            values = tuple(None if ceiling is None else ceiling.value for ceiling in best)
            roof = Roof(
                name=name,
                unit=known[0].unit,
                values=values,
                reached_by=tuple(None if ceiling is None else _how(ceiling) for ceiling in best),
                ratios=ratios_to_first(values),
            )
            found.append(roof)
    return tuple(found)


def _wanted() -> Iterator[tuple[str, Callable[[Machine], Ceiling | None]]]:
    for path in sorted(MACHINE_PATHS, key=lambda path: not path.startswith("vector")):
        yield path, functools.partial(Machine.compute, path=path)
    for level in MACHINE_LEVELS:
        if level == "link":
            yield "link to the host", Machine.host_link
        else:
            yield (
                level.upper() if level != "shared" else level,
                functools.partial(Machine.bandwidth, level=level),
            )
    for access in _LAUNCHES:
        yield f"launch, {access}", functools.partial(Machine.launch_cost, access=access)


def _how(ceiling: Ceiling) -> str | None:
    return ceiling.instruction or ceiling.access
