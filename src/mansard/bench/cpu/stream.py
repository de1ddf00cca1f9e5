"""Memory kernels at work: what is run, which bytes count, and what proves it."""

import dataclasses
from typing import Any

import numpy as np

from mansard.bench.cpu.jit import Kernel
from mansard.bench.cpu.machine_code import innermost_loop
from mansard.bench.cpu.memory import Buffer
from mansard.bench.cpu.stream_kernels import STREAM_UNROLL, STREAMS, kept_vectors
from mansard.bench.cpu.team import Team, Timing
from mansard.errors import MachineError

#: Scalar of the triad, and what write kernels write. The product with a power of two is exact,
#: so that one rounding gives the same as a fused multiply-add.
SCALAR = 2.0
#: Room behind the arrays for the vectors that a read kernel gives back.
SLACK_BYTES = 4096
#: Bytes of each array that are compared after the samples.
_CHECK_BYTES = 32 << 20


@dataclasses.dataclass(slots=True)
class StreamWorkload:
    """A memory kernel on some threads, each with its own arrays.

    Arrays that one sample cannot walk through are walked in windows, one after another, so that
    what a sample touches has long left the caches.

    Attributes:
        access: key of ``STREAMS``.
        kernel: its machine code.
        team: the threads.
        buffers: memory, one for each thread that takes part.
        array_bytes: length of one array.
        width: bytes of a vector.
        vectors: of each stream in one iteration of the loop.
        window: where the next run starts, in iterations.
        last: window of the last run: first iteration, and how many.
    """

    access: str
    kernel: Kernel
    team: Team
    buffers: tuple[Buffer, ...]
    array_bytes: int
    width: int
    vectors: int = STREAM_UNROLL
    window: int = 0
    last: tuple[int, int] = (0, 0)

    def run(self, amount: int) -> tuple[float, Timing]:
        """Do about ``amount`` iterations on each thread; returns bytes moved, and times.

        Bytes are those that the program reads and writes. What a cache fetches before a store is
        not counted.
        """
        block = self.width * self.vectors
        whole = self.array_bytes // block
        iterations = min(amount, whole)
        passes = max(1, round(amount / iterations))
        if self.window + iterations > whole:
            self.window = 0
        self.last = (self.window, iterations)
        self.window += iterations
        scalar = int(np.float64(SCALAR).view(np.int64))
        arguments = [
            (
                *(buffer.address + start for start in self._starts()),
                iterations,
                passes,
                scalar,
                block,
            )
            for buffer in self.buffers
        ]
        timing = self.team.run(self.kernel, arguments)
        streams = sum(STREAMS[self.access])
        return float(streams * block * iterations * passes * len(self.buffers)), timing

    def check(self) -> str:
        """Compare what the last run left in memory with numpy; returns the evidence.

        Raises:
            MachineError: they differ.
        """
        kind = self.access.removesuffix(" nt")
        length = min(self.last[1] * self.width * self.vectors, _CHECK_BYTES)
        for buffer in self.buffers:
            out, first, second = self._starts()
            if kind == "read":
                # The kernel gives back the last vectors that it read.
                kept = kept_vectors(self.vectors)
                length = kept * self.width
                first += (self.last[1] * self.vectors - kept) * self.width
            found, one, two = (
                buffer.view(np.float64, start, length // 8) for start in (out, first, second)
            )
            if kind == "triad":
                correct = np.array_equal(found, one + SCALAR * two)
            elif kind == "write":
                correct = bool(np.all(found == SCALAR))
            else:
                correct = np.array_equal(found, one)
            if not correct:
                raise MachineError(f"The {self.access} kernel left wrong values in memory.")
        return f"{length} bytes of each thread equal to numpy"

    def _starts(self) -> tuple[int, int, int]:
        """Byte offsets of the window in the written, the first and the second read array."""
        reads, writes = STREAMS[self.access]
        offset = self.last[0] * self.width * self.vectors
        arrays = [index * self.array_bytes + offset for index in range(reads + writes)]
        if not writes:
            return self.array_bytes, arrays[0], arrays[0]
        return arrays[0], arrays[1 if reads else 0], arrays[-1]


def array_bytes(
    footprint_bytes: int, access: str, width: int, *, vectors: int = STREAM_UNROLL
) -> int:
    """Length of one array when all arrays of an access together fill a footprint."""
    block = width * vectors
    return max(block, footprint_bytes // sum(STREAMS[access]) // block * block)


def check_code(
    access: str, kernel: Kernel, architecture: str, width: int, *, vectors: int = STREAM_UNROLL
) -> dict[str, Any]:
    """Check the loop of a memory kernel in its machine code; returns the evidence.

    Raises:
        MachineError: its loads and stores are not what the byte count says.
    """
    loop = innermost_loop(kernel.assembly, architecture)
    reads, writes = (count * width * vectors for count in STREAMS[access])
    found = loop.vector_bytes(width)
    if found != (reads, writes) or loop.stack_operands:
        raise MachineError(
            f"The compiler reads {found[0]} and writes {found[1]} bytes an iteration of the"
            f" {access} kernel, not {reads} and {writes}: the count of bytes would be wrong."
        )
    return {
        "read_bytes_per_iteration": reads,
        "written_bytes_per_iteration": writes,
        "loop_instructions": len(loop.instructions),
        "spills": loop.stack_operands,
    }
