"""C++ symbol names as people read them, through the C++ library that every CUDA program loads."""

import ctypes
import functools
from typing import Any

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")


@functools.cache
def _libraries() -> tuple[Any, Any] | None:
    for name in _LIBRARIES:
        try:
            demangle = ctypes.CDLL(name)["__cxa_demangle"]
            free = ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        free.argtypes = [ctypes.c_void_p]
        return demangle, free
    return None


@functools.lru_cache(maxsize=65_536)
def demangle(symbol: str) -> str:
    """The name behind a symbol; the symbol itself where it is not a C++ one."""
    libraries = _libraries()
    if libraries is None or not symbol.startswith("_Z"):
        return symbol
    function, free = libraries
    status = ctypes.c_int()
    text = function(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free(text)
