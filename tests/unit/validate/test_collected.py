"""Cases through the collector of ``mansard.profile`` itself, over a GPU that only notes launches."""

import types

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

from mansard.bench.cuda.compile import Target
from mansard.bench.cuda.device import Memory
from mansard.collect import session
from mansard.collect.instruments import CountedRanges
from mansard.collect.launches import Launch, Trace, calls
from mansard.collect.plan import Counted
from mansard.counters.plan import counters_for
from mansard.counters.table import load_table
from mansard.model.device import DeviceFacts
from mansard.validate import laboratory
from mansard.validate.judge import findings_of
from mansard.validate.laboratory import Laboratory

COLUMNS = ("duration_s", "bytes_l1", "bytes_l2", "bytes_dram", "bytes_dram_read", "bytes_shared")
COUNTERS = counters_for(load_table("gh100"), COLUMNS)


class Played:
    """Kernels run at once; a counter gives ``worth(counter, entry)`` for each launch."""

    versions = {"cupti": "13.0", "cuda": "13.0"}  # noqa: RUF012

    def __init__(self, worth):
        self.worth, self.clock, self.launches = worth, 1000, []

    def start(self, variant, *_, **__):
        self.launches.append(
            Launch(
                kind="kernel",
                name=variant.entry,
                device=0,
                stream=7,
                start_ns=self.now_ns() + 50,
                end_ns=self.now_ns() + 60,
                launch_ns=self.now_ns(),
                correlation=self.clock,
                grid=(1, 1, 1),
                block=(32, 1, 1),
            )
        )

    def now_ns(self):
        self.clock += 1
        return self.clock

    def start_trace(self):
        self.launches.clear()

    def stop_trace(self):
        return Trace(tuple(self.launches), start_ns=0, end_ns=self.now_ns())

    def rehearse(self):
        pass

    def usable(self, _devices):
        return COUNTERS

    def passes(self, counters):
        return 1 + len(counters) // 4

    def fits(self, *_):
        return True

    def count_kernels(self, counters, _kernels):
        return PlayedCounting(self, tuple(counters), whole=False)

    def count_ranges(self, counters, _ranges):
        return PlayedCounting(self, tuple(counters), whole=True)

    def facts(self, _device):
        return DeviceFacts(name="NVIDIA H200", chip="GH100")

    def table(self, _device):
        return load_table("gh100")

    def close(self):
        pass


class PlayedCounting:
    def __init__(self, played, counters, *, whole):
        self.played, self.counters, self.whole = played, counters, whole
        self.left = played.passes(counters)

    def start(self):
        self.played.launches.clear()

    def stop(self):
        self.left -= 1
        return self.left == 0

    def calls(self):
        return {0: calls(self.played.launches)}

    def enter(self):
        pass

    def leave(self):
        pass

    def read(self):
        rows = [
            tuple(self.played.worth(counter, each.name) for counter in self.counters)
            for each in self.played.launches
        ]
        if self.whole:
            rows = [tuple(map(sum, zip(*rows, strict=True)))]
        names = tuple(map(str, range(len(rows))))
        return {0: CountedRanges(names, Counted(self.counters, tuple(rows)))}

    def close(self):
        pass


@pytest.fixture
def played(monkeypatch):
    """Makes a laboratory around kernels that only are noted, with the real collector."""
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)

    def make(worth):
        instruments = Played(worth)
        monkeypatch.setattr(session, "CuptiInstruments", lambda _columns: instruments)
        monkeypatch.setattr(laboratory, "inspected", lambda *_, **__: None)
        made = Laboratory.__new__(Laboratory)
        gpu = types.SimpleNamespace(
            start=instruments.start,
            kernel=lambda _variant: None,
            allocate=lambda size: Memory(1, size),
            zero=lambda _memory: None,
            free=lambda *_: None,
        )
        made._device, made._session = 0, types.SimpleNamespace(gpu=gpu)
        made._target = Target("sm_90", features=True)
        return made

    return make


def test_what_is_counted_of_a_case_is_that_of_its_own_launch(played, cases):
    sectors = "lts__t_sectors_srcunit_tex.sum"
    worth = {"stream_read": 1 << 24, "stream_copy": 1 << 25}

    def value(counter, entry):
        return float(worth[entry]) if counter == sectors else 0.0

    chosen = [cases["copy"], cases["read"]]
    counted = played(value).count(chosen)
    copy, read = counted.cases
    # 32 bytes a sector; launches that only prepare the caches are not in it.
    assert (copy.launches, copy.columns["bytes_l2"]) == (1, float(1 << 30))
    assert (read.launches, read.columns["bytes_l2"]) == (1, float(1 << 29))
    assert counted.definitions["bytes_l2"].formula == f"32 * {sectors}"
    states = {f.quantity: f.state for f in findings_of(chosen[0], copy, load_table("gh100"))}
    assert states["bytes_l2"] == "holds"
    assert states["bytes_dram"] == "deviates"  # counted as 0
    assert states["bytes_dram_write"] == "unknown"  # not collected in this test


def test_a_counter_without_a_value_is_unknown_and_nothing_else(played, cases):
    def value(counter, _entry):
        return float("nan") if counter.startswith("dram") else 1.0

    (copy,) = played(value).count([cases["copy"]]).cases
    assert copy.columns["bytes_dram"] is None
    assert copy.columns["bytes_l2"] == 32.0
