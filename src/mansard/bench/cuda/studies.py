"""Rates that programs attain in a given form: FP16 by four kernels, a product by plain WMMA."""

from collections.abc import Callable

import numpy as np

from mansard.bench import operands
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant
from mansard.bench.messages import Outcome, Task

_WARM_S = 0.05
#: Bytes of the array of the FP16 study: it stays in L2 on every part.
_STUDY_BYTES = 4 * 1024**2
_ONE_HALF, _QUARTER = 0x3800, 0x3400
_CHECKED = 4


def measure_half(session: Session, task: Task) -> Outcome:
    """One of the four FP16 kernels; see ``half.cu``."""
    gpu = session.gpu
    variant = task.variants[0]
    version = variant.number("VERSION")
    packed = version > 1
    kind = np.uint32 if packed else np.uint16
    count = _STUDY_BYTES // np.dtype(kind).itemsize
    index = np.uint32 if version == 4 else np.uint64
    factor, addend = (kind(code * 0x10001 if packed else code) for code in (_ONE_HALF, _QUARTER))
    data = gpu.upload(np.full(count, kind(0x3C003C00 if packed else 0x3C00)))
    try:

        def start(iterations: int) -> None:
            gpu.start(variant, data, factor, addend, index(count), np.int32(iterations))

        pairs = variant.number("PAIRS")
        start(1)
        stored = gpu.download(data, np.float16, _STUDY_BYTES // 2)
        # x/2 + 1/4 from 1 tends to 1/2; in FP16 every step is exact until it stays there.
        expected = np.float16(1.0)
        for _ in range(pairs):
            expected = np.float16(expected * np.float16(0.5) + np.float16(0.25))
        wrong = int(np.count_nonzero(stored != expected))
        if wrong:
            return Outcome(refusal=f"wrong result: {wrong} of {len(stored)} elements differ")
        lanes = 2 if packed else 1
        return session.sample(
            start,
            2.0 * pairs * lanes * count,
            warm_s=_WARM_S,
            evidence={
                "result": f"equals the CPU's: all {len(stored)} elements",
                "geometry": f"{variant.blocks} x {variant.threads} threads per SM",
                "flop_per_byte": 2.0 * pairs * lanes / (2 * np.dtype(kind).itemsize),
            },
        )
    finally:
        gpu.free(data)


def measure_wmma_product(session: Session, task: Task) -> Outcome:
    """A product by WMMA straight from global memory, as the first programs did it."""
    gpu = session.gpu
    variant = task.variants[0]
    n = int(task.numbers["n"])
    rng = session.rng()
    values = rng.integers(-1, 2, (2, n, n), dtype=np.int8)
    bytes_of = [operands.encode("fp16", matrix) for matrix in values]
    a, b = (gpu.upload(matrix) for matrix in bytes_of)
    d = gpu.allocate(n * n * 4)
    try:
        start = _product(session, variant, n, (a, b, d))
        gpu.zero(d)
        start(1)
        for one in range(_CHECKED):
            row = (n - 1) * one // (_CHECKED - 1)
            stored = gpu.download(d, np.float32, n, offset=row * n * 4)
            expected = values[0][row].astype(np.int32) @ values[1].T.astype(np.int32)
            if not (stored == expected).all():
                return Outcome(refusal=f"wrong result: row {row} differs from the CPU's")
        return session.sample(
            start,
            2.0 * n**3,
            warm_s=_WARM_S,
            iterations=1,
            evidence={"n": n, "result": f"equals the CPU's: {_CHECKED} rows"},
        )
    finally:
        gpu.free(a, b, d)


def _product(
    session: Session, variant: Variant, n: int, memory: tuple[object, object, object]
) -> Callable[[int], None]:
    def start(_: int) -> None:
        session.gpu.start(variant, *memory, np.int32(n), blocks=(n // 64, n // 128))

    return start
