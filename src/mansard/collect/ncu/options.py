"""What a person can choose about a collection with Nsight Compute."""

import dataclasses
from enum import StrEnum
from pathlib import Path

from mansard.errors import UsageError


class Replay(StrEnum):
    """How the passes of the counters are run.

    ``kernel``: each launch is repeated in place, its memory saved and restored. ``application``:
    the whole program runs once a pass, which needs no memory and a program that repeats itself.
    ``auto``: of these the one that takes less time, as far as a traced run tells; else ``kernel``.
    ``range``: all between cudaProfilerStart and cudaProfilerStop, or in a range that is included,
    is repeated as one and becomes one row; ``app-range``: the same, and the program runs once a
    pass.
    """

    AUTO = "auto"
    KERNEL = "kernel"
    APPLICATION = "application"
    RANGE = "range"
    APP_RANGE = "app-range"

    @property
    def of_ranges(self) -> bool:
        """Whether a row is a range and not a kernel."""
        return self in (Replay.RANGE, Replay.APP_RANGE)


class Graphs(StrEnum):
    """CUDA graphs: each ``node`` as a kernel, or the whole ``graph`` as one result."""

    NODE = "node"
    GRAPH = "graph"


class Clocks(StrEnum):
    """What ncu does with the clocks.

    ``none`` leaves them as the program finds them. ``base`` and ``boost`` lock them, which needs
    rights, and gives rates that the program never sees.
    """

    NONE = "none"
    BASE = "base"
    BOOST = "boost"


class Caches(StrEnum):
    """What ncu does with the caches before each pass.

    ``none`` leaves them as the launches before left them. ``all`` empties them, so that no launch
    profits from the one before.
    """

    NONE = "none"
    ALL = "all"


class NvtxScope(StrEnum):
    """Whether a push/pop range holds for its ``thread`` or for the whole ``process``.

    PyTorch launches the backward pass from another thread, so ``process`` is the default.
    """

    PROCESS = "process"
    THREAD = "thread"


class Tensor(StrEnum):
    """Which tensor work is counted.

    ``dense``: every precision but 2:4 sparse instructions, in few passes. ``all``: sparse ones
    too, about one pass a precision. ``none``: only whether the tensor cores were used at all.
    """

    DENSE = "dense"
    ALL = "all"
    NONE = "none"


class Times(StrEnum):
    """Where the times of launches come from.

    ``auto``: a trace where launches are sampled, and for whole ranges and graphs; else ncu.
    ``trace``: a run without ncu, traced by Mansard. ``nsys``: the same, traced by Nsight Systems.
    ``ncu``: the counted run itself.
    """

    AUTO = "auto"
    TRACE = "trace"
    NSYS = "nsys"
    NCU = "ncu"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which launches are counted.

    Attributes:
        sample: launches counted of each kernel with the same grid, block and shared memory, the
            others get theirs; None counts every launch.
        kernel_name: name of a kernel's function, or ``regex:`` and an expression to find in it.
        collectives: count kernels that wait for other ranks too; replay hangs in most of them.
        nvtx_include: ranges to count, in the notation of ncu.
        nvtx_exclude: ranges to leave out.
        launch_skip: launches to pass over first.
        launch_count: launches to count at most.
        from_start: False counts only between cudaProfilerStart and cudaProfilerStop.
    """

    sample: int | None = None
    kernel_name: str | None = None
    collectives: bool = False
    nvtx_include: tuple[str, ...] = ()
    nvtx_exclude: tuple[str, ...] = ()
    launch_skip: int | None = None
    launch_count: int | None = None
    from_start: bool = True

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise UsageError(f"--sample is {self.sample}; at least 1 launch of each is needed")
        numbered = self.launch_skip is not None or self.launch_count is not None
        if self.sample is not None and numbered:
            raise UsageError(
                "--sample counts launches of each configuration, so --launch-skip and "
                "--launch-count cannot be used with it. Choose a stretch of the program with "
                "--nvtx-include, or with --from-profiler-start and cudaProfilerStart"
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How the launches are run while they are counted.

    Attributes:
        replay: how passes are run.
        graphs: how CUDA graphs are counted.
        clocks: whether they are locked.
        caches: whether they are emptied.
        nvtx_scope: what a push/pop range covers.
    """

    replay: Replay = Replay.AUTO
    graphs: Graphs = Graphs.NODE
    clocks: Clocks = Clocks.NONE
    caches: Caches = Caches.NONE
    nvtx_scope: NvtxScope = NvtxScope.PROCESS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NcuOptions:
    """A collection with Nsight Compute.

    Attributes:
        selection: which launches.
        conditions: how they run.
        times: where their times come from.
        tensor: which tensor work.
        columns: columns of a run to make, instead of all and ``tensor``.
        counters: name of the counter table; chosen by the chip when None.
        chip: chip name or compute capability; asked of the driver when None.
        keep: patterns of vendor counters to keep in the run.
        keep_report: where to keep ncu's report; None deletes it once it is read.
        ncu: the ncu to use; found when None.
    """

    selection: Selection = dataclasses.field(default_factory=Selection)
    conditions: Conditions = dataclasses.field(default_factory=Conditions)
    times: Times = Times.AUTO
    tensor: Tensor = Tensor.DENSE
    columns: tuple[str, ...] | None = None
    counters: str | None = None
    chip: str | None = None
    keep: tuple[str, ...] = ()
    keep_report: Path | None = None
    ncu: Path | None = None

    def __post_init__(self) -> None:
        replay = self.conditions.replay
        if self.selection.sample is not None and self.counts_whole:
            what = (
                f"--replay {replay} counts whole ranges"
                if replay.of_ranges
                else "--graphs graph counts whole graphs"
            )
            raise UsageError(
                f"{what}, and a sample is made of kernels: leave out --sample, or count kernels"
            )
        if self.selection.kernel_name is not None and replay.of_ranges:
            raise UsageError(
                f"--replay {replay} counts whole ranges, so kernels cannot be chosen by name: "
                "leave out --kernel-name, or count kernels"
            )

    @property
    def counts_whole(self) -> bool:
        """Whether a row is a range or a whole graph."""
        conditions = self.conditions
        return conditions.replay.of_ranges or conditions.graphs is Graphs.GRAPH

    @property
    def of_regions(self) -> bool:
        """Whether a row is what runs between cudaProfilerStart and cudaProfilerStop."""
        return self.conditions.replay.of_ranges and not self.selection.nvtx_include

    @property
    def traced(self) -> bool:
        """Whether the program runs once more, for its times."""
        if self.times is Times.AUTO:
            return self.selection.sample is not None or self.counts_whole
        return self.times is not Times.NCU
