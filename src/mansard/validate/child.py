"""The child process that runs cases under the collector, one JSON line at a time.

Started as ``python -m mansard.validate.child``. A kernel that crashes or hangs ends this process
only; the parent sees that, and goes on with a new one.
"""

import contextlib
import os
import sys
from typing import Any

import msgspec

from mansard.bench.messages import failure
from mansard.errors import DeviceError, MansardError, PermissionDeniedError
from mansard.validate.messages import Reply, Request


def main() -> None:
    """Serve requests from standard input until it ends."""
    # Libraries may print: what they print must not come between the replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    state = _State()
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Request)
        replies.write(msgspec.json.encode(state.serve(request)) + b"\n")
        replies.flush()


class _State:
    """The open device, if any."""

    def __init__(self) -> None:
        self._laboratory: Any = None

    def serve(self, request: Request) -> Reply:
        """Answer one request; every failure becomes an answer."""
        try:
            return self._serve(request)
        except MansardError as error:
            # Without counters for one there are none for another; any other error of the device
            # while cases run may be the fault of a case.
            refused = isinstance(error, PermissionDeniedError) or (
                isinstance(error, DeviceError) and request.do != "count"
            )
            return Reply(error=str(error), slug=error.slug, refused=refused)
        except MemoryError:
            return Reply(error="out of host memory")
        except Exception as error:  # noqa: BLE001  (a failure of a case must not end the rest)
            return Reply(error=failure(error))

    def _serve(self, request: Request) -> Reply:
        if request.do == "open":
            from mansard.validate.laboratory import Laboratory  # noqa: PLC0415

            self._laboratory = Laboratory(request.device)
            return Reply(opening=self._laboratory.opening)
        if self._laboratory is None:
            raise DeviceError("no device is open")
        if request.do == "limits":
            return Reply(limits=self._laboratory.limits())
        return Reply(counted=self._laboratory.count(request.cases))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
