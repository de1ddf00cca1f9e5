"""Threads that stay on their cores and start a kernel together."""

import ctypes
import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from mansard.bench.cpu.harness import CHAIN_LINK
from mansard.bench.cpu.jit import Kernel
from mansard.units import PREFIXES

_NANO = dict(PREFIXES)["n"]
#: Links of the clock chain around each sample: about 50 microseconds at 3 GHz.
_CLOCK_LINKS = 2400
_ARGUMENTS = 8
_OPEN_GATE = 1 << 62
#: Turns that a thread waits at the gate, of some 15 to 50 ns each: the time that Python needs to
#: wake all threads, and a little more.
_TURNS = 10_000
_TURNS_PER_THREAD = 2_000
_FOR_EVER = 1 << 62
#: How often threads try to be there together, and how long they rest between.
_ATTEMPTS = 20
_REST_S = 0.001

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """One call of a kernel on all threads of a team.

    Attributes:
        duration_s: from the first start to the last end.
        clock_hz: core clock just before and after, by chains of dependent additions: the faster
            of the two, because an interruption only lengthens a chain; median of the threads.
        core_share: part of the time, from the first start to its own end, for which the least
            served thread had its core.
    """

    duration_s: float
    clock_hz: float
    core_share: float


class Team:
    """One pinned thread per core.

    Use it as a context: its threads end with it.

    Attributes:
        cpus: logical processor of each thread.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self.cpus = tuple(cpus)
        self._pools = [ThreadPoolExecutor(1, thread_name_prefix=f"cpu{cpu}") for cpu in cpus]

    def __enter__(self) -> Self:
        self.each(lambda place: os.sched_setaffinity(0, {self.cpus[place]}))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pool in self._pools:
            pool.shutdown()

    def each(self, function: Callable[[int], _Result], threads: int | None = None) -> list[_Result]:
        """Call ``function(place)`` on each thread, or on the first few, and wait for all."""
        pools = self._pools[:threads]
        return _results([pool.submit(function, place) for place, pool in enumerate(pools)])

    def run(self, kernel: Kernel, arguments: Sequence[Sequence[int]]) -> Timing:
        """Run a kernel on as many threads as there are lists of arguments.

        On a busy system the threads may not have their cores at the same time. Then they give up
        before they start, sleep a little and try again; after many attempts they wait for as long
        as it takes, and the timing will show that they were disturbed.

        Args:
            kernel: compiled code.
            arguments: for each thread, the 64-bit values that its kernel reads.
        """
        threads = len(arguments)
        for attempt in range(_ATTEMPTS + 1):
            patience = _TURNS + _TURNS_PER_THREAD * threads if attempt < _ATTEMPTS else _FOR_EVER
            times = self._try(kernel, arguments, patience)
            if times is not None:
                return timing_of(times)
            time.sleep(_REST_S)
        raise AssertionError("threads that wait for ever do not give up")

    def _try(
        self, kernel: Kernel, arguments: Sequence[Sequence[int]], patience: int
    ) -> list[tuple[int, ...]] | None:
        """One attempt: the times of each thread, or None if they gave up."""
        gate = (ctypes.c_int64 * 16)()
        times = [(ctypes.c_int64 * 16)() for _ in arguments]
        # Kept in this frame until all threads are back.
        passed = [(ctypes.c_int64 * _ARGUMENTS)(*values) for values in arguments]
        shared = (ctypes.addressof(gate), len(arguments), patience, _CLOCK_LINKS)
        waiting: list[Future[int]] = []
        try:
            for pool, *own in zip(self._pools, times, passed, strict=False):
                call = (*shared, *map(ctypes.addressof, own))
                waiting.append(pool.submit(kernel.measure, *call))
            started: list[int] = _results(waiting)
        except BaseException:
            # An interrupt between two submissions: nobody may wait at the gate for ever.
            gate[0] = _OPEN_GATE
            for future in waiting:
                future.exception()
            raise
        return [tuple(values) for values in times] if all(started) else None


def timing_of(times: Sequence[Sequence[int]]) -> Timing:
    """Read the times that ``measure`` leaves: eight pairs (seconds, nanoseconds) a thread."""
    stamps = [
        [values[2 * index] + values[2 * index + 1] * _NANO for index in range(8)]
        for values in _from_first_second(times)
    ]
    start = min(row[3] for row in stamps)
    end = max(row[4] for row in stamps)
    cycles = CHAIN_LINK * _CLOCK_LINKS
    clocks = [cycles / min(row[1] - row[0], row[7] - row[6]) for row in stamps]
    # A thread that started late had no core either: its time counts from the first start.
    shares = [min(1.0, (row[5] - row[2]) / (row[4] - start)) for row in stamps]
    return Timing(end - start, statistics.median(clocks), min(shares))


def _from_first_second(times: Sequence[Sequence[int]]) -> list[list[int]]:
    """Count seconds from the earliest, so that a float keeps every nanosecond."""
    of_thread = (4, 10)  # places of the seconds of the thread's own clock
    first = min(values[0] for values in times)
    return [
        [
            value - (values[4] if place in of_thread else first) if place % 2 == 0 else value
            for place, value in enumerate(values)
        ]
        for values in times
    ]


def _results(futures: Sequence["Future[_Result]"]) -> list[_Result]:
    return [future.result() for future in futures]
