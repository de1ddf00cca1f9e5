"""What one iteration did on the GPU: its launches in order, with true times."""

import dataclasses
from collections.abc import Iterable, Sequence

from mansard.collect.marks import Range
from mansard.errors import CollectError

Triple = tuple[int, int, int]


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
    def identity(self) -> tuple[str, Triple | None, Triple | None]:
        """What must be the same in every pass."""
        return self.name, self.grid, self.block


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


def by_call(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """One record a call; nodes of a graph share the call, so their start tells them apart."""
    kept: dict[tuple[int, int, int], Launch] = {}
    for launch in launches:
        start = launch.start_ns if launch.graph else 0
        kept.setdefault((launch.correlation, launch.device, start), launch)
    return tuple(kept.values())


def with_known_call(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """Those whose call is known, one record a call."""
    return by_call([launch for launch in launches if launch.correlation])


def without_overlaps(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """Without records of the same kernel at the same time on one stream: it ran once."""
    kept: list[Launch] = []
    last: dict[tuple[int, int], Launch] = {}
    for launch in sorted(launches, key=lambda each: each.start_ns):
        place = (launch.device, launch.stream)
        before = last.get(place)
        if (
            before is not None
            and before.identity == launch.identity
            and launch.start_ns < before.end_ns
        ):
            continue
        last[place] = launch
        kept.append(launch)
    return tuple(kept)


def without_doubles(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """Every second record, where each launch has exactly two, one after the other."""
    ordered = sorted(launches, key=lambda each: each.start_ns)
    pairs = list(zip(ordered[::2], ordered[1::2], strict=False))
    if len(ordered) % 2 or any(one.identity != other.identity for one, other in pairs):
        return tuple(launches)
    return tuple(one for one, _ in pairs)


def busy_ns(launches: Iterable[Launch]) -> int:
    """Time in which at least one of the launches ran."""
    total, reached = 0, -1
    for launch in sorted(launches, key=lambda each: each.start_ns):
        begin = max(launch.start_ns, reached)
        if launch.end_ns > begin:
            total += launch.end_ns - begin
            reached = launch.end_ns
    return total


def difference(expected: Sequence[Launch], found: Sequence[Launch]) -> str | None:
    """Where two iterations differ, in words; None when they launched the same.

    Args:
        expected: kernels of the traced iteration.
        found: kernels of another one.
    """
    for index, (one, other) in enumerate(zip(expected, found, strict=False)):
        if one.identity != other.identity:
            return (
                f"launch {index}: {_shown(one)} in the traced iteration, {_shown(other)} in this; "
                f"{_count_differing(expected, found)} of {len(expected)} launches differ"
            )
    if len(expected) != len(found):
        first = min(len(expected), len(found))
        longer = expected if len(expected) > first else found
        which = "traced iteration" if longer is expected else "this one"
        return (
            f"{len(expected)} launches in the traced iteration, {len(found)} in this; "
            f"launch {first}, {_shown(longer[first])}, is in the {which} alone"
        )
    return None


def difference_while_counting(expected: Sequence[Launch], found: Sequence[Launch]) -> str | None:
    """Where an iteration under the counters differs; None when it launched the same.

    CUPTI reports kernels more than once while its counters are on. Each way of cleaning takes
    away repeats only, and what is left must be exactly the traced iteration.
    """
    ways = (by_call, with_known_call, without_overlaps, without_doubles)
    told = [difference(expected, clean(found)) for clean in ways]
    return None if None in told else f"{told[0]} ({len(found)} records)"


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


def _count_differing(expected: Sequence[Launch], found: Sequence[Launch]) -> int:
    same = sum(a.identity == b.identity for a, b in zip(expected, found, strict=False))
    return max(len(expected), len(found)) - same


def _shown(launch: Launch) -> str:
    name = launch.name if len(launch.name) <= 80 else f"{launch.name[:77]}..."
    grid = "x".join(map(str, launch.grid or ()))
    block = "x".join(map(str, launch.block or ()))
    return f"{name} <{grid}, {block}>" if grid else name
