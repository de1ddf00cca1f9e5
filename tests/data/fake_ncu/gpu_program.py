"""A program that "uses the GPU": loads the injected library as the driver would, and runs kernels.

Its CUPTI is the stub, so what it ran is what the trace must hold.
"""

import ctypes
import os
import sys

from mansard.collect.cupti import activity, records


def start_driver():
    injected = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    assert injected.InitializeInjection() == 1
    assert injected.InitializeInjection() == 1  # called again: nothing more happens


def add(layout, kind, **fields):
    record = layout(kind=kind, **fields)
    # The library is loaded already: this is the same one.
    stub = ctypes.CDLL(os.environ["MANSARD_TRACE_CUPTI"])
    stub.stub_add(ctypes.byref(record), ctypes.c_size_t(ctypes.sizeof(record)))


def call(number, at, *, kind=activity.RUNTIME, cbid=211):
    add(records.ApiRecord, kind, cbid=cbid, start=at, end=at + 5, correlationId=number)


def kernel(number, name, start, end, *, grid=4, block=128, shared=0, graph=0):
    add(
        records.KernelRecord,
        activity.KERNEL,
        name=name,
        start=start,
        end=end,
        deviceId=0,
        streamId=7,
        correlationId=number,
        gridX=grid,
        gridY=1,
        gridZ=1,
        blockX=block,
        blockY=1,
        blockZ=1,
        dynamicSharedMemory=shared,
        graphId=graph,
        graphNodeId=graph,
    )


def mark(number, name, begin, end, domain=None):
    add(
        records.MarkerRecord,
        activity.MARKER,
        flags=2,
        timestamp=begin,
        id=number,
        name=name,
        domain=domain,
    )
    add(
        records.MarkerRecord,
        activity.MARKER,
        flags=4,
        timestamp=end,
        id=number,
        name=None,
        domain=domain,
    )


def main():
    print("program output", sys.argv[1:], flush=True)
    start_driver()
    mark(1, b"step", 1000, 9000)
    mark(2, b"NCCL:all_reduce", 900, 9500, b"NCCL")
    call(1, 500)
    kernel(1, b"warmup", 600, 700)
    call(90, 800, kind=activity.DRIVER, cbid=308)
    call(2, 1100)
    call(2, 1110, kind=activity.DRIVER)
    # Both start late, the second call before the first on the GPU.
    kernel(3, b"_Z3mulPf", 2000, 2050, grid=8, shared=4096)
    call(3, 1200)
    kernel(2, b"_Z3addPf", 3000, 3100)
    add(
        records.CopyRecord,
        activity.MEMCPY,
        copyKind=1,
        bytes=4096,
        start=3200,
        end=3300,
        streamId=7,
        correlationId=4,
    )
    call(4, 1300)
    call(91, 9600, kind=activity.DRIVER, cbid=309)
    kernel(5, b"_Z3addPf", 9800, 9900)
    call(5, 9700)
    sys.exit(int(os.environ.get("PROGRAM_CODE", "0")))


main()
