"""The child process: compiles and measures what the parent asks for, one JSON line at a time.

Started as ``python -m mansard.bench.cuda.child``. A compiler or kernel that crashes ends this
process only; the parent sees that, and goes on with a new one.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from mansard.bench.kernels import Variant
from mansard.bench.messages import Built, Opened, Outcome, Reply, Request, Task, failure
from mansard.errors import DeviceError, MansardError

_STREAM_RECIPES = frozenset({"stream", "memcpy", "working set", "intensity"})


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
        self._session: Any = None

    def serve(self, request: Request) -> Reply:
        """Answer one request; every failure becomes an answer."""
        try:
            if request.do == "build":
                return Reply(built=_build(request))
            if request.do == "count":
                return Reply(count=_count())
            if request.do == "open":
                return Reply(opened=self._open(request))
            return Reply(outcome=self._measure(request))
        except MansardError as error:
            return Reply(error=str(error))
        except MemoryError:
            return Reply(error="out of host memory")
        except Exception as error:  # noqa: BLE001  (a failure of one ceiling must not end the rest)
            return Reply(error=failure(error))

    def _open(self, request: Request) -> Opened:
        from mansard.bench.cuda.discover import open_device  # noqa: PLC0415

        session, opened = open_device(request.device)
        self._session = session
        return opened

    def _measure(self, request: Request) -> Outcome:
        if self._session is None or request.task is None:
            raise DeviceError("no device is open")
        session, task = self._session, request.task
        session.settings = request.settings
        session.gpu.arch = request.arch
        if session.arrays is not None and task.recipe not in _STREAM_RECIPES:
            session.gpu.free(*session.arrays.memory)
            session.arrays = None
        try:
            return _recipe(task)(session, task)
        except DeviceError as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            return Outcome(refusal=f"out of device memory ({error})")


def _count() -> int:
    from mansard.bench.cuda.discover import count_devices  # noqa: PLC0415

    return count_devices()


def _build(request: Request) -> Built:
    """Compile a variant and look at its machine code."""
    from mansard.bench.cuda.compile import cache_folder, compile_variant  # noqa: PLC0415

    variant: Variant = request.variant or Variant(source="", entry="")
    arch = f"{request.arch}a" if variant.feature else request.arch
    code = compile_variant(variant, arch)
    if not variant.count or arch.startswith("compute_"):
        return Built()
    from mansard.bench.cuda.disassemble import audit  # noqa: PLC0415

    found = audit(code, variant.entry, variant.mnemonic, cache=cache_folder())
    if found is None:
        return Built(evidence={"machine_code": "not checked: nvdisasm is not installed"})
    return Built(
        problem=found.problem(variant.count, variant.mnemonic),
        evidence={
            "machine_code": f"{found.count} {variant.mnemonic} of {found.loop} instructions in "
            "the loop, no access to local memory"
        },
    )


def _recipe(task: Task) -> Callable[[Any, Task], Outcome]:
    """The function that measures a task."""
    from mansard.bench.cuda import (  # noqa: PLC0415
        compute,
        curves,
        halves,
        l2,
        latency,
        link,
        memory,
        stream,
        studies,
    )

    if task.recipe == "gemm":
        from mansard.bench.cuda.gemm import measure_gemm  # noqa: PLC0415

        return measure_gemm
    return {
        "compute": compute.measure_compute,
        "shared": memory.measure_shared,
        "cache": memory.measure_cache,
        "l2": l2.measure_l2,
        "partition": halves.measure_halves,
        "stream": stream.measure_stream,
        "memcpy": stream.measure_memcpy,
        "latency": latency.measure_latency,
        "launch": latency.measure_launch,
        "link": link.measure_link,
        "wmma product": studies.measure_wmma_product,
        "half": studies.measure_half,
        "working set": curves.measure_working_set,
        "intensity": curves.measure_intensity,
    }[task.recipe]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
