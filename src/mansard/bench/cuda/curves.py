"""Measured series: bandwidth over the size of the working set, and rate over intensity."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mansard.bench.cuda.device import Memory
from mansard.bench.cuda.memory import NULL, fill, part_bytes, start_cache
from mansard.bench.cuda.session import Session
from mansard.bench.cuda.stream import stream_arrays
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task

_GROUP_BYTES = 64
#: Bits of the constant that the statements add: -1.85 keeps x*x + c bounded.
_CONSTANTS = {
    "fp64": np.float64(-1.85),
    "fp32": np.float32(-1.85),
    "fp16x2": np.uint32(0xBF66BF66),
    "bf16x2": np.uint32(0xBFEDBFED),
    "bf16": np.uint32(0x3F803F80),
}


def measure_working_set(session: Session, task: Task) -> Outcome:
    """Read bandwidth of sets from a few KiB an SM to many times L2, each SM its own part."""
    gpu = session.gpu
    arrays = stream_arrays(session, "random")
    data = arrays.memory[0]
    rows = []
    for variant in task.variants:
        size = part_bytes(variant) * variant.blocks * gpu.sms
        if gpu.resident(variant) < variant.blocks or size > data.size:
            continue
        rate, clock = session.rate(
            _reader(session, variant, data), variant.work * variant.blocks * gpu.sms
        )
        rows.append([float(size), float(size // gpu.sms), rate, clock])
    curve = {
        "columns": ["bytes", "bytes_per_sm", "byte_per_s", "sm_clock_hz"],
        "meaning": f"repeated reads, each SM its own part of the set, ld.global."
        f"{task.variants[0].defines['OPERATOR'].strip(chr(34))}",
        "rows": rows,
    }
    return Outcome(curves={task.name: curve})


def _reader(session: Session, variant: Variant, data: Memory) -> Callable[[int], None]:
    return lambda iterations: start_cache(session.gpu, variant, data, iterations)


def measure_intensity(session: Session, task: Task) -> Outcome:
    """Rate of kernels that work more and more on each byte they read from one level."""
    gpu = session.gpu
    rows = []
    l2 = task.level == "l2"
    size = int(task.numbers["bytes"])
    data = gpu.allocate(size) if l2 else stream_arrays(session, "random").memory[0]
    try:
        fill(gpu, data, "random")
        for variant in task.variants:
            resident = gpu.resident(variant)
            blocks = gpu.sms * max(1, min(resident, variant.blocks))
            groups = min(size, data.size) // (_GROUP_BYTES * variant.threads * blocks)
            if groups == 0:
                continue
            start = _worker(
                session,
                variant,
                data,
                blocks=blocks,
                groups=groups,
                constant=_CONSTANTS[str(task.operand)],
            )
            moved = float(groups * _GROUP_BYTES * variant.threads * blocks)
            intensity = variant.work / _GROUP_BYTES
            rate, clock = session.rate(start, moved * intensity)
            rows.append([intensity, rate, rate / intensity, clock])
    finally:
        if l2:
            gpu.free(data)
        elif session.arrays is not None:
            session.arrays.arm = None
    curve = {
        "columns": ["flop_per_byte", "flop_per_s", "byte_per_s", "sm_clock_hz"],
        "meaning": f"{task.path} on data read from {task.level}, {task.instruction}",
        "rows": rows,
    }
    return Outcome(curves={task.name: curve})


def _worker(
    session: Session, variant: Variant, data: Memory, *, blocks: int, groups: int, constant: Any
) -> Callable[[int], None]:

    def start(iterations: int) -> None:
        session.gpu.start(
            variant,
            data,
            NULL,
            constant,
            np.uint64(groups),
            np.int32(iterations),
            blocks=blocks,
        )

    return start
