"""Links to the host and to a neighbouring GPU, both directions, by the copy engines."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

from mansard.bench.cuda.device import Gpu, check
from mansard.bench.cuda.memory import fill, filled
from mansard.bench.cuda.session import Session
from mansard.bench.messages import Outcome, Task

_BYTES = 64 * 1024**2
_BLOCK_WORDS = 1 << 17
_WARM_S = 0.02


def measure_link(session: Session, task: Task) -> Outcome:
    """One direction, or both at a time, of PCIe (or C2C) or of NVLink.

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
            evidence={"bytes_per_direction": _BYTES, "host_memory": "pinned, written before"},
        )
    finally:
        gpu.free(near)
        check(driver.cuMemFreeHost(address))


def _peer(session: Session, task: Task, peer: int) -> Outcome:
    gpu = session.gpu
    possible = check(driver.cuDeviceCanAccessPeer(gpu.device.device_id, peer))
    if not possible:
        return Outcome(refusal=f"GPU {gpu.device.device_id} cannot reach GPU {peer} directly")
    near = gpu.allocate(2 * _BYTES)
    far = Gpu(peer, gpu.arch)
    there = far.allocate(2 * _BYTES)
    far.zero(there)
    far.stream.sync()
    far_context = check(driver.cuCtxGetCurrent())
    gpu.device.set_current()
    near_context = check(driver.cuCtxGetCurrent())
    driver.cuCtxEnablePeerAccess(far_context, 0)  # an error only if it is enabled already
    try:
        fill(gpu, near, "random")
        other = gpu.device.create_stream()

        def outwards(stream: Any) -> None:
            check(
                driver.cuMemcpyPeerAsync(
                    there.address,
                    far_context,
                    near.address,
                    near_context,
                    _BYTES,
                    stream.handle,
                )
            )

        def inwards(stream: Any) -> None:
            check(
                driver.cuMemcpyPeerAsync(
                    near.address + _BYTES,
                    near_context,
                    there.address + _BYTES,
                    far_context,
                    _BYTES,
                    stream.handle,
                )
            )

        start = _ways(gpu, other, str(task.access), inwards, outwards)
        outwards(gpu.stream)
        inwards(gpu.stream)
        got = gpu.download(near, np.uint64, 1 << 16, offset=_BYTES)
        if got.any():
            return Outcome(refusal="wrong result: the copy from the neighbour is not its data")
        ways = 2 if task.access == "copy" else 1
        return session.sample(
            start,
            float(ways * _BYTES),
            warm_s=_WARM_S,
            iterations=1,
            evidence={"bytes_per_direction": _BYTES, "peer": peer},
        )
    finally:
        gpu.free(near)
        far.device.set_current()
        far.free(there)
        gpu.device.set_current()


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
