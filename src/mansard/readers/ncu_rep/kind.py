"""Whether a result is the launch of one kernel, a range, or a whole graph.

The format has no documented mark for it. What is known: a report of range replay holds ranges
only, in a list of their own (seen in recorded reports), or called "range" (in older exports);
results of whole graphs have launch metrics of their own (Kernel Profiling Guide); every kernel
result seen refers to a module.
"""

import dataclasses

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
        is_listed_as_range: whether it stands in the list of ranges.
    """

    name: str | None
    has_code: bool
    has_shape: bool
    has_graph_metrics: bool
    is_listed_as_range: bool = False


def result_kind(
    evidence: Evidence, *, replay: str | None, graph_profiling: str | None
) -> str | None:
    """Tell the kind of a result: ``kernel``, ``range``, ``graph``, or None when it is unclear.

    Args:
        evidence: of the result itself.
        replay: replay mode of the recording, if known.
        graph_profiling: ``node`` or ``graph``, if known.
    """
    whole_graphs = graph_profiling == "graph"
    if replay in _RANGE_REPLAY:
        return "range"
    if not evidence.has_code and (whole_graphs or evidence.has_graph_metrics):
        return "graph"
    if whole_graphs and evidence.has_graph_metrics:
        return "graph"
    if evidence.is_listed_as_range or (evidence.name == _RANGE_NAME and not evidence.has_code):
        return "range"
    if evidence.name is not None and evidence.has_shape:
        return "kernel"
    return None
