"""Everything that a measurement needs on a real machine: threads, code, memory."""

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

from mansard.bench.cpu import compute, stream
from mansard.bench.cpu.compute_kernels import compute_module
from mansard.bench.cpu.jit import Kernel, Target, compile_kernel, host_target
from mansard.bench.cpu.memory import Buffer
from mansard.bench.cpu.processor import Processor
from mansard.bench.cpu.recipes import Recipe
from mansard.bench.cpu.sampling import Workload
from mansard.bench.cpu.stream_kernels import STREAM_UNROLL, STREAMS, stream_module
from mansard.bench.cpu.team import Team
from mansard.errors import DeviceError

# Linux on x86-64: a process must ask before it may use tile registers (arch_prctl(2)).
_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel that is ready, checked in its machine code.

    Attributes:
        whole: on all threads.
        alone: on one thread; None where there is only one.
        evidence: what was checked.
        check: compares the results after the samples; returns the evidence or raises.
    """

    whole: Workload
    alone: Workload | None
    evidence: dict[str, Any]
    check: Callable[[], str]


class Rig:
    """Threads, machine code and memory of one measurement.

    Attributes:
        team: pinned threads.
        processor: what they run on.
    """

    def __init__(self, processor: Processor, team: Team) -> None:
        self.team = team
        self.processor = processor
        self._target: Target | None = None
        self._kernels: dict[str, Kernel] = {}
        self._buffers: tuple[Buffer, ...] = ()

    def compute(self, recipe: Recipe) -> Prepared:
        """Prepare a compute kernel.

        Raises:
            DeviceError: no compiler, or the system does not allow the instruction.
            MachineError: wrong machine code or wrong result.
        """
        if recipe.form == "tile":
            _ask_for_tiles()
        architecture = self.processor.architecture
        kernel = self._compiled(compute_module(recipe, architecture))
        code = compute.check_code(recipe, kernel, architecture)
        result = compute.check_result(recipe, kernel, self.team)
        threads = len(self.team.cpus)
        return Prepared(
            whole=compute.compute_workload(recipe, kernel, self.team, threads),
            alone=compute.compute_workload(recipe, kernel, self.team, 1) if threads > 1 else None,
            evidence={"machine_code": code},
            check=lambda: result,
        )

    def clock(self, recipe: Recipe, additions: int) -> Workload:
        """Prepare the clock under the load of a compute kernel."""
        text = compute_module(recipe, self.processor.architecture, additions)
        kernel = self._compiled(text)
        threads = len(self.team.cpus)
        work = compute.compute_workload(recipe, kernel, self.team, threads)
        return compute.ClockWorkload(additions, work)

    def reserve(self, each_bytes: int, first_bytes: int) -> None:
        """Take memory for every thread and write it, each thread its own.

        Args:
            each_bytes: for every thread.
            first_bytes: for the first, which also works alone.
        """
        sizes = [max(each_bytes, first_bytes), *[each_bytes] * (len(self.team.cpus) - 1)]
        self._buffers = tuple(Buffer(size + stream.SLACK_BYTES) for size in sizes)
        self.team.each(lambda place: self._buffers[place].fill(place))

    def stream(
        self,
        access: str,
        footprint_bytes: int,
        alone_bytes: int,
        *,
        vectors: int = STREAM_UNROLL,
    ) -> Prepared:
        """Prepare a memory kernel.

        Args:
            access: key of ``STREAMS``.
            footprint_bytes: of each thread, all arrays together.
            alone_bytes: the same when one thread works alone.
            vectors: of each stream in one iteration of the loop.

        Raises:
            DeviceError: no compiler.
            MachineError: wrong machine code.
        """
        width = self.vector_bytes
        architecture = self.processor.architecture
        kernel = self._compiled(stream_module(access, architecture, width, vectors=vectors))
        code = stream.check_code(access, kernel, architecture, width, vectors=vectors)

        def bound(footprint: int, threads: int) -> stream.StreamWorkload:
            length = stream.array_bytes(footprint, access, width, vectors=vectors)
            return stream.StreamWorkload(
                access, kernel, self.team, self._buffers[:threads], length, width, vectors
            )

        threads = len(self.team.cpus)
        whole = bound(footprint_bytes, threads)
        reads, writes = STREAMS[access]
        return Prepared(
            whole=whole,
            alone=bound(alone_bytes, 1) if threads > 1 else None,
            evidence={
                "machine_code": code,
                "vector_bytes": width,
                "arrays_read": reads,
                "arrays_written": writes,
                "array_bytes": whole.array_bytes,
                "footprint_bytes_per_thread": footprint_bytes,
            },
            check=whole.check,
        )

    @property
    def vector_bytes(self) -> int:
        """Widest vector of loads and stores."""
        flags = self.processor.flags
        if self.processor.architecture == "aarch64":
            return 16
        return 64 if "avx512f" in flags else 32 if "avx" in flags else 16

    def _compiled(self, text: str) -> Kernel:
        if self._target is None:
            self._target = host_target()
        if text not in self._kernels:
            self._kernels[text] = compile_kernel(text, self._target)
        return self._kernels[text]


def _ask_for_tiles() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA):
        raise DeviceError(
            "The system does not let this process use tile registers"
            f" (arch_prctl: error {ctypes.get_errno()}).",
            slug="cpu-tiles",
        )
