"""Which kernels a program launches while it is counted, seen at the driver's own functions.

Activity records would tell too, but recording them in a counter pass makes the counters of
patched instructions read zero (seen on an H200). These callbacks only look on.
"""

import contextlib
import ctypes
from typing import Any, NamedTuple

from mansard.collect.cupti.library import Cupti
from mansard.errors import MansardError

_DRIVER_API = 1
_ENTER = 0
#: Numbers of the driver's launch functions (cupti_driver_cbid.h), with and without _ptsz.
#: Calls of the runtime pass through them too, so each launch is seen once.
_PLAIN = (307, 442, 477, 478)  # cuLaunchKernel, cuLaunchCooperativeKernel: grid after a handle
_EXTENDED = (652, 653)  # cuLaunchKernelEx: grid behind a pointer
_GRAPH = (514, 515)  # cuGraphLaunch
_SIX = ctypes.c_uint32 * 6


class Call(NamedTuple):
    """One launch as the driver was asked for it.

    Attributes:
        symbol: the kernel's symbol; empty for a graph or where CUPTI does not tell.
        grid: blocks along x, y, z and threads along x, y, z; None for a graph.
        context: handle of the CUDA context.
        correlation: number of the call; it grows in the order of the calls.
    """

    symbol: str
    grid: tuple[int, ...] | None
    context: int
    correlation: int


class CallbackData(ctypes.Structure):
    """What CUPTI tells at a call."""

    c_name = "CUpti_CallbackData"
    _fields_ = (
        ("callbackSite", ctypes.c_int),
        ("functionName", ctypes.c_char_p),
        ("functionParams", ctypes.c_void_p),
        ("functionReturnValue", ctypes.c_void_p),
        ("symbolName", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
        ("contextUid", ctypes.c_uint32),
        ("correlationData", ctypes.c_void_p),
        ("correlationId", ctypes.c_uint32),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(CallbackData)
)


class CallWatch:
    """Notes launches between start and stop.

    CUPTI serves one subscriber a process: where another tool is it already (PyTorch's profiler
    stays, once it was used), ``available`` is False and nothing is noted.

    Args:
        cupti: the library.
    """

    def __init__(self, cupti: Cupti) -> None:
        self._cupti = cupti
        self._calls: list[Call] = []
        self._callback = _CALLBACK(self._note)
        self._subscriber = ctypes.c_void_p()
        self._running = False
        self.available = False
        with contextlib.suppress(MansardError):
            cupti.run("cuptiSubscribe", ctypes.byref(self._subscriber), self._callback, None)
            self.available = True

    def start(self) -> None:
        """Begin to note launches."""
        self._calls.clear()
        self._switch(on=True)

    def stop(self) -> tuple[Call, ...]:
        """End it, and give the launches in the order of their calls."""
        self._switch(on=False)
        return tuple(sorted(self._calls, key=lambda call: call.correlation))

    def close(self) -> None:
        """Make room for another subscriber; may be called again."""
        if self.available:
            self._switch(on=False)
            self.available = False
            self._cupti.run("cuptiUnsubscribe", self._subscriber)

    def _switch(self, *, on: bool) -> None:
        if not self.available or on is self._running:
            return
        self._running = on
        for function in (*_PLAIN, *_EXTENDED, *_GRAPH):
            self._cupti.run("cuptiEnableCallback", int(on), self._subscriber, _DRIVER_API, function)

    def _note(self, _user: int, _domain: int, function: int, told: Any) -> None:
        """Called by CUPTI on the launching thread, before the driver does anything."""
        data = told[0]
        if data.callbackSite == _ENTER:
            symbol = (data.symbolName or b"").decode(errors="replace")
            grid = _grid(function, data.functionParams)
            self._calls.append(Call(symbol, grid, data.context or 0, data.correlationId))


def _grid(function: int, arguments: int | None) -> tuple[int, ...] | None:
    if arguments is None or function in _GRAPH:
        return None
    if function in _PLAIN:
        return tuple(_SIX.from_address(arguments + ctypes.sizeof(ctypes.c_void_p)))
    configuration = ctypes.c_void_p.from_address(arguments).value
    return tuple(_SIX.from_address(configuration)) if configuration else None
