"""The launches of a program, from the files of its trace."""

import bisect
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mansard.collect.cupti import activity, decode
from mansard.collect.demangle import demangle
from mansard.collect.marks import Range, names_at
from mansard.collect.ncu.trace.layout import KINDS, read_faults, read_kind, read_names, size_of
from mansard.errors import CollectError
from mansard.model.notice import Notice
from mansard.readers.ncu_rep.vocabulary import is_library_domain

if TYPE_CHECKING:
    from numpy import ndarray

#: Numbers of cudaProfilerStart and -Stop: in the driver's and in the runtime's list of calls.
_REGION_CALLS = {activity.DRIVER: (308, 309), activity.RUNTIME: (171, 172)}
_MARK_START, _MARK_END = 1 << 1, 1 << 2
_COPIES = (activity.MEMCPY, activity.PEER_COPY, activity.MEMSET)
_AXES = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TracedLaunch:
    """One execution on the GPU.

    Attributes:
        process: process id.
        kind: ``kernel``, ``memcpy`` or ``memset``.
        symbol: name of the function as the compiler made it; empty for copies.
        name: name as people read it.
        shape: grid and block along x, y, z; None for copies.
        shared_bytes: dynamic shared memory of a block; None where it is not known.
        ranges: named ranges around it, outermost first.
        phase: the outermost range that no library opened for itself.
        region: number of the stretch between cudaProfilerStart and cudaProfilerStop that it lies
            in, from 1; 0 outside of all.
        in_graph: whether it is a node of a CUDA graph.
        call: number of the call that launched it, within its process; all nodes of a graph that
            run together have one.
        bytes_moved: bytes copied or set; None for kernels.
    """

    process: int
    device: int
    stream: int
    kind: str
    symbol: str
    name: str
    start_ns: int
    end_ns: int
    shape: tuple[int, int, int, int, int, int] | None = None
    shared_bytes: int | None = None
    ranges: tuple[str, ...] = ()
    phase: str | None = None
    region: int = 0
    in_graph: bool = False
    call: int | None = None
    bytes_moved: int | None = None

    @property
    def in_region(self) -> bool:
        """Whether it lies between cudaProfilerStart and cudaProfilerStop."""
        return self.region > 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTrace:
    """What a program ran on the GPU.

    Attributes:
        launches: by process, and there in the order of their calls.
        source: how it was recorded, e.g. ``CUPTI 13.0``.
        notices: what the user must know of it.
        from_start: whether it holds what ran before the region that was asked for.
    """

    launches: Sequence[TracedLaunch]
    source: str
    notices: tuple[Notice, ...] = ()
    from_start: bool = True

    @property
    def kernels(self) -> list[TracedLaunch]:
        """The launches that counters can be read of."""
        return [launch for launch in self.launches if launch.kind == "kernel"]


@dataclasses.dataclass(frozen=True, slots=True)
class NvtxRange:
    """A named stretch of time of a program, with the NVTX domain that it belongs to."""

    name: str
    domain: str
    start_ns: int
    end_ns: int


def read_trace(folder: Path, source: str) -> ProgramTrace:
    """Read the trace files of all processes of a program.

    Args:
        folder: with one folder a process.
        source: how it was recorded.

    Raises:
        CollectError: no process wrote a trace, so none used the GPU.
    """
    folders = sorted(
        (path for path in folder.iterdir() if path.name.isdecimal()), key=lambda p: int(p.name)
    )
    launches = [launch for path in folders for launch in _process(path)]
    faults = sorted({fault for path in folders for fault in read_faults(path)})
    if not any(launch.kind == "kernel" for launch in launches):
        why = f" ({'; '.join(faults)})" if faults else ""
        raise CollectError(
            f"the traced run launched no kernel{why}: does the program use the GPU?",
            slug="no-kernels",
        )
    return ProgramTrace(launches=launches, source=source, notices=_fault_notices(faults))


def with_ranges(
    launches: Sequence[TracedLaunch],
    times_ns: Sequence[int | None],
    ranges: Sequence[NvtxRange],
) -> list[TracedLaunch]:
    """Give each launch the ranges around its call.

    Args:
        launches: of one process.
        times_ns: when each was called.
        ranges: of the same process.
    """
    numbered = [Range(str(i), each.start_ns, each.end_ns) for i, each in enumerate(ranges)]
    found = names_at(numbered, times_ns)
    placed = []
    for launch, numbers in zip(launches, found, strict=True):
        around = [ranges[int(number)] for number in numbers]
        own = [each.name for each in around if not is_library_domain(each.domain)]
        placed.append(
            dataclasses.replace(
                launch,
                ranges=tuple(each.name for each in around),
                phase=next(iter((*own, *(each.name for each in around))), None),
            )
        )
    return placed


def in_regions(
    launches: Sequence[TracedLaunch],
    times_ns: Sequence[int | None],
    calls: Sequence[tuple[int, bool]],
) -> list[TracedLaunch]:
    """Mark the launches between cudaProfilerStart and cudaProfilerStop.

    Args:
        launches: of one process.
        times_ns: when each was called.
        calls: times of the calls, and whether each was a start.
    """
    edges = sorted(calls)
    # The runtime calls the driver, so one start may be told twice.
    regions, number, inside = [0], 0, False
    for _, is_start in edges:
        number += is_start and not inside
        inside = is_start
        regions.append(number if inside else 0)
    marked = []
    for launch, time in zip(launches, times_ns, strict=True):
        when = launch.start_ns if time is None else time
        region = regions[bisect.bisect_right(edges, (when, True))]
        marked.append(dataclasses.replace(launch, region=region))
    return marked


def _process(folder: Path) -> list[TracedLaunch]:
    names = read_names(folder)
    arrays = {kind: read_kind(folder, kind) for kind in KINDS}
    calls = _call_times(arrays)
    process = int(folder.name)
    launches = _kernels(arrays[activity.KERNEL], names, process)
    launches += _copies(arrays, process)
    launches.sort(key=lambda entry: (entry[0], entry[1].start_ns))
    found = [launch for _, launch in launches]
    times = [calls.get(correlation) for correlation, _ in launches]
    end = max((launch.end_ns for launch in found), default=0)
    found = with_ranges(found, times, _ranges(arrays[activity.MARKER], names, end))
    return in_regions(found, times, _region_calls(arrays))


def _call_times(arrays: "Mapping[int, ndarray]") -> dict[int, int]:
    """When each call began; a call of the runtime makes one of the driver, later."""
    found: dict[int, int] = {}
    for kind in (activity.DRIVER, activity.RUNTIME):
        calls = arrays[kind]
        for number, start in zip(
            calls["correlationId"].tolist(), calls["start"].tolist(), strict=True
        ):
            found[number] = min(found.get(number, start), start)
    return found


def _region_calls(arrays: "Mapping[int, ndarray]") -> list[tuple[int, bool]]:
    found: list[tuple[int, bool]] = []
    for kind, (begin, end) in _REGION_CALLS.items():
        calls = arrays[kind]
        for number, is_start in ((begin, True), (end, False)):
            found += [(at, is_start) for at in calls["start"][calls["cbid"] == number].tolist()]
    return found


def _kernels(
    kernels: "ndarray", names: Mapping[int, str], process: int
) -> list[tuple[int, TracedLaunch]]:
    columns = {
        field: kernels[field].tolist()
        for field in (
            *("name", "deviceId", "streamId", "start", "end", "correlationId", "graphNodeId"),
            *("dynamicSharedMemory", *(f"{each[:-2]}{each[-1].upper()}" for each in _AXES)),
        )
    }
    shapes = zip(*(columns[f"{each[:-2]}{each[-1].upper()}"] for each in _AXES), strict=True)
    return [
        (
            columns["correlationId"][row],
            TracedLaunch(
                process=process,
                device=columns["deviceId"][row],
                stream=columns["streamId"][row],
                kind="kernel",
                symbol=names.get(columns["name"][row], ""),
                name=demangle(names.get(columns["name"][row], "")),
                start_ns=columns["start"][row],
                end_ns=columns["end"][row],
                shape=shape,
                shared_bytes=columns["dynamicSharedMemory"][row],
                in_graph=bool(columns["graphNodeId"][row]),
                call=columns["correlationId"][row],
            ),
        )
        for row, shape in enumerate(shapes)
    ]


def _copies(arrays: "Mapping[int, ndarray]", process: int) -> list[tuple[int, TracedLaunch]]:
    records: list[Any] = []
    for kind in _COPIES:
        raw, size = arrays[kind].tobytes(), size_of(KINDS[kind])
        records += [KINDS[kind].from_buffer_copy(raw, at) for at in range(0, len(raw), size)]
    return [
        (
            copy.correlation,
            TracedLaunch(
                process=process,
                device=copy.device,
                stream=copy.stream,
                kind=copy.kind,
                symbol="",
                name=copy.name,
                start_ns=copy.start_ns,
                end_ns=copy.end_ns,
                call=copy.correlation,
                bytes_moved=copy.bytes_moved,
            ),
        )
        for copy in decode.launches(records)
    ]


def _ranges(marks: "ndarray", names: Mapping[int, str], end_ns: int) -> list[NvtxRange]:
    """Ranges by the two marks of each; those still open end with the program."""
    fields = ("timestamp", "flags", "id", "name", "domain")
    rows = sorted(zip(*(marks[field].tolist() for field in fields), strict=True))
    opened: dict[int, tuple[str, str, int]] = {}
    found: list[NvtxRange] = []
    for time, flags, number, name, domain in rows:
        if flags & _MARK_START:
            opened[number] = (names.get(name, ""), names.get(domain, ""), time)
        elif flags & _MARK_END and number in opened:
            found.append(NvtxRange(*opened.pop(number), time))
    found += [NvtxRange(*entry, max(end_ns, entry[2])) for entry in opened.values()]
    return [each for each in found if each.name]


def _fault_notices(faults: Sequence[str]) -> tuple[Notice, ...]:
    if not faults:
        return ()
    reasons = {
        "limit": "the trace reached its greatest size, so later launches are missing in it",
        "disk": "the disk is full, so later launches are missing in the trace",
    }
    told = [reasons.get(fault, f"CUPTI could not record all ({fault})") for fault in faults]
    return (Notice("trace-incomplete", "; ".join(told), partial=True),)
