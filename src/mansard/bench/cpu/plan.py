"""What is measured, in which order, and what cannot be: before anything runs. Pure."""

import dataclasses
from collections.abc import Iterable

from mansard.bench.cpu.levels import Level, plan_levels
from mansard.bench.cpu.processor import Processor
from mansard.bench.cpu.recipes import PATHS, Recipe, missing_reason, recipes_for
from mansard.bench.cpu.stream_kernels import STREAMS
from mansard.errors import UsageError

#: Accesses of caches; main memory has those that go around the caches as well.
_CACHED = tuple(access for access in STREAMS if not access.endswith(" nt"))


@dataclasses.dataclass(frozen=True, slots=True)
class Stream:
    """One bandwidth to measure.

    Attributes:
        level: where the working set of all threads lives.
        alone: the same level for one thread that has it all.
        access: key of ``STREAMS``.
    """

    level: Level
    alone: Level
    access: str

    @property
    def label(self) -> str:
        """As it is shown: ``l1 read``."""
        return f"{self.level.name} {self.access}"


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Everything that will be measured.

    Attributes:
        cpus: processor of each thread.
        recipes: compute paths.
        missing: compute paths without an instruction, and why.
        streams: bandwidths.
        missing_streams: bandwidths whose level cannot be measured.
    """

    cpus: tuple[int, ...]
    recipes: tuple[Recipe, ...]
    missing: tuple[tuple[str, str], ...]
    streams: tuple[Stream, ...]
    missing_streams: tuple[Stream, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels that are measured, from the nearest."""
        return tuple(dict.fromkeys(stream.level for stream in self.streams))

    @property
    def each_bytes(self) -> int:
        """Memory that every thread needs."""
        return max((stream.level.footprint_bytes for stream in self.streams), default=0)

    @property
    def first_bytes(self) -> int:
        """Memory that the first thread needs when it works alone."""
        return max((stream.alone.footprint_bytes for stream in self.streams), default=0)


def make_plan(
    processor: Processor, *, threads: int | None = None, only: Iterable[str] = ()
) -> Plan:
    """Decide what to measure.

    Args:
        processor: what it is measured on.
        threads: how many; by default a core each, within the quota of the control group.
        only: parts to measure: ``compute``, ``bandwidth``, a path (``vector fp64``), a level
            (``l2``) or both level and access (``dram triad nt``); everything by default.

    Raises:
        UsageError: more threads than cores, or a part that does not exist.
    """
    cpus = _cpus(processor, threads)
    recipes = recipes_for(processor.architecture, processor.flags)
    present = {recipe.path for recipe in recipes}
    missing = [
        (path, missing_reason(path, processor.architecture, processor.flags))
        for path in PATHS
        if path not in present
    ]
    streams = _streams(processor, cpus)
    wanted = frozenset(part.strip().lower() for part in only)
    _refuse_unknown(wanted, streams)
    return Plan(
        cpus=cpus,
        recipes=tuple(it for it in recipes if _is_wanted(wanted, "compute", it.path)),
        missing=tuple(it for it in missing if _is_wanted(wanted, "compute", it[0])),
        streams=tuple(it for it in streams if not it.level.reason and _stream_wanted(wanted, it)),
        missing_streams=tuple(
            it for it in streams if it.level.reason and _stream_wanted(wanted, it)
        ),
    )


def _cpus(processor: Processor, threads: int | None) -> tuple[int, ...]:
    if threads is None:
        return processor.cores[: processor.threads_allowed]
    if not 1 <= threads <= len(processor.cores):
        raise UsageError(
            f"{threads} threads cannot have a core each: this process may use"
            f" {len(processor.cores)}. Give 1 to {len(processor.cores)}.",
            slug="cpu-threads",
        )
    return processor.cores[:threads]


def _streams(processor: Processor, cpus: tuple[int, ...]) -> list[Stream]:
    memory = processor.memory_free_bytes
    whole = plan_levels(processor.caches, cpus, memory)
    alone = plan_levels(processor.caches, cpus[:1], memory)
    return [
        Stream(level, single, access)
        for level, single in zip(whole, alone, strict=True)
        for access in (STREAMS if level.name == "dram" else _CACHED)
    ]


def _is_wanted(wanted: frozenset[str], *names: str) -> bool:
    return not wanted or not wanted.isdisjoint(names)


def _stream_wanted(wanted: frozenset[str], stream: Stream) -> bool:
    return _is_wanted(wanted, "bandwidth", stream.level.name, stream.label)


def _refuse_unknown(wanted: frozenset[str], streams: list[Stream]) -> None:
    levels = list(dict.fromkeys(stream.level.name for stream in streams))
    known = ["compute", "bandwidth", *PATHS, *levels, *(stream.label for stream in streams)]
    unknown = sorted(wanted.difference(known))
    if unknown:
        short = ["compute", "bandwidth", *PATHS, *levels]
        raise UsageError(
            f"There is nothing called {', '.join(unknown)} to measure here. There are:"
            f" {', '.join(short)}, and a level with its access, such as {streams[0].label}.",
            slug="cpu-only",
        )
