"""Measures a GPU: plans, lets children compile and measure, and gathers the machine."""

import concurrent.futures
import datetime as dt
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import msgspec

from mansard.analysis.theoretical import lacking_paths
from mansard.bench.cuda.compile import Target, target_for
from mansard.bench.kernels import Variant
from mansard.bench.messages import QUICK, Built, Opened, Outcome, Request, Settings, Task
from mansard.bench.plan import Choice, make_plan
from mansard.bench.verdict import ceiling_of
from mansard.bench.worker import Worker, WorkerDied
from mansard.errors import DeviceError
from mansard.model.machine import Ceiling, Machine
from mansard.version import __version__

#: Called before each part with its name and the share of the time that is done.
Progress = Callable[[str, float], None]

_OPEN_S = 120.0
_BUILD_S = 120.0
_MEASURE_S = 60.0
_BUILDERS = 4
#: Below this share of the rate with FP16 sums, FP32 sums are called slower by design.
_HALF = 0.75
#: Errors after which a CUDA context is of no more use.
_LOST = ("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED", "LAUNCH_", "ASSERT", "HARDWARE")


class NoGpuError(DeviceError):
    """The device cannot be opened at all; nothing was measured."""


def open_gpu(index: int, worker: Worker) -> Opened:
    """Open a GPU in a child.

    Raises:
        NoGpuError: there is none, or it cannot be used; the message says why.
    """
    try:
        reply = worker.ask(Request(do="open", device=index), _OPEN_S)
    except WorkerDied as error:
        raise NoGpuError(f"cuda:{index} cannot be opened: {error}") from error
    if reply.opened is None:
        raise NoGpuError(reply.error or "the child did not open the device")
    return reply.opened


def count_gpus(worker: Worker) -> int:
    """Number of GPUs that CUDA shows to a child.

    Raises:
        NoGpuError: there is none, or no driver; the message says which.
    """
    try:
        reply = worker.ask(Request(do="count"), _OPEN_S)
    except WorkerDied as error:
        raise NoGpuError(f"the GPUs cannot be counted: {error}") from error
    if not reply.count:
        raise NoGpuError(reply.error or "the driver shows no GPU")
    return reply.count


def measure_gpu(
    index: int = 0,
    choice: Choice | None = None,
    progress: Progress | None = None,
    *,
    make_worker: Callable[[], Worker] = Worker,
) -> Machine:
    """Measure the ceilings of a GPU.

    A crash of a compiler or kernel refuses its ceiling and leaves the others alone. An interrupt
    (Ctrl-C) ends the measurement and keeps what is finished; the machine is then ``partial``.

    Args:
        index: CUDA index of the device.
        choice: what to measure.
        progress: called before each part.
        make_worker: makes child processes.

    Raises:
        NoGpuError: there is no usable GPU.
        DeviceError: there is no compiler for it.
        UsageError: the choice does not fit this GPU.
    """
    choice = choice or Choice()
    worker = make_worker()
    try:
        opened = open_gpu(index, worker)
        plan = make_plan(opened, choice)
        target = target_for(opened.capability, opened.architectures)
        settings = QUICK if choice.quick else Settings()
        run = _Run(index, opened, target, settings=settings)
        with _Builders(plan, target, make_worker) as builders:
            run.measure(plan, builders, worker, progress or (lambda _name, _share: None))
    finally:
        worker.close()
    return run.machine()


class _Run:
    """The state of one measurement."""

    def __init__(
        self,
        index: int,
        opened: Opened,
        target: Target,
        *,
        settings: Settings,
    ) -> None:
        self._index = index
        self._opened = opened
        self._target = target
        self._settings = settings
        self._ceilings: list[Ceiling] = []
        self._curves: dict[str, Any] = {}
        self._caveats: list[str] = list(opened.caveats)
        self._partial = False
        self._began = dt.datetime.now(dt.UTC)

    def measure(
        self, plan: tuple[Task, ...], builders: "_Builders", worker: Worker, progress: Progress
    ) -> None:
        """Run the tasks in order; an interrupt ends them."""
        whole = sum(task.expected_s for task in plan)
        done = 0.0
        try:
            for task in plan:
                progress(task.name, done / whole)
                self._add(task, self._outcome(task, builders, worker))
                done += task.expected_s
            progress("done", 1.0)
        except KeyboardInterrupt:
            self._partial = True
            self._caveats.append(
                f"Interrupted: {len(self._ceilings)} ceilings were finished before."
            )

    def machine(self) -> Machine:
        """Everything that was found."""
        facts = self._opened.facts
        remark = self._target.remark
        caveats = [*self._caveats, *([remark] if remark else []), *self._lacking()]
        caveats += half_rate(self._ceilings)
        ended = dt.datetime.now(dt.UTC)
        return Machine(
            name=machine_name(str(facts.name)),
            basis="measured",
            device=facts,
            ceilings=tuple(self._ceilings),
            caveats=tuple(dict.fromkeys(caveats)),
            partial=self._partial,
            provenance={
                "created": self._began.isoformat(timespec="seconds"),
                "duration_s": round((ended - self._began).total_seconds(), 1),
                "mansard_version": __version__,
                "clock_control": "none",
                **self._opened.texts,
            },
            curves=self._curves,
        )

    def _add(self, task: Task, outcome: Outcome) -> None:
        self._curves.update(outcome.curves)
        if task.kind is not None:
            ceiling = ceiling_of(task, outcome, self._opened, self._ceilings)
            self._ceilings.append(ceiling)
        elif outcome.refusal:
            self._caveats.append(f"There is no curve '{task.name}': {outcome.refusal}.")

    def _outcome(self, task: Task, builders: "_Builders", worker: Worker) -> Outcome:
        """Measure one task with the variants that compiled and show what they should."""
        built = [(variant, builders.built(variant)) for variant in task.variants]
        usable = [(variant, found) for variant, found in built if not found.problem]
        if built and not usable:
            return Outcome(refusal=built[0][1].problem)
        if task.recipe == "partition" and len(usable) < len(built):
            return Outcome(refusal="a kernel that it needs does not compile")
        task = msgspec.structs.replace(task, variants=tuple(variant for variant, _ in usable))
        request = Request(do="measure", arch=self._target.arch, task=task, settings=self._settings)
        try:
            reply = worker.ask(request, _MEASURE_S)
        except WorkerDied as error:
            self._reopen(worker)
            return Outcome(refusal=f"the measuring process failed: {error}")
        outcome = reply.outcome or Outcome(refusal=reply.error or "no answer")
        if any(name in (outcome.refusal or "") for name in _LOST):
            self._reopen(worker)  # the context is lost: every later call would fail too
        position = outcome.evidence.get("variant", 0)
        machine_code = usable[position][1].evidence if usable else {}
        evidence = {k: v for k, v in outcome.evidence.items() if k != "variant"}
        return msgspec.structs.replace(outcome, evidence={**machine_code, **evidence})

    def _reopen(self, worker: Worker) -> None:
        """Start a new child on the same device after the old one was lost."""
        worker.close()
        try:
            open_gpu(self._index, worker)
        except DeviceError as error:
            self._caveats.append(f"The GPU could not be opened again: {error}.")

    def _lacking(self) -> Iterator[str]:
        paths = lacking_paths(self._opened.facts.compute_capability) or ()
        lacking = sorted(path for path in paths if "_" not in path)  # not sums of some counters
        if lacking:
            yield f"This GPU does not have: {', '.join(lacking)}."


def half_rate(ceilings: Iterable[Ceiling]) -> tuple[str, ...]:
    """What to say of a GPU whose tensor pipe takes twice as long when it sums in FP32.

    GeForce parts do, by design; the limits are those of professional parts.
    """
    best: dict[str, float] = {}
    for ceiling in ceilings:
        if ceiling.path == "tensor fp16" and ceiling.value is not None:
            name = str(ceiling.instruction)
            best[name] = max(ceiling.value, best.get(name, 0.0))
    for name, value in best.items():
        narrow = best.get(f"{name} fp16-acc")
        if narrow is not None and value < _HALF * narrow:
            text = (
                f"This GPU sums tensor products in FP32 at {100 * value / narrow:.0f} % of its "
                "rate with FP16 sums; limits of tensor paths are those of full-rate parts."
            )
            return (text,)
    return ()


def machine_name(product: str) -> str:
    """A short name from a product name: ``NVIDIA H200`` becomes ``h200``."""
    text = re.sub(r"^(nvidia|tesla|quadro)\s+", "", product.strip(), flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60] or "gpu"


class _Builders:
    """Children that compile and check ahead of the measurement."""

    def __init__(
        self, plan: tuple[Task, ...], target: Target, make_worker: Callable[[], Worker]
    ) -> None:
        self._target = target
        self._make_worker = make_worker
        self._workers: list[Worker] = []
        self._local = threading.local()
        self._lock = threading.Lock()
        count = max(1, min(_BUILDERS, (os.cpu_count() or 2) - 1))
        self._pool = concurrent.futures.ThreadPoolExecutor(count, "mansard-build")
        wanted = dict.fromkeys(key_of(variant) for task in plan for variant in task.variants)
        self._futures = {key: self._pool.submit(self._build, key) for key in wanted}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._futures.values():
            future.cancel()
        with self._lock:
            for worker in self._workers:
                worker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def built(self, variant: Variant) -> Built:
        """Wait for a variant."""
        return self._futures[key_of(variant)].result()

    def _build(self, variant: Variant) -> Built:
        if variant.feature and not self._target.features:
            return Built(
                problem=f"needs machine code for exactly this chip, and {self._target.remark}"
            )
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = self._make_worker()
            with self._lock:
                self._workers.append(worker)
        request = Request(do="build", arch=self._target.arch, variant=variant)
        try:
            reply = worker.ask(request, _BUILD_S)
        except WorkerDied as error:
            return Built(problem=f"the compiler failed on {variant.source}: {error}")
        return reply.built or Built(problem=reply.error or "no answer")


def key_of(variant: Variant) -> Variant:
    """A variant with everything left out that does not change its machine code or its check."""
    return Variant(
        source=variant.source,
        entry=variant.entry,
        macros=variant.macros,
        feature=variant.feature,
        mnemonic=variant.mnemonic,
        count=variant.count,
    )
