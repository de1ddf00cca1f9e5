"""Whether a result is the launch of one kernel, a range, or a whole graph.

The format has no documented mark for it. What is known: ranges and whole graphs stand in lists of
their own (seen in recorded reports of 2025.3), older exports call ranges "range"; a report of range
replay holds ranges only; results of whole graphs have launch metrics of their own (Kernel Profiling
Guide); every kernel result seen refers to a module.
"""

import dataclasses

from mansard.readers.ncu_rep.container import Listed

#: What ncu calls a range, where a kernel has the name of its function.
_RANGE_NAME = "range"
_RANGE_REPLAY = frozenset(("range", "app-range"))


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What tells the kind of a result.

    Attributes:
        name: its name, if any.
        has_code: whether it refers to a module.
        has_shape: whether it has a grid and a block.
        has_graph_metrics: whether it has values for the launch metrics of graphs.
        listed: the list that it stands in.
    """

    name: str | None
    has_code: bool
    has_shape: bool
    has_graph_metrics: bool
    listed: Listed = None


def result_kind(
    evidence: Evidence, *, replay: str | None, graph_profiling: str | None
) -> str | None:
    """Tell the kind of a result: ``kernel``, ``range``, ``graph``, or None when it is unclear.

    Args:
        evidence: of the result itself.
        replay: replay mode of the recording, if known.
        graph_profiling: ``node`` or ``graph``, if known.
    """
    if evidence.listed is not None:
        return evidence.listed
    if replay in _RANGE_REPLAY:
        return "range"
    whole_graphs = graph_profiling == "graph"
    if not evidence.has_code and (whole_graphs or evidence.has_graph_metrics):
        return "graph"
    if whole_graphs and evidence.has_graph_metrics:
        return "graph"
    if evidence.name == _RANGE_NAME and not evidence.has_code:
        return "range"
    if evidence.name is not None and evidence.has_shape:
        return "kernel"
    return None
