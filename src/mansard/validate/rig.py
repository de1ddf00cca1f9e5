"""Where cases run: one seam with a GPU in a child process behind it, or a test's own."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from mansard.bench.worker import Worker, WorkerDied
from mansard.errors import DeviceError, PermissionDeniedError
from mansard.validate.cases import Case
from mansard.validate.messages import Counted, LimitValues, Opening, Reply, Request

_CHILD = "mansard.validate.child"
#: Paragraph of docs/messages.md on a device that does not open.
_NO_GPU = "no-gpu"
_OPEN_S = 120.0
_LIMITS_S = 60.0
#: Of a batch: compiling and disassembling its kernels, and a dozen passes.
_BATCH_S, _CASE_S = 45.0, 10.0


class CasesLost(Exception):  # noqa: N818  (it is an event; the findings tell it)
    """The cases that were asked for did not end; the message says how."""


class Rig(Protocol):
    """A GPU that runs cases under the collector."""

    def open(self) -> Opening:
        """Open the device.

        Raises:
            DeviceError: it cannot be used, or gives no counters.
        """

    def limits(self) -> LimitValues:
        """Read the counters of the limits.

        Raises:
            CasesLost: they could not be read.
            DeviceError: there will be no counters at all.
        """

    def count(self, cases: Sequence[Case]) -> Counted:
        """Run cases and count them.

        Raises:
            CasesLost: the process died, hung, or lost the GPU; the next call starts anew.
            PermissionDeniedError: the driver refuses counters.
        """

    def close(self) -> None:
        """End it; may be called again."""


class ChildRig:
    """A GPU in a child process, so that a kernel that crashes ends that process alone.

    Args:
        device: CUDA index.
        make_worker: makes the child.
    """

    def __init__(
        self, device: int = 0, *, make_worker: Callable[[], Worker] = lambda: Worker(_CHILD)
    ) -> None:
        self._device = device
        self._worker = make_worker()
        self._opened = False

    def open(self) -> Opening:
        """Open the device in the child."""
        try:
            reply = self._ask(Request(do="open", device=self._device), _OPEN_S)
        except WorkerDied as error:
            raise DeviceError(
                f"cuda:{self._device} cannot be opened: {error}", slug=_NO_GPU
            ) from error
        if reply.opening is None:
            raise _refusal(msgspec.structs.replace(reply, slug=reply.slug or _NO_GPU))
        self._opened = True
        return reply.opening

    def limits(self) -> LimitValues:
        """Read the counters of the limits."""
        reply = self._served(Request(do="limits"), _LIMITS_S)
        if reply.limits is None:
            raise CasesLost("the child gave no limits")
        return reply.limits

    def count(self, cases: Sequence[Case]) -> Counted:
        """Run cases and count them."""
        asked = Request(do="count", cases=tuple(cases))
        reply = self._served(asked, _BATCH_S + _CASE_S * len(cases))
        if reply.counted is None:
            raise CasesLost("the child counted nothing")
        return reply.counted

    def close(self) -> None:
        """End the child."""
        self._opened = False
        self._worker.close()

    def _served(self, request: Request, timeout_s: float) -> Reply:
        """An answer that is no error; after one the context may be lost, so the child is too."""
        if not self._opened:
            self.open()
        try:
            reply = self._ask(request, timeout_s)
        except WorkerDied as error:
            self.close()
            raise CasesLost(str(error)) from error
        if reply.error is None:
            return reply
        self.close()
        if reply.refused:
            raise _refusal(reply)
        raise CasesLost(reply.error)

    def _ask(self, request: Request, timeout_s: float) -> Reply:
        line = self._worker.exchange(msgspec.json.encode(request), timeout_s)
        return msgspec.json.decode(line, type=Reply)


def _refusal(reply: Reply) -> DeviceError:
    kind = PermissionDeniedError if reply.slug == "permission" else DeviceError
    return kind(reply.error or "the child did not open the device", slug=reply.slug)
