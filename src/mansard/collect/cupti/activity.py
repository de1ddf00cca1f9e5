"""CUPTI's activity records: what ran on the GPU, when, and which call started it."""

import ctypes
import functools
from collections.abc import Iterable, Iterator
from typing import Any

from mansard.collect.cupti import records
from mansard.collect.cupti.library import Cupti
from mansard.errors import CollectError

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MARKER, PEER_COPY = 1, 2, 4, 5, 10, 12, 22

_LAYOUTS: dict[int, Any] = {
    MEMCPY: records.CopyRecord,
    MEMSET: records.SetRecord,
    DRIVER: records.ApiRecord,
    RUNTIME: records.ApiRecord,
    KERNEL: records.KernelRecord,
    MARKER: records.MarkerRecord,
    PEER_COPY: records.PeerCopyRecord,
}
_BUFFER_BYTES = 4 << 20
_MAX_LIMIT, _QUEUE_EMPTY = 12, 18
_FLUSH_FORCED = 1

_Buffer = Any

_REQUEST = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
_COMPLETE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class ActivityRecorder:
    """Records activity between start and stop; one for the whole process, see ``recorder``.

    CUPTI calls back for buffers from any thread, and gives back old ones at any later time. The
    callbacks only hand buffers over, and live as long as the process.
    """

    def __init__(self, cupti: Cupti) -> None:
        self._cupti = cupti
        self._enabled: list[int] = []
        self._spare = [_new_buffer() for _ in range(4)]
        self._lent: dict[int, _Buffer] = {}
        self._full: list[tuple[int, int]] = []
        self._request, self._complete = _REQUEST(self._lend), _COMPLETE(self._take)

    def start(self, kinds: Iterable[int]) -> None:
        """Begin recording the kinds; what was recorded before is dropped.

        Buffers are asked for anew each time: another profiler in this process (PyTorch's) may
        have put itself in our place, and lets go of it without a word.
        """
        if self._enabled:
            raise CollectError("another profile is being taken in this process; end it first")
        self._cupti.run("cuptiActivityRegisterCallbacks", self._request, self._complete)
        self.drop()
        for kind in kinds:
            self._cupti.run("cuptiActivityEnable", kind)
            self._enabled.append(kind)

    def drop(self) -> None:
        """Forget what was recorded so far, and go on."""
        self._flush()
        self._recycle()

    def stop(self) -> list[Any]:
        """End recording and give the records, in the order in which CUPTI kept them.

        Names in the records stay valid only while their module is loaded: read them at once.
        """
        self._disable()
        self._flush()
        full, self._full = self._full, []
        # The records keep their buffers alive, so these are not lent again.
        return [
            record
            for address, valid in full
            for record in self._records(self._lent.pop(address), valid)
        ]

    def close(self) -> None:
        """Stop recording and drop what was recorded; may be called again."""
        if self._enabled:
            self._disable()
            self._flush()
        self._recycle()

    def _disable(self) -> None:
        while self._enabled:
            self._cupti.run("cuptiActivityDisable", self._enabled.pop())

    def _flush(self) -> None:
        self._cupti.run("cuptiActivityFlushAll", _FLUSH_FORCED)

    def _recycle(self) -> None:
        full, self._full = self._full, []
        for address, _ in full:
            self._spare.append(self._lent.pop(address))

    def _lend(self, buffer: Any, size: Any, most_records: Any) -> None:
        try:
            space = self._spare.pop()
        except IndexError:
            space = _new_buffer()
        address = ctypes.addressof(space)
        self._lent[address] = space
        buffer[0], size[0], most_records[0] = address, _BUFFER_BYTES, 0

    def _take(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        # A buffer that another profiler had lent is not ours to read.
        if buffer in self._lent:
            self._full.append((buffer, valid))

    def _records(self, buffer: _Buffer, valid: int) -> Iterator[Any]:
        record = ctypes.c_void_p()
        while valid:
            code = self._cupti.next_record(ctypes.addressof(buffer), valid, record)
            if code in (_MAX_LIMIT, _QUEUE_EMPTY):
                return
            if code:
                raise CollectError(f"an activity buffer of CUPTI cannot be read (code {code})")
            kind = ctypes.c_uint32.from_address(record.value or 0).value
            layout = _LAYOUTS.get(kind)
            if layout is not None:
                found = layout.from_address(record.value or 0)
                found.owner = buffer
                yield found


@functools.cache
def recorder(cupti: Cupti) -> ActivityRecorder:
    """The recorder of this process.

    A second one would be handed buffers of the first: CUPTI knows one pair of callbacks.
    """
    return ActivityRecorder(cupti)


def _new_buffer() -> _Buffer:
    # 8-byte alignment is what CUPTI asks for.
    return (ctypes.c_uint64 * (_BUFFER_BYTES // 8))()
