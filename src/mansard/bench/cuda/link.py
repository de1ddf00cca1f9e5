"""Links to the host and to a neighbouring GPU, both directions, by the copy engines."""

import ctypes
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from cuda.bindings import driver

from mansard.bench.cuda.device import Gpu, Memory, check
from mansard.bench.cuda.memory import fill, filled
from mansard.bench.cuda.session import Session
from mansard.bench.cuda.topology import neighbour, uuid_of
from mansard.bench.messages import Outcome, Task
from mansard.bench.steady import Steady

_BYTES = 64 * 1024**2
#: More to a neighbour: at hundreds of GB/s a start of a few microseconds must not count.
_PEER_BYTES = 512 * 1024**2
_BLOCK_WORDS = 1 << 17
#: No clock settles here; the host and other machines on it move the rate all the time.
_LINKED = Steady(within=0.03)
_WARM_S = 0.02


def measure_link(session: Session, task: Task) -> Outcome:
    """One direction, or both at a time, of PCIe (or C2C) or to a neighbouring GPU.

    ``read`` moves data towards this GPU, ``write`` away from it, ``copy`` both ways at once.
    """
    peer = int(task.numbers.get("peer", -1))
    return _peer(session, task, peer) if peer >= 0 else _host(session, task)


def _host(session: Session, task: Task) -> Outcome:
    gpu = session.gpu
    address = int(check(driver.cuMemHostAlloc(2 * _BYTES, driver.CU_MEMHOSTALLOC_PORTABLE)))
    near = gpu.allocate(2 * _BYTES)
    try:
        # Pages that were never written all stand for one page of zeros: write before timing.
        pages = (ctypes.c_uint8 * (2 * _BYTES)).from_address(address)
        host = np.ctypeslib.as_array(pages).view(np.uint64)
        host.reshape(-1, _BLOCK_WORDS)[:] = filled(_BLOCK_WORDS)
        fill(gpu, near, "random")
        other = gpu.device.create_stream()

        def inwards(stream: Any) -> None:
            check(driver.cuMemcpyHtoDAsync(near.address, address, _BYTES, stream.handle))

        def outwards(stream: Any) -> None:
            check(
                driver.cuMemcpyDtoHAsync(
                    address + _BYTES, near.address + _BYTES, _BYTES, stream.handle
                )
            )

        start = _ways(gpu, other, str(task.access), inwards, outwards)
        start(1)
        gpu.stream.sync()
        problem = None
        if task.access in ("read", "copy"):
            got = gpu.download(near, np.uint64, 1 << 16)
            problem = None if (got == host[: 1 << 16]).all() else "wrong data at the GPU"
        if task.access in ("write", "copy"):
            here = host[_BYTES // 8 : _BYTES // 8 + (1 << 16)]
            sent = gpu.download(near, np.uint64, 1 << 16, offset=_BYTES)
            problem = problem or (None if (here == sent).all() else "wrong data at the host")
        if problem:
            return Outcome(refusal=f"wrong result: {problem}")
        ways = 2 if task.access == "copy" else 1
        return session.sample(
            start,
            float(ways * _BYTES),
            warm_s=_WARM_S,
            iterations=1,
            until=_LINKED,
            evidence={"bytes_per_direction": _BYTES, "host_memory": "pinned, written before"},
        )
    finally:
        gpu.free(near)
        check(driver.cuMemFreeHost(address))


def _peer(session: Session, task: Task, peer: int) -> Outcome:
    gpu = session.gpu
    here = gpu.device.device_id
    if not check(driver.cuDeviceCanAccessPeer(here, peer)):
        return Outcome(refusal=f"GPU {here} cannot reach GPU {peer} directly")
    near = gpu.allocate(2 * _PEER_BYTES)
    near_context = check(driver.cuCtxGetCurrent())
    far = Gpu(peer, gpu.arch)
    there = far.allocate(2 * _PEER_BYTES)
    far.zero(there)
    far.stream.sync()
    far_context = check(driver.cuCtxGetCurrent())
    driver.cuCtxEnablePeerAccess(near_context, 0)  # an error only if it is enabled already
    gpu.device.set_current()
    driver.cuCtxEnablePeerAccess(far_context, 0)
    meeting = _Meeting(gpu, far)
    try:
        fill(gpu, near, "random")

        def outwards(stream: Any) -> None:
            to, of = (there.address, far_context), (near.address, near_context)
            check(driver.cuMemcpyPeerAsync(*to, *of, _PEER_BYTES, stream.handle))

        def inwards(stream: Any) -> None:
            to = (near.address + _PEER_BYTES, near_context)
            of = (there.address + _PEER_BYTES, far_context)
            check(driver.cuMemcpyPeerAsync(*to, *of, _PEER_BYTES, stream.handle))

        # Each GPU sends, by an engine of its own: one engine takes the two directions in turn.
        starts: dict[str, Callable[[int], None]] = {
            "read": lambda _: inwards(gpu.stream),
            "write": lambda _: outwards(gpu.stream),
            "copy": lambda _: meeting.both(outwards, inwards),
        }
        start = starts[str(task.access)]
        start(1)
        inwards(gpu.stream)
        outwards(gpu.stream)
        problem = _difference(gpu, near, far, there)
        if problem:
            return Outcome(refusal=f"wrong result: {problem}")
        ways = 2 if task.access == "copy" else 1
        found = session.sample(
            start, float(ways * _PEER_BYTES), warm_s=_WARM_S, iterations=1, until=_LINKED
        )
        way = neighbour(session.sensors, here, peer, uuid_of(peer))
        best = max(found.values, default=0.0) / ways
        return msgspec.structs.replace(
            found,
            remark=way.remark(best, session.numbers.get("pcie_byte_per_s")),
            evidence={
                **found.evidence,
                "bytes_per_direction": _PEER_BYTES,
                "peer": peer,
                "link_sources": way.said,
                "result": "ends of both arrays arrived, bit for bit",
            },
        )
    finally:
        meeting.close()
        gpu.free(near)
        far.device.set_current()
        far.free(there)
        gpu.device.set_current()


def _difference(gpu: Gpu, near: Memory, far: Gpu, there: Memory) -> str | None:
    """Whether the neighbour's zeros arrived here and our random words there; None if so."""
    words = 1 << 16
    last = _PEER_BYTES - 8 * words
    came = [gpu.download(near, np.uint64, words, offset=_PEER_BYTES + at) for at in (0, last)]
    sent = [gpu.download(near, np.uint64, words, offset=at) for at in (0, last)]
    far.device.set_current()
    try:
        arrived = [far.download(there, np.uint64, words, offset=at) for at in (0, last)]
    finally:
        gpu.device.set_current()
    if any(one.any() for one in came):
        return "what came is not the neighbour's data"
    if not all((one == other).all() for one, other in zip(sent, arrived, strict=True)):
        return "what the neighbour holds is not what was sent"
    return None


class _Meeting:
    """Two streams of two GPUs that start and end a transfer together.

    An event belongs to the context of its stream, so each GPU has its own.
    """

    def __init__(self, gpu: Gpu, far: Gpu) -> None:
        self._gpu = gpu
        self._far = far
        flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        far.device.set_current()
        self._there = check(driver.cuEventCreate(flags))
        gpu.device.set_current()
        self._here = check(driver.cuEventCreate(flags))

    def both(self, outwards: Callable[[Any], None], inwards: Callable[[Any], None]) -> None:
        """Queue both directions: this GPU's stream waits for the end of the other's."""
        near, far = self._gpu.stream, self._far.stream
        check(driver.cuEventRecord(self._here, near.handle))
        check(driver.cuStreamWaitEvent(far.handle, self._here, 0))
        outwards(near)
        self._far.device.set_current()
        inwards(far)
        check(driver.cuEventRecord(self._there, far.handle))
        self._gpu.device.set_current()
        check(driver.cuStreamWaitEvent(near.handle, self._there, 0))

    def close(self) -> None:
        """Give the events back."""
        for event in (self._here, self._there):
            driver.cuEventDestroy(event)


def _ways(
    gpu: Gpu,
    other: Any,
    access: str,
    inwards: Callable[[Any], None],
    outwards: Callable[[Any], None],
) -> Callable[[int], None]:
    """What queues one transfer; both directions run in two streams that start and end together."""

    def both(_: int) -> None:
        other.wait(gpu.stream)
        inwards(gpu.stream)
        outwards(other)
        gpu.stream.wait(other)

    if access == "copy":
        return both
    one = inwards if access == "read" else outwards
    return lambda _: one(gpu.stream)
