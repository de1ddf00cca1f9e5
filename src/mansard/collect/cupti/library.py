"""Finds and loads libcupti, and turns every failed call into one of our errors."""

import contextlib
import ctypes
import functools
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mansard.collect.cupti.driver import load_driver
from mansard.collect.cupti.failures import failure
from mansard.collect.cupti.params import ProfilerInitialize
from mansard.errors import CollectError, DeviceError

#: The range profiler that we use came with CUPTI of CUDA 12.6, whose own number is 24.
_NEEDED_SYMBOL = "cuptiRangeProfilerEnable"
_WHEEL_FOLDERS = ("cu13/lib", "cuda_cupti/lib", "cu12/lib")
_TOOLKIT_FOLDERS = ("extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib")
_LIBRARY = re.compile(r"libcupti\.so(\.\d+)*$")
_INSTALL = "install it with 'pip install mansard[cuda]' (or nvidia-cuda-cupti)"


class Cupti:
    """A loaded libcupti.

    Attributes:
        path: the file.
        version: CUDA version that it belongs to, e.g. ``"13.0"``.
    """

    def __init__(self, functions: Any, path: str) -> None:
        self._functions = functions
        self.path = path
        # Some versions answer no call at all, not even this, where there is no driver.
        number = ctypes.c_uint32()
        known = functions.cuptiGetVersion(ctypes.byref(number)) == 0
        self.version = _version_text(number.value) if known else "unknown"

    def call(self, function: str, params: Any) -> Any:
        """Call a function that takes one argument block, and give the block back.

        Raises:
            MansardError: the call failed; the message has the remedy.
        """
        params.structSize = params.size
        self._check(function, getattr(self._functions, function)(ctypes.byref(params)))
        return params

    def run(self, function: str, *arguments: Any) -> None:
        """Call a function with plain arguments."""
        self._check(function, getattr(self._functions, function)(*arguments))

    def get(self, function: str, value: Any) -> Any:
        """Call a function that fills one value, and give it back."""
        self._check(function, getattr(self._functions, function)(ctypes.byref(value)))
        return value

    def initialize_profiler(self) -> None:
        """Start the profiler side of CUPTI; may be called again."""
        self.call("cuptiProfilerInitialize", ProfilerInitialize())

    def timestamp_ns(self) -> int:
        """Now, on the clock of the activity records."""
        stamp = ctypes.c_uint64()
        self._functions.cuptiGetTimestamp(ctypes.byref(stamp))
        return stamp.value

    def next_record(self, buffer: int, valid: int, record: ctypes.c_void_p) -> int:
        """Step to the next activity record of a buffer; the result code tells when it ends."""
        code = self._functions.cuptiActivityGetNextRecord(
            ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
        )
        return int(code)

    def _check(self, function: str, code: int) -> None:
        if not code:
            return
        text = ctypes.c_char_p()
        known = self._functions.cuptiGetErrorMessage(code, ctypes.byref(text)) == 0
        detail = text.value.decode(errors="replace") if known and text.value else ""
        raise failure(function, code, detail)


@functools.cache
def load_cupti() -> Cupti:
    """Load the CUPTI that fits this process: a copy already loaded wins, then wheels, toolkits.

    Raises:
        DeviceError: no CUPTI was found, or it is older than CUDA 12.6.
        CollectError: it is there but cannot be loaded.
    """
    path = find_cupti(_driver_major())
    if path is None:
        what = "CUPTI, NVIDIA's counter library, was not found"
        raise DeviceError(f"{what}: {_INSTALL}", slug="cupti")
    # CUPTI opens these two by bare name; they lie beside it and not on the loader's path.
    for companion in ("libnvperf_target.so", "libnvperf_host.so"):
        beside = Path(path).with_name(companion)
        if beside.exists():
            ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
    try:
        functions = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise CollectError(f"{path} cannot be loaded: {error}", slug="cupti") from error
    if not hasattr(functions, _NEEDED_SYMBOL):
        raise DeviceError(
            f"{path} is older than CUDA 12.6 and has no range profiler: {_INSTALL}", slug="cupti"
        )
    return Cupti(functions, path)


def find_cupti(driver_major: int | None = None) -> str | None:
    """Path of the CUPTI to use, or None.

    Args:
        driver_major: CUDA major version of the driver; a newer CUPTI cannot work with it.
    """
    loaded = next(loaded_libraries(Path("/proc/self/maps")), None)
    if loaded is not None:
        return loaded
    return choose(candidates(), driver_major)


def loaded_libraries(maps: Path) -> Iterator[str]:
    """Copies of libcupti that this process has mapped already (by PyTorch, JAX, ...)."""
    try:
        text = maps.read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        path = line.split(maxsplit=5)[-1] if "/" in line else ""
        if _LIBRARY.search(path):
            yield path


def candidates() -> Iterator[Path]:
    """Every libcupti of the installed wheels, then of the CUDA toolkits."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = [Path(root) / folder for root in roots for folder in _WHEEL_FOLDERS]
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    toolkits = [Path(home) for home in named if home]
    toolkits += sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
    folders += [home / folder for home in toolkits for folder in _TOOLKIT_FOLDERS]
    for folder in folders:
        yield from sorted(folder.glob("libcupti.so*"))


def choose(paths: Iterable[Path], driver_major: int | None) -> str | None:
    """The first library that the driver can serve; the first of all when none says its version."""
    known = list(dict.fromkeys(paths))
    if driver_major is not None:
        known = [path for path in known if (_major(path) or driver_major) <= driver_major] or known
    return str(known[0]) if known else None


def _driver_major() -> int | None:
    with contextlib.suppress(DeviceError):
        return load_driver().cuda_version[0]
    return None


def _major(path: Path) -> int | None:
    found = re.search(r"\.so\.(\d+)", path.name)
    return int(found[1]) if found and int(found[1]) < 100 else None


def _version_text(number: int) -> str:
    """CUPTI's own number as a CUDA version; before 13.0 it counted 24 (12.6), 26, 27, 28."""
    if number >= 100_000:
        return f"{number // 10_000}.{number // 100 % 100}"
    older = {24: "12.6", 26: "12.8", 27: "12.9", 28: "12.9"}
    return older.get(number, f"API {number}")
