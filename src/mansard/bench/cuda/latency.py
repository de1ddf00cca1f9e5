"""Latency of each level by pointer chase, and the cost of a launch."""

import ctypes
import time
from collections.abc import Callable

import numpy as np
from cuda.bindings import driver
from cuda.core import EventOptions, LaunchConfig, launch

from mansard.bench.cuda.device import MILLISECOND, Gpu, check
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task

_STEPS = 1 << 13
_LINE_WORDS = 32
#: Of the address sequence: a full period over powers of two needs multiplier % 4 == 1.
_MULTIPLIER = 1664525
#: Fewer than the launch queue of a stream holds (1 024), or the host would wait for the gate.
_QUEUED = 256
_GRAPH_NODES = 1000
_WAITED = 50

_LINK = Variant(source="chase.cu", entry="chase_link", threads=256, blocks=4)
_GATE = Variant(source="clock.cu", entry="gate", threads=1)
_NOTHING = Variant(source="clock.cu", entry="nothing", threads=32)

#: Seconds of one launch, and what else was seen.
Once = Callable[[], tuple[float, dict[str, float]]]


def measure_latency(session: Session, task: Task) -> Outcome:
    """Time of one dependent load that the level serves.

    L2 is passed over once before: lines that other SMs wrote answer later the first time (353
    against 288 cycles on an H200), and a short run would measure that, a long one the rest.
    """
    gpu = session.gpu
    variant = task.variants[0]
    size = int(task.numbers["bytes"])
    lines = size // (_LINE_WORDS * 4)
    words = gpu.allocate(max(size, 4096))
    cycles = gpu.upload(np.zeros(2, np.uint64))
    try:
        gpu.zero(words)
        # The chase is compiled with the operator of its level; its links are written by the same.
        link = Variant(
            source=_LINK.source,
            entry=_LINK.entry,
            macros=variant.macros,
            threads=_LINK.threads,
            blocks=_LINK.blocks,
        )
        gpu.start(
            link,
            words,
            np.uint32(lines),
            np.uint32(_LINE_WORDS),
            np.uint32(_MULTIPLIER),
        )
        if task.level == "dram":  # the links that were just written must not lie in L2
            swept = gpu.allocate(4 * int(session.numbers["l2_bytes"]))
            gpu.zero(swept)
            gpu.free(swept)

        def follow(steps: int) -> None:
            gpu.start(
                variant,
                words,
                np.uint32(steps),
                cycles.address,
                cycles.address + 8,
                blocks=1,
            )

        first = {}
        if task.level == "l2":
            follow(lines)
            first = {"first_pass_cycles": float(gpu.download(cycles, np.uint64, 1)[0]) / lines}
        samples: list[float] = []
        clocks: list[float | None] = []
        counts: list[float] = []
        for _ in range(session.settings.repeats):
            timing = gpu.timed(lambda: follow(_STEPS), 1)[0]
            taken = float(gpu.download(cycles, np.uint64, 1)[0]) / _STEPS
            counts.append(taken)
            clocks.append(timing.clock_hz)
            if timing.clock_hz:
                samples.append(taken / timing.clock_hz)
        if not samples:
            return Outcome(refusal="the SM clock could not be read, so cycles are no time")
        return Outcome(
            values=tuple(samples),
            clocks_hz=tuple(clocks),
            evidence={
                "cycles": float(np.median(counts)),
                "working_set_bytes": size,
                "steps": _STEPS,
                **first,
            },
        )
    finally:
        gpu.free(words, cycles)


def measure_launch(session: Session, task: Task) -> Outcome:
    """Time that one launch of an empty kernel takes at least."""
    makers: dict[str, Callable[[Gpu], Once]] = {
        "stream": _in_stream,
        "graph node": _in_graph,
        "synchronize": _with_wait,
    }
    session.gpu.kernel(_NOTHING)
    once = makers[str(task.access)](session.gpu)
    for _ in range(3):
        once()
    found = [once() for _ in range(session.settings.repeats)]
    evidence = {name: float(np.median([extra[name] for _, extra in found])) for name in found[0][1]}
    return Outcome(
        values=tuple(value for value, _ in found),
        clocks_hz=(None,) * len(found),
        evidence={"kernel": "empty, one block of 32 threads", **evidence},
    )


def _in_stream(gpu: Gpu) -> Once:
    """Launches that were all queued before the first ran: what the GPU itself needs for each."""
    options = EventOptions(timing_enabled=True)

    def once() -> tuple[float, dict[str, float]]:
        address = int(check(driver.cuMemHostAlloc(64, driver.CU_MEMHOSTALLOC_DEVICEMAP)))
        flag = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint32))
        flag[0] = 0
        try:
            gpu.start(_GATE, address, blocks=1)
            first = gpu.stream.record(options=options)
            began = time.perf_counter()
            for _ in range(_QUEUED):
                gpu.start(_NOTHING, blocks=1)
            queued_s = time.perf_counter() - began
            last = gpu.stream.record(options=options)
        finally:
            flag[0] = 1
            gpu.stream.sync()
            check(driver.cuMemFreeHost(address))
        seconds = (last - first) * MILLISECOND
        return seconds / _QUEUED, {"host_s_per_launch_from_python": queued_s / _QUEUED}

    return once


def _in_graph(gpu: Gpu) -> Once:
    """One graph of many empty kernels in a chain."""
    builder = gpu.device.create_graph_builder()
    builder.begin_building()
    config = LaunchConfig(grid=1, block=_NOTHING.threads)
    for _ in range(_GRAPH_NODES):
        launch(builder, config, gpu.kernel(_NOTHING))
    graph = builder.end_building().complete()
    options = EventOptions(timing_enabled=True)

    def once() -> tuple[float, dict[str, float]]:
        first = gpu.stream.record(options=options)
        graph.launch(gpu.stream)
        last = gpu.stream.record(options=options)
        gpu.stream.sync()
        return (last - first) * MILLISECOND / _GRAPH_NODES, {"nodes": float(_GRAPH_NODES)}

    return once


def _with_wait(gpu: Gpu) -> Once:
    """Launch, then wait until it is done, as seen by the host."""

    def once() -> tuple[float, dict[str, float]]:
        gpu.stream.sync()
        began = time.perf_counter()
        for _ in range(_WAITED):
            gpu.start(_NOTHING, blocks=1)
            gpu.stream.sync()
        return (time.perf_counter() - began) / _WAITED, {"launches": float(_WAITED)}

    return once
