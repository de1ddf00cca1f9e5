"""The command line of ncu, as a pure function of what is asked for."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from mansard.collect.ncu.gate import OPTION
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.options import Conditions, Graphs, Replay, Selection
from mansard.collect.ncu.vocabulary import vocabulary
from mansard.errors import UsageError

_REGEX = "regex:"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a program under ncu.

    Attributes:
        program: the program and its arguments.
        report: where ncu writes its report.
        log: where ncu writes what it says, so that the program's output stays its own.
        counters: vendor names.
        selection: which launches are counted.
        conditions: how they run.
        gate: library that shows ncu the launches to count, instead of its own filters.
        numbers: which launches of each kernel and shape are a sample; the first where empty.
    """

    program: Sequence[str]
    report: Path
    log: Path
    counters: Sequence[str]
    selection: Selection = dataclasses.field(default_factory=Selection)
    conditions: Conditions = dataclasses.field(default_factory=Conditions)
    gate: Path | None = None
    numbers: Sequence[int] = ()


def command_line(tool: NcuTool, job: Job) -> list[str]:
    """The command line: ncu, its options, the program. Never meant for a shell.

    Options that only save time or keep a user's settings out are left out where the version does
    not know them.

    Raises:
        UsageError: this version of ncu lacks something that was asked for.
    """
    conditions = job.conditions
    line = [
        str(tool.path),
        *_known(tool, "config-file", "off"),
        *("--export", _without_macros(job.report), "--force-overwrite"),
        *("--log-file", str(job.log)),
        *("--target-processes", "all"),
        *("--metrics", ",".join(job.counters)),
        # Machine code is most of a report, and takes most of the time to write it.
        *_known(tool, "import-sass", "no"),
        *_known(tool, "disable-extra-suffixes"),
        *("--clock-control", conditions.clocks.value),
        *("--cache-control", conditions.caches.value),
        *("--replay-mode", _replay_mode(conditions)),
        *_replay(tool, conditions),
        "--nvtx",
        *_known(tool, "nvtx-push-pop-scope", conditions.nvtx_scope.value),
        *_graphs(tool, conditions),
        *(_selection(tool, job) if job.gate is None else _gated(job.gate)),
    ]
    return [*line, *job.program]


def kernel_filter(selection: Selection) -> str | None:
    """The filter of kernel names as ncu takes it; None lets every name pass.

    Collectives are left out by a look-ahead in front of the expression asked for. A kernel that is
    named exactly is wanted, whatever its name says.
    """
    name = selection.kernel_name
    if selection.collectives or (name is not None and not name.startswith(_REGEX)):
        return name
    without = f"^(?!.*({'|'.join(vocabulary().collectives)}))"
    if name is None:
        return f"{_REGEX}{without}"
    return f"{_REGEX}{without}(?=.*({name.removeprefix(_REGEX)}))"


def name_base(tool: NcuTool, selection: Selection) -> str:
    """Which name of a kernel ncu filters and numbers by: ``mangled`` or ``function``.

    By its function all instances of a template are one. But a name that a person gave is that.
    """
    known = "kernel-name-base" in tool.options
    return "mangled" if known and selection.kernel_name is None else "function"


def sampling(tool: NcuTool, wanted: Sequence[int], name: str | None, base: str) -> list[str]:
    """Options that count some launches of each kernel with the same shape, and no others.

    ncu numbers the invocations of a kernel; per launch configuration it does so for each grid,
    block and shared memory apart. The count of launches alone would not tell kernels apart that
    are launched with the same shape.

    Args:
        tool: the ncu.
        wanted: numbers of launches, from 1.
        name: filter of kernel names.
        base: which name of a kernel is meant.
    """
    for option in ("filter-mode", "kernel-id"):
        _require(tool, option)
    numbers = "|".join(map(str, wanted))
    per_shape = ["--filter-mode", "per-launch-config"]
    if base != "function":
        per_shape += ["--kernel-name-base", base]
    inside = "" if name is None else name
    if ":" in inside.removeprefix(_REGEX):
        # Colons divide the parts of an id, so such a name needs an option of its own.
        return [*per_shape, "--kernel-name", inside, "--kernel-id", f":::{numbers}"]
    return [*per_shape, "--kernel-id", f"::{inside}:{numbers}"]


def _selection(tool: NcuTool, job: Job) -> list[str]:
    line: list[str] = []
    selection = job.selection
    # A range or a graph has no name of a kernel.
    whole = job.conditions.replay.of_ranges or job.conditions.graphs is Graphs.GRAPH
    name = selection.kernel_name if whole else kernel_filter(selection)
    if selection.sample is not None:
        wanted = job.numbers or range(1, selection.sample + 1)
        line += sampling(tool, wanted, name, name_base(tool, selection))
    elif name is not None:
        line += ["--kernel-name", name]
    if selection.launch_skip is not None:
        line += ["--launch-skip", str(selection.launch_skip)]
    if selection.launch_count is not None:
        line += ["--launch-count", str(selection.launch_count)]
    if not selection.from_start:
        line += ["--profile-from-start", "off"]
    for expression in selection.nvtx_include:
        line += ["--nvtx-include", expression]
    for expression in selection.nvtx_exclude:
        line += ["--nvtx-exclude", expression]
    return line


def _gated(library: Path) -> list[str]:
    return [f"--{OPTION}", str(library), "--profile-from-start", "off"]


def _replay_mode(conditions: Conditions) -> str:
    replay = conditions.replay
    return (Replay.KERNEL if replay is Replay.AUTO else replay).value


def _replay(tool: NcuTool, conditions: Conditions) -> list[str]:
    """A program that fails in its first pass must not run for the others."""
    if conditions.replay is not Replay.APPLICATION:
        return []
    return _known(tool, "app-replay-buffer", "memory")


def _graphs(tool: NcuTool, conditions: Conditions) -> list[str]:
    """Nodes are what older versions count anyway."""
    if conditions.graphs is Graphs.GRAPH:
        _require(tool, "graph-profiling")
    return _known(tool, "graph-profiling", conditions.graphs.value)


def _known(tool: NcuTool, option: str, *values: str) -> list[str]:
    return [f"--{option}", *values] if option in tool.options else []


def _require(tool: NcuTool, option: str) -> None:
    if not tool.has(option):
        raise UsageError(
            f"{tool.label} has no --{option}, which {vocabulary().needs[option]} needs: "
            "use a newer Nsight Compute"
        )


def _without_macros(path: Path) -> str:
    """The path with its percent signs doubled: ncu replaces %p, %h, %i and %q{...}."""
    return str(path).replace("%", "%%")
