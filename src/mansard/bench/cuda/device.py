"""The GPU through cuda.core: kernels, memory, timed launches with the SM clock while they ran."""

import dataclasses
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver
from cuda.core import (
    Device,
    Event,
    EventOptions,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Stream,
    launch,
)

from mansard.bench.cuda.compile import compile_variant
from mansard.bench.kernels import Variant
from mansard.bench.steady import Timing
from mansard.errors import DeviceError
from mansard.units import unit_factor

#: Slots of the clock stamps: more than any GPU has SM identifiers.
_SLOTS = 512
_SANE_HZ = (unit_factor("mhz")[0] * 50, unit_factor("ghz")[0] * 5)
_NANOSECOND = unit_factor("nsecond")[0]
#: Events tell their distance in milliseconds.
MILLISECOND = unit_factor("msecond")[0]

#: Blocks of 1 024 threads, more than fit on the GPU at once: every SM gets one.
_STAMP = Variant(source="clock.cu", entry="clock_stamp", threads=1024, blocks=2)


def check(result: tuple[Any, ...]) -> Any:
    """The value of a driver call.

    Raises:
        DeviceError: the call failed; says which error.
    """
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(status)
        _, text = driver.cuGetErrorString(status)
        raise DeviceError(f"{_text(name)}: {_text(text)}")
    return values[0] if values else None


@dataclasses.dataclass(slots=True)
class Memory:
    """Device memory, freed by ``Gpu.free``."""

    address: int
    size: int


class SmClocks(NamedTuple):
    """Clocks of the SMs: the median, (fastest - slowest) / median, the slowest; None if unknown."""

    median_hz: float | None = None
    spread: float | None = None
    slowest_hz: float | None = None


class Gpu:
    """One open device with one stream.

    Attributes:
        stream: everything runs in it.
        sms: number of multiprocessors.
    """

    def __init__(self, index: int, arch: str = "") -> None:
        self.device = Device(index)
        self.device.set_current()
        self.stream: Stream = self.device.create_stream()
        self.arch = arch
        self.sms = self.attribute("MULTIPROCESSOR_COUNT")
        self._kernels: dict[Variant, Kernel] = {}
        self._codes: dict[tuple[str, tuple[tuple[str, str], ...], str], ObjectCode] = {}
        self._stamps: Memory | None = None

    def attribute(self, name: str) -> int:
        """A driver attribute, by its name without the prefix."""
        key = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(driver.cuDeviceGetAttribute(key, self.device.device_id)))

    # Kernels ------------------------------------------------------------------------------------

    def kernel(self, variant: Variant) -> Kernel:
        """The loaded kernel of a variant, with its shared memory and carve-out set."""
        found = self._kernels.get(variant)
        if found is not None:
            return found
        arch = f"{self.arch}a" if variant.feature else self.arch
        key = (variant.source, variant.macros, arch)
        if key not in self._codes:
            code = compile_variant(variant, arch)
            load = ObjectCode.from_ptx if arch.startswith("compute_") else ObjectCode.from_cubin
            self._codes[key] = load(code)
        kernel = self._codes[key].get_kernel(variant.entry)
        attribute = driver.CUfunction_attribute
        if variant.shared_bytes > 48 * 1024:
            self._set(
                kernel,
                attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                variant.shared_bytes,
            )
        if variant.carveout is not None:
            self._set(
                kernel,
                attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                variant.carveout,
            )
        self._kernels[variant] = kernel
        return kernel

    def _set(self, kernel: Kernel, attribute: Any, value: int) -> None:
        check(driver.cuKernelSetAttribute(attribute, value, kernel.handle, self.device.device_id))

    def resident(self, variant: Variant) -> int:
        """Blocks of a variant that one SM holds at a time."""
        kernel = self.kernel(variant)
        return int(
            kernel.occupancy.max_active_blocks_per_multiprocessor(
                variant.threads, variant.shared_bytes
            )
        )

    def start(
        self, variant: Variant, *arguments: Any, blocks: int | tuple[int, int] | None = None
    ) -> None:
        """Queue one launch of a variant; by default one wave of its blocks on every SM.

        Args:
            variant: what to launch.
            arguments: memory and addresses (int); all else as NumPy scalars of the right size.
            blocks: size of the grid.
        """
        config = LaunchConfig(
            grid=blocks if blocks is not None else variant.blocks * self.sms,
            block=variant.threads,
            shmem_size=variant.shared_bytes,
        )
        launch(
            self.stream,
            config,
            self.kernel(variant),
            *(a.address if isinstance(a, Memory) else a for a in arguments),
        )

    # Memory -------------------------------------------------------------------------------------

    def allocate(self, size: int) -> Memory:
        """Plain device memory."""
        return Memory(int(check(driver.cuMemAlloc(size))), size)

    def free(self, *blocks: Memory | None) -> None:
        """Give memory back, once the stream is idle."""
        self.stream.sync()
        for block in blocks:
            if block is not None and block.address:
                check(driver.cuMemFree(block.address))
                block.address = 0

    def upload(self, array: np.ndarray[Any, Any]) -> Memory:
        """Device memory with the content of an array."""
        flat = np.ascontiguousarray(array)
        block = self.allocate(max(16, flat.nbytes))
        check(driver.cuMemcpyHtoD(block.address, flat.ctypes.data, flat.nbytes))
        check(driver.cuCtxSynchronize())  # the copy may still be on its way when the call returns
        return block

    def download(
        self, block: Memory, dtype: Any, count: int, *, offset: int = 0
    ) -> np.ndarray[Any, Any]:
        """The content of device memory, from a byte offset, once the stream is idle."""
        self.stream.sync()
        array = np.empty(count, dtype)
        check(driver.cuMemcpyDtoH(array.ctypes.data, block.address + offset, array.nbytes))
        return array

    def zero(self, block: Memory) -> None:
        """Queue filling with zeros."""
        check(driver.cuMemsetD8Async(block.address, 0, block.size, self.stream.handle))

    def free_bytes(self) -> int:
        """Device memory that is not in use."""
        return int(check(driver.cuMemGetInfo()))

    # Time ---------------------------------------------------------------------------------------

    def timed(
        self,
        start: Callable[[], None],
        repeats: int,
        *,
        meanwhile: Callable[[Event], None] | None = None,
    ) -> list[Timing]:
        """Run something ``repeats`` times in a row; the time and SM clock of each.

        Every SM's cycle counter and nanosecond timer are stamped before and after each run; the
        clock of a run is the median over SMs. The time is that between two events around the run
        alone.

        Args:
            start: queues the work.
            repeats: how often.
            meanwhile: called with the event after the last run, while the GPU works.
        """
        options = EventOptions(timing_enabled=True)
        events = []
        for repeat in range(repeats):
            self._stamp(2 * repeat, repeats)
            first = self.stream.record(options=options)
            start()
            last = self.stream.record(options=options)
            self._stamp(2 * repeat + 1, repeats)
            events.append((first, last))
        if meanwhile is not None:
            meanwhile(events[-1][1])
        self.stream.sync()
        clocks = self._clocks(repeats)
        return [
            Timing((last - first) * MILLISECOND, *clock)
            for (first, last), clock in zip(events, clocks, strict=True)
        ]

    def _stamp(self, index: int, repeats: int) -> None:
        size = 2 * repeats * _SLOTS * 16
        if self._stamps is None or self._stamps.size < size:
            self.free(self._stamps)
            self._stamps = self.allocate(size)
        if index == 0:
            self.zero(self._stamps)
        self.start(_STAMP, self._stamps.address + index * _SLOTS * 16, np.uint32(_SLOTS))

    def _clocks(self, repeats: int) -> list[SmClocks]:
        if self._stamps is None:
            return [SmClocks()] * repeats
        stamps = self.download(self._stamps, np.uint64, 2 * repeats * _SLOTS * 2)
        return [sm_clock(pair) for pair in stamps.reshape(repeats, 2, _SLOTS, 2)]


def sm_clock(stamps: np.ndarray[Any, Any]) -> SmClocks:
    """Clocks of the SMs between two sets of stamps.

    Args:
        stamps: shape (2, slots, 2): before and after; per SM, cycles and nanoseconds; 0 if unset.
    """
    before, after = stamps[0].astype(np.int64), stamps[1].astype(np.int64)
    valid = (before[:, 1] > 0) & (after[:, 1] > before[:, 1])
    if not valid.any():
        return SmClocks()
    cycles = (after[valid, 0] - before[valid, 0]).astype(float)
    seconds = (after[valid, 1] - before[valid, 1]).astype(float) * _NANOSECOND
    rates = [rate for rate in (cycles / seconds).tolist() if _SANE_HZ[0] < rate < _SANE_HZ[1]]
    if not rates:
        return SmClocks()
    median = statistics.median(rates)
    return SmClocks(median, (max(rates) - min(rates)) / median, min(rates))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
