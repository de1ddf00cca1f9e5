"""A census of launches: how many do no floating-point work or are short, and what starting costs.

The paper counts zero-AI kernels (arXiv 2009.05257); its companion asks which launches are over
before they have begun (arXiv 2009.04598).
"""

import dataclasses

from mansard.model.analysis import Group, quotient
from mansard.model.machine import Machine
from mansard.model.paths import FLOP_PATHS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Shares of a group's launches, time and work; None where unknown.

    Attributes:
        zero_flop_launches: share of launches without FLOP.
        zero_flop_time: share of time in them.
        near_zero_flop_launches: share of launches with next to none.
        near_zero_flop_time: share of time in them.
        short_launches: share of launches that are short.
        flop_by_path: share of the FLOP by path, of those that have any.
        tensor_flop: share of the FLOP done by the tensor pipe.
        launch_cost_s: what starting all launches one by one costs, at the machine's cost of a
            launch into a stream.
        launch_cost_time: the same over the time on the GPU: near 1 or above, the program is
            held up by launching.
    """

    zero_flop_launches: float | None
    zero_flop_time: float | None
    near_zero_flop_launches: float | None
    near_zero_flop_time: float | None
    short_launches: float | None
    flop_by_path: dict[str, float]
    tensor_flop: float | None
    launch_cost_s: float | None
    launch_cost_time: float | None


def census(group: Group, machine: Machine | None = None) -> Census:
    """Count the launches of a group."""
    mix = {
        path.name: work / group.flop
        for path in FLOP_PATHS
        if group.flop and (work := group.flop_by_path[path.name])
    }
    cost = machine.launch_cost("stream") if machine else None
    cost_s = cost.value * group.launches if cost and cost.value else None
    return Census(
        zero_flop_launches=quotient(group.zero_flop_launches, group.launches),
        zero_flop_time=quotient(group.zero_flop_duration_s, group.duration_s),
        near_zero_flop_launches=quotient(group.near_zero_flop_launches, group.launches),
        near_zero_flop_time=quotient(group.near_zero_flop_duration_s, group.duration_s),
        short_launches=quotient(group.short_launches, group.launches),
        flop_by_path=mix,
        tensor_flop=(
            sum(share for path, share in mix.items() if path.startswith("tensor "))
            if group.flop
            else None
        ),
        launch_cost_s=cost_s,
        launch_cost_time=quotient(cost_s, group.duration_s),
    )
