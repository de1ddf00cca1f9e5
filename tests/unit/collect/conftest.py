"""A GPU that is not there: instruments that play back iterations made up by the test."""

import ctypes
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import pytest

from mansard.collect.cupti.library import Cupti
from mansard.collect.instruments import CountedRanges
from mansard.collect.launches import Launch, Trace, calls
from mansard.collect.plan import Counted

MICRO = 1000


def kernel(name="add", *, number=0, device=0, graph=0, duration=10 * MICRO, thread_start=None):
    """A kernel that starts 20 us after the one before it, launched 5 us earlier."""
    start = 1_000_000 + number * 20 * MICRO
    return Launch(
        kind="kernel",
        name=name,
        device=device,
        stream=7,
        start_ns=start,
        end_ns=start + duration,
        launch_ns=start - 5 * MICRO if thread_start is None else thread_start,
        correlation=number + 1,
        grid=(4, 1, 1),
        block=(128, 1, 1),
        graph=graph,
    )


def kernels(*names, **options):
    return tuple(kernel(name, number=number, **options) for number, name in enumerate(names))


@dataclasses.dataclass
class Program:
    """What each iteration launches, and what each kernel counts."""

    launches: Callable[[int], tuple[Launch, ...]]
    values: Callable[[str, Launch], float] = lambda counter, launch: float(len(launch.name))
    segments: Callable[[str, int], float] = lambda counter, segment: 100.0 * (segment + 1)


class FakeCounting:
    def __init__(self, gpu, counters, devices, named):
        self.gpu, self.counters, self.devices, self.named = gpu, tuple(counters), devices, named
        self.left = gpu.passes(counters)
        self.entered = 0
        self.seen = ()
        self.closed = False
        gpu.log.append(("ranges" if named else "kernels", self.counters))

    def start(self):
        self.entered = 0
        self.gpu.log.append("start")

    def stop(self):
        self.left -= 1
        self.seen = self.gpu.now_running()
        return self.left == 0

    def calls(self):
        if self.gpu.blind:
            return {}
        ran = [x for x in self.seen if x.kind == "kernel"]
        return {d: calls(x for x in ran if x.device == d) for d in self.devices}

    def enter(self):
        self.entered += 1

    def leave(self):
        pass

    def read(self):
        return {device: self._read(device) for device in self.devices}

    def _read(self, device):
        own = [x for x in self.seen if x.device == device and x.kind == "kernel"]
        program = self.gpu.program
        if self.named:
            total = {c: sum(program.values(c, x) for x in own) for c in self.counters}
            rows = [
                tuple(
                    total[c] if self.entered == 1 else program.segments(c, place)
                    for c in self.counters
                )
                for place in range(self.entered)
            ]
        else:
            rows = [tuple(program.values(c, x) for c in self.counters) for x in own]
        names = tuple(str(place) for place in range(len(rows)))
        return CountedRanges(names, Counted(self.counters, tuple(rows)))

    def close(self):
        self.closed = True


class FakeGpu:
    """Instruments of a test.

    ``iteration`` counts the iterations that the program has begun.
    """

    def __init__(self, program: Program, counters=("a.sum", "b.sum"), passes_of=None):
        self.program, self.counters, self._passes_of = program, counters, passes_of
        self.iteration = -1
        self.clock = 1_000_000
        self.log: list[object] = []
        self.countings: list[FakeCounting] = []
        self.fitting = 1000
        self.blind = False
        self.closed = 0
        self.ranges = ()

    def now_running(self):
        return self.program.launches(self.iteration)

    def now_ns(self):
        self.clock += 1
        return self.clock

    def start_trace(self):
        self.log.append("trace")

    def stop_trace(self):
        launches = self.now_running()
        end = max((x.end_ns for x in launches), default=self.clock) + MICRO
        return Trace(launches, self.ranges, start_ns=1_000_000 - 50 * MICRO, end_ns=end)

    def rehearse(self):
        self.log.append("rehearse")

    def usable(self, devices: Sequence[int]):
        del devices
        return self.counters

    def passes(self, counters: Sequence[str]):
        return self._passes_of(counters) if self._passes_of else len(counters)

    def fits(self, counters: Sequence[str], most_ranges: int):
        del most_ranges
        return len(counters) <= self.fitting

    def count_kernels(self, counters: Sequence[str], expected: Mapping[int, int]):
        return self._count(counters, tuple(expected), named=False)

    def count_ranges(self, counters: Sequence[str], ranges: Mapping[int, int]):
        return self._count(counters, tuple(ranges), named=True)

    def _count(self, counters, devices, *, named):
        counting = FakeCounting(self, counters, devices, named)
        self.countings.append(counting)
        return counting

    def close(self):
        self.closed += 1

    def detach(self):
        self.log.append("detach")


class FakeLibrary:
    """libcupti as far as it is called: it notes calls, and fails where the test says.

    ``failing`` gives the result code of a function; ``passes`` and ``ranges`` play a run.
    """

    def __init__(self):
        self.log = []
        self.failing = {}
        self.passes = 2
        self.ranges = [("0", (1.0, 2.0)), ("1", (3.0, 4.0))]
        self.done = 0
        self.request = self.complete = None
        self.filled = []

    def __getattr__(self, name):
        if not name.startswith("cupti"):
            raise AttributeError(name)

        def function(*arguments):
            self.log.append(name)
            if name in self.failing:
                return self.failing[name]
            plain = [getattr(each, "_obj", each) for each in arguments]
            return getattr(self, f"_{name}", lambda *_: 0)(*plain) or 0

        return function

    def called(self, *words):
        return [name for name in self.log if any(word in name for word in words)]

    def _cuptiGetVersion(self, number):
        number.value = 130000

    def _cuptiGetErrorMessage(self, code, text):
        text.value = f"code {code}".encode()

    def _cuptiGetTimestamp(self, stamp):
        stamp.value = 77

    def _cuptiProfilerHostInitialize(self, block):
        block.pHostObject = 11

    def _cuptiProfilerHostGetConfigImageSize(self, block):
        block.configImageSize = 16

    def _cuptiProfilerHostGetNumOfPasses(self, block):
        block.numOfPasses = self.passes

    def _cuptiProfilerHostEvaluateToGpuValues(self, block):
        values = (ctypes.c_double * block.numMetrics).from_address(block.pMetricValues)
        values[:] = self.ranges[block.rangeIndex][1]

    def _cuptiRangeProfilerEnable(self, block):
        block.pRangeProfilerObject = 22

    def _cuptiRangeProfilerGetCounterDataSize(self, block):
        block.counterDataSize = 8 * block.maxNumOfRanges

    def _cuptiRangeProfilerStop(self, block):
        self.done += 1
        block.isAllPassSubmitted = self.done == self.passes

    def _cuptiRangeProfilerGetCounterDataInfo(self, block):
        block.numTotalRanges = len(self.ranges)

    def _cuptiRangeProfilerCounterDataGetRangeInfo(self, block):
        block.rangeName = self.ranges[block.rangeIndex][0].encode()

    def _cuptiActivityRegisterCallbacks(self, request, complete):
        self.request, self.complete = request, complete

    def _cuptiActivityFlushAll(self, _flag):
        filled, self.filled = self.filled, []
        for address, valid in filled:
            self.complete(None, 0, address, 4 << 20, valid)

    def _cuptiActivityGetNextRecord(self, buffer, valid, record):
        size = 160
        step = buffer.value if not record.value else record.value + size
        if step >= buffer.value + valid.value:
            return 12
        record.value = step
        return 0

    def _cuptiSubscribe(self, _handle, callback, _user):
        self.callback = callback

    def lend(self):
        """Ask for a buffer as a launching thread does."""
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.request(ctypes.byref(buffer), ctypes.byref(size), ctypes.byref(most))
        assert size.value == 4 << 20
        return buffer.value


@pytest.fixture
def fake():
    return FakeLibrary()


@pytest.fixture
def cupti(fake):
    return Cupti(fake, "/somewhere/libcupti.so.13")


@pytest.fixture
def gpu():
    """Makes a fake GPU from kernel names, or from a function of the iteration's number."""

    def make(launches, **options):
        play = launches if callable(launches) else lambda _: launches
        values = options.pop("values", None)
        program = Program(play) if values is None else Program(play, values)
        return FakeGpu(program, **options)

    return make


@pytest.fixture
def make_kernel():
    return kernel


@pytest.fixture
def make_kernels():
    return kernels
