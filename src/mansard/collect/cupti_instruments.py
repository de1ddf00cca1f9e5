"""The instruments of a real GPU: CUPTI's activity records and its range profiler."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from mansard.collect import plan
from mansard.collect.cupti import activity, decode, params
from mansard.collect.cupti.calls import Call, CallWatch
from mansard.collect.cupti.driver import Driver, load_driver
from mansard.collect.cupti.host import CounterHost, count_passes
from mansard.collect.cupti.library import Cupti, load_cupti
from mansard.collect.cupti.ranges import RangeMode, RangeProfiler
from mansard.collect.demangle import demangle
from mansard.collect.instruments import CountedRanges
from mansard.collect.launches import GRAPH, Identity, Trace
from mansard.collect.plan import Counted
from mansard.counters.plan import counter_groups, counters_for
from mansard.counters.table import CounterTable, table_for
from mansard.errors import CollectError, DeviceError, MansardError
from mansard.model.device import DeviceFacts

_TRACED = (
    activity.KERNEL,
    activity.MEMCPY,
    activity.MEMSET,
    activity.PEER_COPY,
    activity.RUNTIME,
    activity.DRIVER,
    activity.MARKER,
)
#: Largest counter image; about 7 to 17 KB a counter and kernel on an H200.
_MOST_IMAGE_BYTES = 1 << 30
#: Ranges that fit beside those expected, so that a longer iteration is noticed and not cut.
_SPARE_RANGES = 32
_SPARE_SEGMENTS = 4


class CuptiInstruments:
    """Traces and counters of this process through CUPTI.

    Args:
        columns: columns of a run to make; all that the chip can count when None.

    Raises:
        DeviceError: no driver, GPU or CUPTI, or the GPU gives no counters.
    """

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._driver: Driver = load_driver()
        if not self._driver.device_count:
            raise DeviceError("the driver sees no GPU", slug="no-gpu")
        self._cupti: Cupti = load_cupti()
        self._columns = columns
        self._recorder = activity.recorder(self._cupti)
        self._chips: dict[int, str] = {}
        self._pass_counts: dict[tuple[str, ...], int] = {}
        self._open: list[_CuptiCounting] = []
        self._trace_start = 0
        self._tracing = False

    @property
    def versions(self) -> dict[str, str]:
        """What took part: CUPTI and the driver's CUDA."""
        return {
            "cupti": self._cupti.version,
            "cuda": ".".join(map(str, self._driver.cuda_version)),
        }

    def facts(self, device: int) -> DeviceFacts:
        """The GPU, with the chip's name in the counter library."""
        return self._driver.facts(device, self.chip(device))

    def chip(self, device: int) -> str:
        """Name of the chip in the counter library, e.g. ``GH100``."""
        if device not in self._chips:
            self._cupti.initialize_profiler()
            answer = self._cupti.call(
                "cuptiDeviceGetChipName", params.GetChipName(deviceIndex=device)
            )
            self._chips[device] = (answer.pChipName or b"").decode()
        return self._chips[device]

    def table(self, device: int) -> CounterTable:
        """The counter table of a GPU."""
        major, minor = self._driver.compute_capability(device)
        return table_for(chip=self.chip(device), compute_capability=f"{major}.{minor}")

    def now_ns(self) -> int:
        """The clock of the trace."""
        return self._cupti.timestamp_ns()

    def start_trace(self) -> None:
        """Record what runs; what was recorded before is forgotten."""
        self.wait()
        if self._tracing:
            self._recorder.drop()
        else:
            self._recorder.start(_TRACED)
            self._tracing = True
        self._trace_start = self.now_ns()

    def stop_trace(self) -> Trace:
        """Wait for the GPUs, end the record and give it."""
        self.wait()
        end = self.now_ns()
        self._tracing = False
        records = self._recorder.stop()
        return Trace(
            launches=decode.launches(records),
            ranges=decode.named_ranges(records, end),
            start_ns=self._trace_start,
            end_ns=end,
        )

    def rehearse(self) -> None:
        """Start and stop the counters once, so that a refusal comes early."""
        for device in range(self._driver.device_count):
            if self._driver.is_active(device):
                one = self.usable((device,))[:1]
                # Other failures come again where they matter, and are handled there.
                with (
                    contextlib.suppress(CollectError),
                    contextlib.closing(self._count(one, RangeMode.NAMED, {device: 1})) as counting,
                ):
                    counting.start()
                    counting.stop()

    def usable(self, devices: Sequence[int]) -> tuple[str, ...]:
        """Counters that were asked for and that these GPUs have."""
        chips = {self.chip(device) for device in devices}
        if len(chips) != 1:
            raise CollectError(
                f"GPUs of different chips ({', '.join(sorted(chips))}) in one process cannot be "
                "counted together: choose one with CUDA_VISIBLE_DEVICES"
            )
        table = self.table(devices[0])
        wanted = counters_for(table, self._columns or _all_columns(table))
        with CounterHost(self._cupti, self.chip(devices[0])) as host:
            found = plan.available(wanted, host.base_counters())
        if not found:
            raise DeviceError(f"chip {self.chip(devices[0])} has none of the counters wanted")
        return found

    def passes(self, counters: Sequence[str]) -> int:
        """How often the work must run to count them."""
        key = tuple(counters)
        if key not in self._pass_counts:
            chip = next(iter(self._chips.values()))
            self._pass_counts[key] = count_passes(self._cupti, chip, key)
        return self._pass_counts[key]

    def fits(self, counters: Sequence[str], most_ranges: int) -> bool:
        """Whether there is memory for their images."""
        device = next(iter(self._chips))
        with (
            self._driver.context(device) as context,
            contextlib.closing(RangeProfiler(self._cupti, context)) as profiler,
        ):
            return profiler.image_bytes(counters, most_ranges) <= _MOST_IMAGE_BYTES

    def count_kernels(
        self, counters: Sequence[str], kernels: Mapping[int, int]
    ) -> "_CuptiCounting":
        """Count each kernel apart."""
        most = {device: count + _SPARE_RANGES for device, count in kernels.items()}
        return self._count(counters, RangeMode.KERNEL, most)

    def count_ranges(self, counters: Sequence[str], ranges: Mapping[int, int]) -> "_CuptiCounting":
        """Count what runs between ``enter`` and ``leave``."""
        most = {device: count + _SPARE_SEGMENTS for device, count in ranges.items()}
        return self._count(counters, RangeMode.NAMED, most)

    def wait(self) -> None:
        """Wait until every GPU in use has done what was submitted."""
        for device in range(self._driver.device_count):
            if self._driver.is_active(device):
                self._driver.synchronize(device)

    def close(self) -> None:
        """Leave everything as it was; may be called again."""
        with contextlib.ExitStack() as stack:
            if self._tracing:  # else it may be the trace of another profile
                self._tracing = False
                stack.callback(self._recorder.close)
            for counting in self._open:
                stack.callback(counting.close)

    def detach(self) -> None:
        """Take CUPTI out of the process: nothing can be measured here again.

        What CUPTI leaves in every driver call made a step that is bound by launches 11 to 32 %
        slower on an H200 until this; see docs/validation/profile-overhead-h200.json.
        """
        # Where it is refused the program is merely slower: no reason to disturb it.
        with contextlib.suppress(MansardError):
            self._cupti.run("cuptiFinalize")

    def _count(
        self, counters: Sequence[str], mode: RangeMode, most_ranges: Mapping[int, int]
    ) -> "_CuptiCounting":
        counting = _CuptiCounting(self, CallWatch(self._cupti))
        self._open.append(counting)
        counting.released = self._open.remove
        try:
            for device, most in most_ranges.items():
                host = counting.add_host(
                    device, CounterHost(self._cupti, self.chip(device), counters)
                )
                with self._driver.context(device) as context:
                    profiler = counting.add_profiler(
                        device, RangeProfiler(self._cupti, context), context
                    )
                    profiler.configure(host, mode=mode, most_ranges=most)
        except BaseException:
            counting.close()
            raise
        return counting


class _CuptiCounting:
    """One configuration of counters on one or several GPUs."""

    def __init__(self, instruments: CuptiInstruments, watch: CallWatch) -> None:
        self._instruments, self._watch = instruments, watch
        self._profilers: dict[int, RangeProfiler] = {}
        self._hosts: dict[int, CounterHost] = {}
        self._contexts: dict[int, int] = {}
        self._calls: tuple[Call, ...] = ()
        self._segment: int | None = None
        self.released: Callable[[_CuptiCounting], None] = _ignore

    def add_host(self, device: int, host: CounterHost) -> CounterHost:
        """Take over the counters of a GPU."""
        self._hosts[device] = host
        return host

    def add_profiler(self, device: int, profiler: RangeProfiler, context: int) -> RangeProfiler:
        """Take over the profiler of a GPU."""
        self._profilers[device], self._contexts[context] = profiler, device
        return profiler

    def start(self) -> None:
        """Begin a pass."""
        self._instruments.wait()
        self._segment = None
        for profiler in self._profilers.values():
            profiler.start()
        self._watch.start()

    def stop(self) -> bool:
        """End the pass; True after the last one."""
        self._calls = self._watch.stop()
        self._instruments.wait()
        last = [profiler.stop() for profiler in self._profilers.values()]
        return all(last)

    def calls(self) -> Mapping[int, tuple[Identity, ...]]:
        """Launches that the last pass made, by GPU; empty where they could not be seen."""
        if not self._watch.available:
            return {}
        only = next(iter(self._profilers)) if len(self._profilers) == 1 else None
        found: dict[int, list[Identity]] = {device: [] for device in self._profilers}
        for call in self._calls:
            device = self._contexts.get(call.context, only)
            if device is not None:
                found[device].append(_identity(call))
        return {device: tuple(made) for device, made in found.items()}

    def enter(self) -> None:
        """Close the range that is open, if any, and open the next."""
        upcoming = 0 if self._segment is None else self._segment + 1
        self._close_range()
        self._segment = upcoming
        for profiler in self._profilers.values():
            profiler.push(str(upcoming))

    def leave(self) -> None:
        """Close the range."""
        self._close_range()

    def _close_range(self) -> None:
        if self._segment is None:
            return
        self._instruments.wait()
        for profiler in self._profilers.values():
            profiler.pop()

    def read(self) -> Mapping[int, CountedRanges]:
        """The counters by GPU."""
        found = {}
        for device, profiler in self._profilers.items():
            ranges = profiler.read()
            counted = Counted(self._hosts[device].counters, ranges.values)
            found[device] = CountedRanges(ranges.names, counted, ranges.dropped)
        return found

    def close(self) -> None:
        """Give the counters back, profiler before host: the other order crashes at exit."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.released, self)
            self.released = _ignore
            stack.callback(self._watch.close)
            for host in self._hosts.values():
                stack.callback(host.close)
            for profiler in self._profilers.values():
                stack.callback(profiler.close)
            self._profilers, self._hosts = {}, {}


def _ignore(_counting: _CuptiCounting) -> None:
    """Nothing to release."""


def _identity(call: Call) -> Identity:
    if call.grid is None:
        return GRAPH
    x, y, z, *block = call.grid
    return Identity(demangle(call.symbol), (x, y, z), (block[0], block[1], block[2]))


def _all_columns(table: CounterTable) -> Iterator[str]:
    """Time, clock, vector work, bytes of the levels, and tensor work of every precision."""
    for group in counter_groups(table):
        if group.name == "base" or (group.name.startswith("tensor ") and len(group.columns) == 1):
            yield from group.columns
