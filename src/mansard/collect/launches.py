"""What one iteration did on the GPU: its launches in order, with true times."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mansard.collect.marks import Range
from mansard.errors import CollectError

Triple = tuple[int, int, int]


class Identity(NamedTuple):
    """What must be the same in every pass: a kernel and its shape, or a graph.

    Attributes:
        name: demangled; empty where it is not known.
        grid: blocks along x, y, z; None for a graph.
        block: threads along x, y, z; None for a graph.
    """

    name: str
    grid: Triple | None
    block: Triple | None

    def matches(self, other: "Identity") -> bool:
        """Whether both can be the same launch; an unknown name decides nothing."""
        named = not self.name or not other.name or self.name == other.name
        return named and (self.grid, self.block) == (other.grid, other.block)

    def __str__(self) -> str:
        name = self.name if len(self.name) <= 80 else f"{self.name[:77]}..."
        shape = ["x".join(map(str, each)) for each in (self.grid, self.block) if each]
        return f"{name or 'a kernel'} <{', '.join(shape)}>" if shape else name


#: A launch of a whole graph.
GRAPH = Identity("a CUDA graph", None, None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One execution on the GPU, as an activity trace recorded it.

    Attributes:
        kind: ``kernel``, ``memcpy`` or ``memset``.
        name: demangled name; for copies their direction, e.g. ``memcpy HtoD``.
        device: index of the GPU in the process.
        stream: number of the CUDA stream.
        start_ns: start on the GPU, in ns on the clock of the trace.
        end_ns: end on the GPU.
        launch_ns: when the CPU made the call; None if the call was not recorded.
        correlation: number of the call; it grows in the order of the calls.
        grid: blocks along x, y, z; None for copies.
        block: threads along x, y, z; None for copies.
        graph: number of the CUDA graph that it is a node of; 0 for none.
        bytes_moved: bytes copied or set; None for kernels.
    """

    kind: str
    name: str
    device: int
    stream: int
    start_ns: int
    end_ns: int
    launch_ns: int | None = None
    correlation: int = 0
    grid: Triple | None = None
    block: Triple | None = None
    graph: int = 0
    bytes_moved: int | None = None

    @property
    def identity(self) -> Identity:
        """What must be the same in every pass."""
        return Identity(self.name, self.grid, self.block)


@dataclasses.dataclass(frozen=True, slots=True)
class Trace:
    """One iteration.

    Attributes:
        launches: in order of launch.
        ranges: named ranges of the program that were seen in it.
        start_ns: when the iteration began.
        end_ns: when all its work was done.
        splits: times at which the program went from one phase into another or out of one.
    """

    launches: tuple[Launch, ...]
    ranges: tuple[Range, ...] = ()
    start_ns: int = 0
    end_ns: int = 0
    splits: tuple[int, ...] = ()

    @property
    def kernels(self) -> tuple[Launch, ...]:
        """The launches that counters can be read of."""
        return tuple(launch for launch in self.launches if launch.kind == "kernel")

    @property
    def has_graphs(self) -> bool:
        """Whether some of it was launched as a CUDA graph."""
        return any(launch.graph for launch in self.launches)

    @property
    def devices(self) -> tuple[int, ...]:
        """GPUs that ran kernels, in order of their index."""
        return tuple(sorted({launch.device for launch in self.kernels}))

    def kernels_on(self, device: int) -> tuple[Launch, ...]:
        """Kernels of one GPU."""
        return tuple(launch for launch in self.kernels if launch.device == device)


def in_launch_order(launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """Launches by their call; nodes of one graph by their start."""
    return tuple(sorted(launches, key=lambda launch: (launch.correlation, launch.start_ns)))


def busy_ns(launches: Iterable[Launch]) -> int:
    """Time in which at least one of the launches ran."""
    total, reached = 0, -1
    for launch in sorted(launches, key=lambda each: each.start_ns):
        begin = max(launch.start_ns, reached)
        if launch.end_ns > begin:
            total += launch.end_ns - begin
            reached = launch.end_ns
    return total


def calls(launches: Iterable[Launch]) -> tuple[Identity, ...]:
    """The calls that made the launches: one for a kernel, one for all nodes of a graph."""
    found: dict[int, Identity] = {}
    for launch in launches:
        found.setdefault(launch.correlation, GRAPH if launch.graph else launch.identity)
    return tuple(found.values())


def difference(expected: Sequence[Identity], found: Sequence[Identity]) -> str | None:
    """Where two iterations differ, in words; None when they launched the same.

    Args:
        expected: calls of the traced iteration.
        found: calls of another one.
    """
    differing = [
        index
        for index, (one, other) in enumerate(zip(expected, found, strict=False))
        if not one.matches(other)
    ]
    if differing:
        first = differing[0]
        count = len(differing) + abs(len(expected) - len(found))
        return (
            f"launch {first}: {expected[first]} in the traced iteration, {found[first]} in this; "
            f"{count} of {len(expected)} launches differ"
        )
    if len(expected) == len(found):
        return None
    first = min(len(expected), len(found))
    extra, where = (
        (expected[first], "traced iteration")
        if len(expected) > first
        else (found[first], "new one")
    )
    return (
        f"{len(expected)} launches in the traced iteration, {len(found)} in this; "
        f"launch {first}, {extra}, is in the {where} alone"
    )


def check_complete(trace: Trace) -> None:
    """Refuse a trace without kernels.

    Raises:
        CollectError: nothing ran on a GPU.
    """
    if not trace.kernels:
        raise CollectError(
            "the traced iteration launched no kernel: does the step run on the GPU, and inside "
            "the with-block?",
            slug="no-kernels",
        )
