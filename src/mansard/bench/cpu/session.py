"""One measurement as it goes on: its parts in order, and what they have given so far."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from mansard.bench.cpu import ceilings as make
from mansard.bench.cpu.compute_kernels import instructions_per_iteration
from mansard.bench.cpu.levels import contradictions, sweep_sizes
from mansard.bench.cpu.limits import Microarchitecture
from mansard.bench.cpu.plan import Plan, Stream
from mansard.bench.cpu.recipes import Recipe
from mansard.bench.cpu.rig import Prepared
from mansard.bench.cpu.sampling import SWEEP, Effort, Series, Workload, measure
from mansard.errors import DeviceError, MachineError
from mansard.model.machine import Ceiling

#: Called before each part with its name and the share of parts that are done.
Progress = Callable[[str, float], None]

#: The chain of additions takes this many times the cycles of the work that it runs beside ...
_CHAIN_LENGTH = 1.4
#: ... and is believed when the loop takes this much longer than without it: then it is the chain
#: that takes the time.
_CHAIN_BINDS = 1.15
#: A clock under load outside these parts of the clock around is a disturbed measurement.
_CLOCK_PARTS = (0.5, 1.05)


class Bench(Protocol):
    """What a measurement needs of a machine (``Rig``, or a scripted one in tests)."""

    def compute(self, recipe: Recipe) -> Prepared:
        """Prepare a compute kernel."""

    def clock(self, recipe: Recipe, additions: int) -> Workload:
        """Prepare the clock under the load of a compute kernel."""

    def reserve(self, each_bytes: int, first_bytes: int) -> None:
        """Take and write memory."""

    def stream(self, access: str, footprint_bytes: int, alone_bytes: int) -> Prepared:
        """Prepare a memory kernel."""


class Session:
    """One measurement as it goes on: parts in order, results so far.

    Attributes:
        ceilings: finished so far, refused ones included.
        caveats: what the sweep says against the described caches.
        curves: the sweep.
    """

    def __init__(
        self, plan: Plan, bench: Bench, *, core: Microarchitecture, effort: Effort
    ) -> None:
        self._plan = plan
        self._bench = bench
        self._core = core
        self._effort = effort
        self._threads = len(plan.cpus)
        self.ceilings: list[Ceiling] = [make.refused_compute(*it) for it in plan.missing]
        self.caveats: list[str] = []
        self.curves: dict[str, Any] = {}

    def run(self, progress: Progress) -> bool:
        """Do all parts; returns whether an interrupt cut them short."""
        parts = self._parts()
        try:
            for place, (label, part) in enumerate(parts):
                progress(label, place / len(parts))
                part()
        except KeyboardInterrupt:
            return True
        progress("done", 1.0)
        return False

    def _parts(self) -> list[tuple[str, Callable[[], None]]]:
        plan = self._plan
        parts: list[tuple[str, Callable[[], None]]] = [
            (f"{recipe.path} ({recipe.instruction})", partial(self._compute, recipe))
            for recipe in plan.recipes
        ]
        for stream in plan.missing_streams:
            self.ceilings.append(
                make.refused_bandwidth(stream.level.name, stream.access, stream.level.reason)
            )
        if plan.streams:
            parts.append(("writing memory", self._reserve))
            parts.append(("sweep of sizes", self._sweep))
        parts += [(it.label, partial(self._stream, it)) for it in plan.streams]
        return parts

    def _reserve(self) -> None:
        self._bench.reserve(self._plan.each_bytes, self._plan.first_bytes)

    def _compute(self, recipe: Recipe) -> None:
        try:
            prepared = self._bench.compute(recipe)
            series, alone = self._samples(prepared)
            clock = self._clock(recipe, series)
            result = prepared.check()
        except (DeviceError, MachineError) as error:
            self.ceilings.append(make.refused_compute(recipe.path, str(error), recipe.instruction))
            return
        self.ceilings.append(
            make.compute_ceiling(
                recipe,
                series,
                alone=alone,
                clock=clock,
                core=self._core,
                evidence={**prepared.evidence, "result": result, "threads": self._threads},
            )
        )

    def _clock(self, recipe: Recipe, series: Series) -> Series | None:
        """The core clock while the vector units work.

        Wide multiply-adds can lower the clock for just as long as they run, so that a clock taken
        before and after is too high. A chain of additions in the same loop runs at the same time.
        """
        iteration_flop = recipe.flop * instructions_per_iteration(recipe) * self._threads
        iteration_s = iteration_flop / series.rates.median
        additions = round(_CHAIN_LENGTH * iteration_s * series.clock_hz)
        workload = self._bench.clock(recipe, additions)
        clock = measure(workload, effort=self._effort, samples=self._effort.samples_alone)
        binds = additions / clock.rates.median > _CHAIN_BINDS * iteration_s
        clean = not clock.disturbed_kept and not series.disturbed_kept
        low, high = _CLOCK_PARTS
        plausible = low < clock.rates.median / clock.clock_hz < high
        return clock if binds and clean and plausible else None

    def _sweep(self) -> None:
        rows: list[list[float]] = []
        for size in sweep_sizes(self._plan.levels, self._effort.sweep_factor):
            try:
                prepared = self._bench.stream("read", size, size)
            except (DeviceError, MachineError):
                return  # each bandwidth says the same, with its reason
            series = measure(prepared.whole, effort=SWEEP, samples=self._effort.samples_sweep)
            used = prepared.evidence["footprint_bytes_per_thread"]
            rows.append(
                [float(used), series.rates.median, series.rates.spread, series.disturbed_kept]
            )
        self.curves["read sweep"] = {
            "columns": ["bytes_per_thread", "byte_per_s", "spread", "disturbed_kept"],
            "rows": rows,
        }
        clean = [(row[0], row[1]) for row in rows if not row[3]]
        self.caveats += contradictions(self._plan.levels, clean).values()

    def _stream(self, stream: Stream) -> None:
        try:
            prepared = self._bench.stream(
                stream.access, stream.level.footprint_bytes, stream.alone.footprint_bytes
            )
            series, alone = self._samples(prepared)
            result = prepared.check()
        except (DeviceError, MachineError) as error:
            self.ceilings.append(
                make.refused_bandwidth(stream.level.name, stream.access, str(error))
            )
            return
        self.ceilings.append(
            make.bandwidth_ceiling(
                stream.level,
                stream.access,
                series,
                alone=alone,
                evidence={**prepared.evidence, "result": result, "threads": self._threads},
            )
        )

    def _samples(self, prepared: Prepared) -> tuple[Series, Series | None]:
        effort = self._effort
        # The check looks at what the last call of all threads left: one thread goes first.
        alone = (
            measure(prepared.alone, effort=effort, samples=effort.samples_alone)
            if prepared.alone
            else None
        )
        return measure(prepared.whole, effort=effort, samples=effort.samples), alone
