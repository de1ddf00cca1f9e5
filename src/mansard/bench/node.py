"""Every GPU of a node, one after another or all at the same time."""

import concurrent.futures
import dataclasses
import threading
from collections.abc import Callable
from typing import Literal

from mansard.bench.entry import Options, Progress
from mansard.errors import DeviceError
from mansard.model.machine import Machine

#: In turn, each GPU has the node's power, air and buses for itself; together they share them, as
#: in a job that uses them all.
Order = Literal["in turn", "together"]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeResult:
    """What the GPUs of a node can do.

    Attributes:
        machines: by CUDA index; those that an interrupt ended are ``partial``, and those that it
            left out are absent.
        failures: why a GPU could not be measured, by CUDA index.
        interrupted: whether Ctrl-C ended it.
    """

    machines: dict[int, Machine]
    failures: dict[int, str]
    interrupted: bool = False


def bench_node(
    *,
    options: Options | None = None,
    order: Order = "in turn",
    progress: Progress | None = None,
    measure: Callable[[int, Options, Progress], Machine] | None = None,
    count: Callable[[], int] | None = None,
) -> NodeResult:
    """Measure every GPU that CUDA shows to this process.

    A GPU that cannot be used leaves the others alone. An interrupt (Ctrl-C) ends all and keeps
    what is finished.

    Args:
        options: what to measure.
        order: one after another, or all at the same time.
        progress: called before each part with ``cuda:N`` and its name, and the share of all work.
        measure: measures one GPU; the default is what ``mansard.bench("cuda:N")`` does.
        count: number of GPUs; by default that of the driver.

    Raises:
        NoGpuError: there is no usable GPU at all.
        UsageError: the options do not fit a GPU.
    """
    measure = measure or _measure
    gpus = (count or _count)()
    shares = dict.fromkeys(range(gpus), 0.0)
    stopped = threading.Event()

    def advance(index: int) -> Progress:
        def told(what: str, share: float) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt  # the measurement takes it as one, and keeps its ceilings
            shares[index] = share
            if progress is not None:
                progress(f"cuda:{index} {what}", sum(shares.values()) / gpus)

        return told

    machines: dict[int, Machine] = {}
    failures: dict[int, str] = {}

    def one(index: int) -> None:
        try:
            machines[index] = measure(index, options or Options(), advance(index))
        except DeviceError as error:
            failures[index] = str(error)
        if index in machines and machines[index].partial:
            raise KeyboardInterrupt  # which the measurement had taken for itself

    run = _in_turn if order == "in turn" else _together
    try:
        run(one, gpus, stopped)
    except KeyboardInterrupt:
        stopped.set()
    return NodeResult(dict(sorted(machines.items())), failures, stopped.is_set())


def _in_turn(one: Callable[[int], None], gpus: int, _stopped: threading.Event) -> None:
    for index in range(gpus):
        one(index)


def _together(one: Callable[[int], None], gpus: int, stopped: threading.Event) -> None:
    with concurrent.futures.ThreadPoolExecutor(gpus, "mansard-gpu") as pool:
        futures = [pool.submit(one, index) for index in range(gpus)]
        try:
            concurrent.futures.wait(futures)
        except KeyboardInterrupt:
            stopped.set()
            concurrent.futures.wait(futures)
    for future in futures:
        future.result()


def _count() -> int:
    from mansard.bench.gpu import count_gpus  # noqa: PLC0415
    from mansard.bench.worker import Worker  # noqa: PLC0415

    worker = Worker()
    try:
        return count_gpus(worker)
    finally:
        worker.close()


def _measure(index: int, options: Options, progress: Progress) -> Machine:
    from mansard.bench.entry import bench  # noqa: PLC0415

    return bench(f"cuda:{index}", options=options, progress=progress)
