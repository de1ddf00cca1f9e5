"""Memory that kernels work on: large pages where the system gives them, always written."""

import contextlib
import mmap
from typing import Any

import numpy as np

_LARGE_PAGE = 2 << 20
_PATTERN_DOUBLES = 1 << 16


class Buffer:
    """Private memory, aligned to large pages.

    Attributes:
        address: of the first byte.
        size_bytes: usable length.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        # Python gives the whole mapping back when the last array over it is gone.
        self._mapping = mmap.mmap(-1, size_bytes + _LARGE_PAGE)
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            # A system without large pages works too, slower.
            with contextlib.suppress(OSError):
                self._mapping.madvise(advice)
        whole = np.frombuffer(self._mapping, dtype=np.uint8)
        start = -whole.ctypes.data % _LARGE_PAGE
        self._bytes = whole[start : start + size_bytes]
        self.address: int = self._bytes.ctypes.data

    def view(self, dtype: Any, start_byte: int, count: int) -> np.ndarray[Any, Any]:
        """``count`` elements from a byte offset, without a copy."""
        size = np.dtype(dtype).itemsize * count
        return self._bytes[start_byte : start_byte + size].view(dtype)

    def fill(self, seed: int) -> None:
        """Write random numbers of [0.5, 1) everywhere, on the thread (so the node) that calls.

        Memory that was never written is one page of zeros to the system: reading it would
        measure the first-level cache. A pattern of half a megabyte repeats.
        """
        pattern = 0.5 + 0.5 * np.random.default_rng(seed).random(_PATTERN_DOUBLES)
        doubles = self.view(np.float64, 0, self.size_bytes // 8)
        whole = len(doubles) // _PATTERN_DOUBLES * _PATTERN_DOUBLES
        doubles[:whole].reshape(-1, _PATTERN_DOUBLES)[:] = pattern
        doubles[whole:] = pattern[: len(doubles) - whole]
