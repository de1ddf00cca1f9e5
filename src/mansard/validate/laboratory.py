"""The GPU of the child process: launches cases, and lets the collector count them."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mansard.bench.cuda.compile import Target, target_for
from mansard.bench.cuda.device import Memory
from mansard.bench.cuda.discover import open_device
from mansard.bench.cuda.session import Session
from mansard.bench.kernels import Variant, kernels
from mansard.bench.variants import variants
from mansard.collect import phase, profile
from mansard.collect.cupti.host import CounterHost
from mansard.collect.cupti.library import load_cupti
from mansard.collect.cupti_instruments import CuptiInstruments
from mansard.counters.limits import counters_of_limits, limits_of_chip
from mansard.errors import CollectError, DeviceError
from mansard.model.run import Run
from mansard.validate.cases import Buffer, Case, KernelLaunch, Launch, Number, ProductLaunch
from mansard.validate.inspection import NOT_READ, can_inspect, inspected
from mansard.validate.machine_code import ChainWork
from mansard.validate.messages import CaseCount, Counted, LimitValues, Opening
from mansard.validate.rows import sums_by_phase

_SCALARS = {"int32": np.int32, "uint32": np.uint32, "uint64": np.uint64, "address": int}
#: A case without launches of its own to go before runs so often before it is counted.
_SETTLING = 2
_LIMIT_ITERATIONS = 4096
#: Launches before the limits are read, about a tenth of a second.
_LIMIT_WARMUP = 12
#: The survey of every collection; it says nothing of a case.
_USUAL_NOTICES = frozenset({"counted-zero"})


@dataclasses.dataclass(frozen=True, slots=True)
class _Ready:
    """A case that can be launched."""

    case: Case
    before: tuple[Callable[[], None], ...]
    start: Callable[[], None]
    work: ChainWork | None
    parts: int = 1


class Laboratory:
    """One open GPU.

    Args:
        device: CUDA index.

    Raises:
        DeviceError: the GPU cannot be opened, or there is no CUPTI.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        session, opened = open_device(device)
        self._session: Session = session
        self._target: Target = target_for(opened.capability, opened.architectures)
        session.gpu.arch = self._target.arch
        instruments = CuptiInstruments()
        self.opening = Opening(
            opened=opened,
            chip=instruments.chip(device),
            table=instruments.table(device).name,
            cupti=instruments.versions["cupti"],
        )
        instruments.close()

    def limits(self) -> LimitValues:
        """Read the counters of the limits while a kernel runs, so that clocks are those of work.

        Raises:
            CollectError: not one of them could be read.
        """
        with CounterHost(load_cupti(), self.opening.chip) as host:
            base = host.base_counters()
        stated = limits_of_chip(base)
        with contextlib.ExitStack() as stack:
            start = self._busy(stack)
            try:
                values = self._read(counters_of_limits(stated), start)
            except CollectError:
                # One name that this CUPTI does not take must not cost the others.
                values = {}
                for each in stated:
                    with contextlib.suppress(CollectError):
                        values |= self._read(each.counters, start)
        if not values:
            raise CollectError("the counters of the limits gave no values")
        return LimitValues(values=values, base_counters=tuple(sorted(base)))

    def _read(self, counters: Sequence[str], start: Callable[[], None]) -> dict[str, float | None]:
        """Values of counters over one launch, which runs as often as they need."""
        with contextlib.ExitStack() as stack:
            instruments = stack.enter_context(contextlib.closing(CuptiInstruments()))
            counting = stack.enter_context(
                contextlib.closing(instruments.count_ranges(counters, {self._device: 1}))
            )
            # A GPU without work lets its clocks fall, and configuring counters takes a while.
            for _ in range(_LIMIT_WARMUP):
                start()
            last = False
            while not last:
                counting.start()
                counting.enter()
                start()
                counting.leave()
                last = counting.stop()
            found = counting.read()[self._device].counted
        return {name: found.column(name)[0] for name in found.counters} if found.rows else {}

    def count(self, cases: Sequence[Case]) -> Counted:
        """Count cases together: each is a phase of one step of a profile."""
        with contextlib.ExitStack() as stack:
            pool = self._pool(cases, stack)
            prepared = [self._prepare(case, pool, stack) for case in cases]
            ready = [each for each in prepared if isinstance(each, _Ready)]
            if not ready:
                return Counted(cases=tuple(e for e in prepared if isinstance(e, CaseCount)))
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mansard-validate-"))
            run = self._profile(ready, Path(folder) / "run.parquet")
            sums = sums_by_phase(run)
        counts = []
        for each in prepared:
            if isinstance(each, CaseCount):
                counts.append(each)
                continue
            launches, columns = sums.get(each.case.name, (0, {}))
            counts.append(
                CaseCount(
                    name=each.case.name,
                    columns=columns,
                    launches=launches,
                    loop_flop=each.work.loop if each.work else None,
                    once_flop=each.work.once if each.work else 0.0,
                    parts=each.parts,
                )
            )
        return Counted(
            cases=tuple(counts),
            definitions=run.provenance[0].definitions,
            remarks=(
                *(n.message for n in run.all_notices if n.code not in _USUAL_NOTICES),
                *(() if can_inspect() else (NOT_READ,)),
            ),
        )

    def _profile(self, ready: Iterable[_Ready], path: Path) -> Run:
        ready = tuple(ready)
        with profile(path, steps=1, warmup=1, phases="own") as taken:
            while not taken.done:
                with taken.step():
                    for each in ready:
                        for start in each.before:
                            start()
                        with phase(each.case.name):
                            each.start()
        if taken.failure is not None or taken.run is None:
            raise taken.failure or CollectError("nothing was recorded")
        return taken.run

    def _prepare(
        self, case: Case, pool: dict[str, Memory], stack: contextlib.ExitStack
    ) -> _Ready | CaseCount:
        """Compile, inspect and load; what this machine lacks is told and no failure."""
        try:
            work = self._inspect(case)
            start, parts = self._counted(case.launch, pool, stack)
            before = tuple(self._starter(each, pool, stack) for each in case.before)
        except DeviceError as error:
            return CaseCount(name=case.name, lacking=str(error))
        return _Ready(case, before or (start,) * _SETTLING, start, work, parts)

    def _inspect(self, case: Case) -> ChainWork | None:
        if isinstance(case.launch, ProductLaunch):
            return None
        variant = case.launch.variant
        if variant.feature and not self._target.features:
            raise DeviceError(f"needs machine code for exactly this chip: {self._target.remark}")
        arch = self._target.arch_for(variant)
        return inspected(variant, arch, case.machine_code, needed=case.inspect)

    def _counted(
        self, launch: Launch, pool: dict[str, Memory], stack: contextlib.ExitStack
    ) -> tuple[Callable[[], None], int]:
        """What starts a launch, and in how many parts it forms its sums."""
        if isinstance(launch, ProductLaunch):
            return self._product(launch, stack)
        return self._starter(launch, pool, stack), 1

    def _starter(
        self, launch: Launch, pool: dict[str, Memory], stack: contextlib.ExitStack
    ) -> Callable[[], None]:
        if isinstance(launch, ProductLaunch):
            return self._product(launch, stack)[0]
        gpu = self._session.gpu
        gpu.kernel(launch.variant)
        arguments = [_argument(each, pool) for each in launch.arguments]
        return lambda: gpu.start(launch.variant, *arguments, blocks=launch.blocks)

    def _product(
        self, launch: ProductLaunch, stack: contextlib.ExitStack
    ) -> tuple[Callable[[], None], int]:
        from mansard.bench.cuda.gemm import Product  # noqa: PLC0415  (the library is optional)

        product = Product(self._session, launch.operand, launch.n)
        stack.callback(product.close)
        if not product.algorithms:
            raise DeviceError(f"cuBLASLt has no algorithm for {launch.operand} and n {launch.n}")
        algorithm = product.algorithms[0]
        return lambda: product.start(algorithm), product.parts(algorithm)

    def _pool(self, cases: Iterable[Case], stack: contextlib.ExitStack) -> dict[str, Memory]:
        """Memory for all buffers of a batch, zeroed."""
        gpu = self._session.gpu
        sizes: dict[str, int] = {}
        for case in cases:
            for launch in (*case.before, case.launch):
                if isinstance(launch, KernelLaunch):
                    for each in launch.arguments:
                        if isinstance(each, Buffer):
                            sizes[each.name] = max(each.size, sizes.get(each.name, 0))
        pool = {}
        for name, size in sizes.items():
            memory = gpu.allocate(size)
            stack.callback(gpu.free, memory)
            gpu.zero(memory)
            pool[name] = memory
        return pool

    def _busy(self, stack: contextlib.ExitStack) -> Callable[[], None]:
        """A kernel of a few milliseconds."""
        variant: Variant = next(
            variants(kernel)[-1] for kernel in kernels() if kernel.path == "vector fp32"
        )
        gpu = self._session.gpu
        blocks = variant.blocks * gpu.sms
        operands, out = gpu.allocate(1 << 16), gpu.allocate(blocks * variant.threads * 8)
        stack.callback(gpu.free, operands, out)
        gpu.zero(operands)
        last = (np.uint32((1 << 12) - 1), np.int32(_LIMIT_ITERATIONS))

        def start() -> None:
            gpu.start(variant, operands, operands, operands, out, *last)

        start()  # compiles and loads the kernel, which must not happen while counters run
        return start


def _argument(argument: Buffer | Number, pool: dict[str, Memory]) -> Any:
    if isinstance(argument, Buffer):
        return pool[argument.name]
    return _SCALARS[argument.kind](argument.value)
