"""Where a result keeps what: kernels, ranges and whole graphs have their own numbers of fields.

Those of ranges and graphs were found in recorded reports of 2025.3, whose values ncu also prints.
Other results (command lists) may have others still: their metrics are known by their form.
"""

import dataclasses
from collections import Counter

from mansard.errors import FormatError
from mansard.readers.ncu_rep.wire import Message, fields

#: Longer fields are not looked into: a metric has a value, and some thousand instances at most.
_LONGEST_METRIC = 1 << 20
#: Fields of a value, of which it has one: text, single, double, integers.
_VALUES = range(1, 6)


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """Numbers of the fields of a result; 0, which no field has, for what it lacks.

    Attributes:
        metrics: metrics, one field each.
        names: names of the function, the most readable first.
        thread: thread that launched it.
        grid: blocks.
        block: threads of a block.
        code: a message that refers to the module.
        nvtx: NVTX state.
        context: CUDA context.
        stream: CUDA stream.
        driver: version of the display driver.
    """

    metrics: int
    names: tuple[int, ...] = ()
    thread: int = 0
    grid: int = 0
    block: int = 0
    code: int = 0
    nvtx: int = 0
    context: int = 0
    stream: int = 0
    driver: int = 0

    @property
    def others(self) -> frozenset[int]:
        """All fields but the metrics."""
        single = (self.thread, self.grid, self.block, self.code, self.nvtx)
        return frozenset((*self.names, *single, self.context, self.stream, self.driver)) - {0}


KERNEL = Layout(
    metrics=13,
    names=(7, 6, 5),
    thread=1,
    grid=10,
    block=11,
    code=15,
    nvtx=21,
    context=22,
    stream=23,
    driver=35,
)
RANGE = Layout(metrics=4, thread=1, nvtx=10, context=11, driver=21)
GRAPH = Layout(metrics=4, thread=1, nvtx=10, context=11, stream=12, driver=23)


def layout_of(data: bytes) -> Layout:
    """The layout of a result, by the field that its metrics are in; a kernel's without any.

    Raises:
        FormatError: the message is damaged.
    """
    found: Counter[int] = Counter()
    has_stream = False
    for number, value in fields(data):
        if isinstance(value, bytes):
            found[number] += _is_metric(value)
        else:
            has_stream |= number == GRAPH.stream
    if KERNEL.metrics in +found or not +found:
        return KERNEL
    ((number, _),) = found.most_common(1)
    if number != GRAPH.metrics:
        return Layout(metrics=number)
    return GRAPH if has_stream else RANGE


def _is_metric(data: bytes) -> bool:
    """Whether a field has the form of a metric: the number of a name, and a value."""
    if len(data) > _LONGEST_METRIC:
        return False
    try:
        metric = Message(data)
        value = metric.message(2)
    except FormatError:
        return False
    if metric.integer(1) is None or value is None:
        return False
    return any(number in value.values for number in _VALUES)
