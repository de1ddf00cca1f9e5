"""The few calls of the CUDA driver that a collector needs: contexts, waiting, facts of the GPU."""

import contextlib
import ctypes
import functools
import uuid
from typing import Any

from mansard.errors import DeviceError
from mansard.model.device import DeviceFacts
from mansard.units import unit_factor

_KHZ = unit_factor("khz")[0]
#: Numbers of CUdevice_attribute.
_CLOCK_KHZ, _SM_COUNT, _MEMORY_CLOCK_KHZ, _BUS_BITS, _L2_BYTES = 13, 16, 36, 37, 38
_MAJOR, _MINOR = 75, 76
_NO_DEVICE, _INVALID_CONTEXT = 100, 201


class Driver:
    """The CUDA driver of this process."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        self._run("cuInit", 0)

    @property
    def cuda_version(self) -> tuple[int, int]:
        """Highest CUDA version that the driver serves."""
        number = self._int("cuDriverGetVersion")
        return number // 1000, number % 1000 // 10

    @property
    def device_count(self) -> int:
        """GPUs that this process may use."""
        return self._int("cuDeviceGetCount")

    def current_context(self) -> int | None:
        """Handle of the context that is current on this thread, or None."""
        handle = ctypes.c_void_p()
        self._run("cuCtxGetCurrent", ctypes.byref(handle))
        return handle.value

    def current_device(self) -> int | None:
        """Index of the GPU of the current context, or None without one."""
        if self.current_context() is None:
            return None
        return self._int("cuCtxGetDevice")

    @contextlib.contextmanager
    def context(self, device: int) -> Any:
        """Make the primary context of a GPU current for the block, and give its handle."""
        handle = ctypes.c_void_p()
        self._run("cuDevicePrimaryCtxRetain", ctypes.byref(handle), device)
        self._run("cuCtxPushCurrent_v2", handle)
        try:
            yield handle.value
        finally:
            self._run("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
            self._run("cuDevicePrimaryCtxRelease_v2", device)

    def synchronize(self, device: int) -> None:
        """Wait until the GPU has done all that was submitted."""
        with self.context(device):
            self._run("cuCtxSynchronize")

    def is_active(self, device: int) -> bool:
        """Whether the program has set up this GPU's primary context already."""
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self._run("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)

    def facts(self, device: int, chip: str | None = None) -> DeviceFacts:
        """What the driver says of a GPU."""
        name = ctypes.create_string_buffer(256)
        self._run("cuDeviceGetName", name, len(name), device)
        identity = ctypes.create_string_buffer(16)
        self._run("cuDeviceGetUuid_v2", identity, device)
        memory = ctypes.c_size_t()
        self._run("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        return DeviceFacts(
            name=name.value.decode(errors="replace"),
            chip=chip,
            compute_capability=".".join(map(str, self.compute_capability(device))),
            sm_count=self._attribute(_SM_COUNT, device),
            sm_clock_max_hz=self._attribute(_CLOCK_KHZ, device) * _KHZ,
            dram_clock_hz=self._attribute(_MEMORY_CLOCK_KHZ, device) * _KHZ or None,
            dram_bus_bits=self._attribute(_BUS_BITS, device),
            l2_bytes=self._attribute(_L2_BYTES, device),
            dram_bytes=memory.value,
            uuid=f"GPU-{uuid.UUID(bytes=identity.raw)}",
        )

    def compute_capability(self, device: int) -> tuple[int, int]:
        """Major and minor number."""
        return self._attribute(_MAJOR, device), self._attribute(_MINOR, device)

    def _attribute(self, number: int, device: int) -> int:
        value = ctypes.c_int()
        self._run("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def _int(self, function: str) -> int:
        value = ctypes.c_int()
        self._run(function, ctypes.byref(value))
        return value.value

    def _run(self, function: str, *arguments: Any) -> None:
        code = getattr(self._functions, function)(*arguments)
        if code == _NO_DEVICE:
            raise DeviceError(
                "the driver sees no GPU: check 'nvidia-smi' and CUDA_VISIBLE_DEVICES", slug="no-gpu"
            )
        if code:
            text = ctypes.c_char_p()
            self._functions.cuGetErrorString(code, ctypes.byref(text))
            reason = text.value.decode(errors="replace") if text.value else f"error {code}"
            raise DeviceError(f"the CUDA driver refused {function}: {reason} ({code})")


@functools.cache
def load_driver() -> Driver:
    """Load libcuda.

    Raises:
        DeviceError: there is no NVIDIA driver or no GPU.
    """
    try:
        functions = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(
            "no NVIDIA driver was found (libcuda.so.1): counters need an NVIDIA GPU",
            slug="no-gpu",
        ) from error
    return Driver(functions)
