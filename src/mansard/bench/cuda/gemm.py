"""Matrix products of the vendor's library, cuBLASLt by ctypes: what code that calls it attains.

The layout is the one that every type accepts: A transposed, all column-major. Values of the
enumerations are those of library_types.h and cublasLt.h.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

from mansard.bench import operands
from mansard.bench.cuda.device import Memory, check
from mansard.bench.cuda.session import Session
from mansard.bench.messages import Outcome, Task
from mansard.bench.steady import POWER_HELD
from mansard.errors import DeviceError

_WORKSPACE = 64 * 1024**2
_TRANSPOSE_A, _FAST_ACCUMULATION, _WORKSPACE_BYTES = 3, 25, 1
_PARTS_OF_SUMS = 2
_ALGORITHMS = 8
_TRIALS = 3
_CHECKED = 8
_BLOCK = 1 << 22

#: Type of A and B, compute type, scale type, type of D, bytes of an element of A and of D.
_TYPES = {
    "fp64": (1, 70, 1, 1, 8, 8),
    "fp32": (0, 68, 0, 0, 4, 4),
    "tf32": (0, 77, 0, 0, 4, 4),
    "fp16": (2, 68, 0, 2, 2, 2),
    "bf16": (14, 68, 0, 14, 2, 2),
    "e4m3": (28, 68, 0, 14, 1, 2),
    "int8": (3, 72, 10, 10, 1, 4),
}
#: What NumPy reads D as.
_OUTPUT = {
    "fp64": np.float64,
    "fp32": np.float32,
    "tf32": np.float32,
    "fp16": np.float16,
    "bf16": np.uint16,
    "e4m3": np.uint16,
    "int8": np.int32,
}
#: Largest error, relative to the sum of the magnitudes of the products.
_TOLERANCE = {
    "fp64": 2.0**-44,
    "fp32": 2.0**-16,
    "tf32": 2.0**-10,
    "fp16": 2.0**-9,
    "bf16": 2.0**-8,
    "e4m3": 2.0**-6,
    "int8": 0.0,
}


class _Heuristic(ctypes.Structure):
    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@functools.cache
def load() -> Any:
    """The library.

    Raises:
        DeviceError: it is not installed.
    """
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # noqa: PLC0415

        path = load_nvidia_dynamic_lib("cublasLt").abs_path
        return ctypes.CDLL(path)
    except Exception as error:
        raise DeviceError(
            "cuBLASLt is not installed (pip install 'mansard[gemm]'), so there is no library line"
        ) from error


@functools.cache
def _handle() -> ctypes.c_void_p:
    """The library's handle: making one takes long, and one serves all products."""
    made = ctypes.c_void_p()
    status = load().cublasLtCreate(ctypes.byref(made))
    if status != 0:
        raise DeviceError(f"cublasLtCreate returned status {status}")
    return made


class Product:
    """One product of n x n matrices: descriptors, memory and the algorithms on offer.

    Args:
        session: where.
        operand: type of A and B.
        n: side.
    """

    def __init__(self, session: Session, operand: str, n: int) -> None:
        self._library = load()
        self._gpu = session.gpu
        kind, compute, scale, out, size, out_size = _TYPES[operand]
        self._handle = _handle()
        self._description = self._new("cublasLtMatmulDescCreate", compute, scale)
        self._set(self._description, _TRANSPOSE_A, ctypes.c_int32(1))
        if operand == "e4m3":
            self._set(self._description, _FAST_ACCUMULATION, ctypes.c_int8(1))
        side = ctypes.c_uint64(n)
        lead = ctypes.c_int64(n)
        self._a = self._new("cublasLtMatrixLayoutCreate", kind, side, side, lead)
        self._d = self._new("cublasLtMatrixLayoutCreate", out, side, side, lead)
        self.memory: list[Memory] = []
        rng = session.rng()
        self._n = n
        self._block = operands.random_bytes(operand, _BLOCK, rng)
        for _ in range(2):
            self.memory.append(self._tiled(self._block, n * n * size))
        self.memory.append(self._gpu.allocate(n * n * out_size))
        self.memory.append(self._gpu.allocate(_WORKSPACE))
        one: Any = {0: ctypes.c_float(1), 1: ctypes.c_double(1), 10: ctypes.c_int32(1)}[scale]
        zero = type(one)(0)
        self._alpha, self._beta = one, zero
        self.algorithms = self._heuristics()

    def start(self, algorithm: _Heuristic) -> None:
        """Queue the product."""
        a, b, d, workspace = (memory.address for memory in self.memory)
        self._call(
            "cublasLtMatmul",
            self._handle,
            self._description,
            ctypes.byref(self._alpha),
            ctypes.c_void_p(a),
            self._a,
            ctypes.c_void_p(b),
            self._a,
            ctypes.byref(self._beta),
            ctypes.c_void_p(d),
            self._d,
            ctypes.c_void_p(d),
            self._d,
            ctypes.byref(algorithm.algorithm),
            ctypes.c_void_p(workspace),
            ctypes.c_size_t(_WORKSPACE),
            ctypes.c_void_p(int(self._gpu.stream.handle)),
        )

    def parts(self, algorithm: _Heuristic) -> int:
        """In how many parts the library says that it forms each sum over K; 1 for one sum."""
        count = ctypes.c_uint32(1)
        written = ctypes.c_size_t(0)
        self._library.cublasLtMatmulAlgoConfigGetAttribute(
            ctypes.byref(algorithm.algorithm),
            _PARTS_OF_SUMS,
            ctypes.byref(count),
            ctypes.c_size_t(ctypes.sizeof(count)),
            ctypes.byref(written),
        )
        return max(1, count.value)

    def problem(self, operand: str, index: int) -> str | None:
        """Compare elements of the product, spread over D, with sums formed on the CPU."""
        kind = np.dtype(_OUTPUT[operand])
        self._gpu.zero(self.memory[2])
        self.start(self.algorithms[index])
        n, size = self._n, _TYPES[operand][4]
        for one in range(_CHECKED):
            row, column = n * one // _CHECKED, n - 1 - n * one // _CHECKED
            a, b = (
                operands.decode(operand, self._column(which, n * size)) for which in (row, column)
            )
            got = self._gpu.download(
                self.memory[2], kind, 1, offset=(row + column * n) * kind.itemsize
            )
            value = (
                float(operands.decode("bf16", got.view(np.uint8))[0])
                if operand
                in (
                    "bf16",
                    "e4m3",
                )
                else float(got[0])
            )
            scale = float(np.abs(a) @ np.abs(b))
            if abs(value - float(a @ b)) > _TOLERANCE[operand] * scale:
                return f"wrong result: element ({row}, {column}) is {value}, on the CPU {a @ b}"
        return None

    def _column(self, index: int, size: int) -> operands.Array:
        """Bytes of one column of A or B, which hold the same data."""
        first = index * size
        return self._block[np.arange(first, first + size) % len(self._block)]

    def close(self) -> None:
        """Free everything."""
        self._gpu.free(*self.memory)
        self._library.cublasLtMatrixLayoutDestroy(self._a)
        self._library.cublasLtMatrixLayoutDestroy(self._d)
        self._library.cublasLtMatmulDescDestroy(self._description)

    def version(self) -> int:
        """Of the library."""
        self._library.cublasLtGetVersion.restype = ctypes.c_size_t
        return int(self._library.cublasLtGetVersion())

    def _heuristics(self) -> list[_Heuristic]:
        preference = self._new("cublasLtMatmulPreferenceCreate")
        size = ctypes.c_uint64(_WORKSPACE)
        self._call(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            _WORKSPACE_BYTES,
            ctypes.byref(size),
            ctypes.c_size_t(8),
        )
        found = (_Heuristic * _ALGORITHMS)()
        count = ctypes.c_int(0)
        self._call(
            "cublasLtMatmulAlgoGetHeuristic",
            self._handle,
            self._description,
            self._a,
            self._a,
            self._d,
            self._d,
            preference,
            _ALGORITHMS,
            ctypes.byref(found),
            ctypes.byref(count),
        )
        self._library.cublasLtMatmulPreferenceDestroy(preference)
        return [one for one in found[: count.value] if one.state == 0]

    def _tiled(self, block: operands.Array, size: int) -> Memory:
        """Random data of any size: one block, repeated on the device."""
        memory = self._gpu.allocate(size)
        done = min(size, len(block))
        check(driver.cuMemcpyHtoD(memory.address, block.ctypes.data, done))
        while done < size:  # the length that is filled doubles
            part = min(done, size - done)
            check(driver.cuMemcpyDtoD(memory.address + done, memory.address, part))
            done += part
        return memory

    def _new(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made

    def _set(self, description: ctypes.c_void_p, name: int, value: Any) -> None:
        self._call(
            "cublasLtMatmulDescSetAttribute",
            description,
            name,
            ctypes.byref(value),
            ctypes.c_size_t(ctypes.sizeof(value)),
        )

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise DeviceError(f"{name} returned status {status}")


def measure_gemm(session: Session, task: Task) -> Outcome:
    """The best rate of a library product over several sizes; the sizes stand in a curve."""
    operand = str(task.operand)
    best: tuple[float, int] = (0.0, 0)
    rows = []
    for n in [int(task.numbers[key]) for key in sorted(task.numbers)]:
        product = Product(session, operand, n)
        try:
            if not product.algorithms:
                continue
            flop = 2.0 * n**3
            rate, clock = session.rate(_repeated(product, 0), flop)
        finally:
            product.close()
        rows.append([float(n), rate, clock])
        best = max(best, (rate, n))
    if not rows:
        return Outcome(refusal=f"cuBLASLt has no algorithm for {operand}")
    return _best_size(session, task, best[1], rows)


def _repeated(product: Product, index: int) -> Callable[[int], None]:
    """What queues so many products, one after the other."""

    def start(iterations: int) -> None:
        for _ in range(iterations):
            product.start(product.algorithms[index])

    return start


def _best_size(session: Session, task: Task, n: int, rows: list[list[float | None]]) -> Outcome:
    operand = str(task.operand)
    product = Product(session, operand, n)
    flop = 2.0 * n**3
    try:
        speeds = []
        for index in range(len(product.algorithms)):
            timings = session.runner(_repeated(product, index))(1, _TRIALS)
            speeds.append(flop / min(timing.seconds for timing in timings))
        index = speeds.index(max(speeds))
        problem = product.problem(operand, index)
        if problem:
            return Outcome(refusal=problem)
        outcome = session.sample(
            _repeated(product, index),
            flop,
            warm_s=session.settings.warm_s,
            until=POWER_HELD,
            evidence={
                "n": n,
                "algorithm": f"{index + 1} of {len(speeds)}",
                "library": f"cuBLASLt {product.version()}",
                "result": f"equals the CPU's within {_TOLERANCE[operand]:g} in {_CHECKED} elements",
            },
        )
    finally:
        product.close()
    curve = {"columns": ["n", "flop_per_s", "sm_clock_hz"], "rows": rows}
    return Outcome(
        values=outcome.values,
        clocks_hz=outcome.clocks_hz,
        evidence=outcome.evidence,
        curves={f"library gemm {task.path}": curve},
    )
