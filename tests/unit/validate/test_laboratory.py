"""What the child does with a GPU, on one that notes what it is told."""

import contextlib
import types

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

import duckdb
import numpy as np

from mansard.bench.cuda.compile import Target
from mansard.bench.cuda.device import Memory
from mansard.collect.instruments import CountedRanges
from mansard.collect.plan import Counted
from mansard.counters.limits import counters_of_limits, stated_limits
from mansard.errors import CollectError, DeviceError
from mansard.model.columns import QUANTITY_COLUMNS
from mansard.model.notice import Notice
from mansard.model.provenance import Definition, Provenance
from mansard.model.run import Run
from mansard.validate import laboratory
from mansard.validate.cases import Case, ProductLaunch, exactly
from mansard.validate.laboratory import Laboratory
from mansard.validate.machine_code import ChainWork
from mansard.validate.rows import sums_by_phase


class FakeGpu:
    def __init__(self):
        self.log, self.sms, self.next = [], 132, 0
        self.stream = types.SimpleNamespace(sync=lambda: None)
        self.refuse = None

    def kernel(self, variant):
        if self.refuse:
            raise DeviceError(self.refuse)

    def allocate(self, size):
        self.next += 1
        self.log.append(("allocate", size))
        return Memory(self.next << 40, size)

    def zero(self, block):
        self.log.append(("zero", block.address))

    def free(self, *blocks):
        self.log += [("free", block.address) for block in blocks]

    def start(self, variant, *arguments, blocks=None):
        self.log.append(("start", variant.entry, arguments, blocks))


def write_run(path, rows):
    """A run file as far as it is read: (phase, kind, {column: value})."""
    names = [column.name for column in QUANTITY_COLUMNS]
    columns = ", ".join(f'"{name}" DOUBLE' for name in names)
    table = duckdb.connect()
    table.execute(f"CREATE TABLE run (phase VARCHAR, kind VARCHAR, {columns})")
    for phase, kind, values in rows:
        table.execute(
            f"INSERT INTO run VALUES ({', '.join('?' * (len(names) + 2))})",
            [phase, kind, *(values.get(name) for name in names)],
        )
    table.execute(f"COPY run TO '{path}' (FORMAT parquet)")
    return Run(
        (path,),
        (
            Provenance(
                definitions={"bytes_l2": Definition(formula="32 * x.sum")},
                notices=(Notice("counted-zero", "usual"), Notice("names-unchecked", "others")),
            ),
        ),
    )


class FakeProfile:
    """One step, then done; the run has one launch a phase that was open while something started."""

    def __init__(self, gpu, path):
        self.gpu, self.path, self.steps = gpu, path, 0
        self.failure = self.run = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def done(self):
        if self.steps < 2:
            return False
        rows, phase = [], None
        for entry in self.gpu.log[self.begin :]:
            if entry[0] == "phase":
                phase = entry[1]
            elif entry[0] == "start":
                rows.append((phase, "kernel", {"bytes_l2": 5.0}))
        self.run = write_run(self.path, rows)
        return True

    @contextlib.contextmanager
    def step(self):
        self.begin = len(self.gpu.log)
        yield
        self.steps += 1


@pytest.fixture
def gpu():
    return FakeGpu()


@pytest.fixture
def bench(gpu, monkeypatch):
    """A laboratory around the fake GPU; machine code and profile are stood in for."""
    made = Laboratory.__new__(Laboratory)
    made._device, made._session = 0, types.SimpleNamespace(gpu=gpu)
    made._target = Target("sm_90", features=True)

    @contextlib.contextmanager
    def phase(name):
        gpu.log.append(("phase", name))
        yield
        gpu.log.append(("phase", None))

    monkeypatch.setattr(laboratory, "phase", phase)
    monkeypatch.setattr(laboratory, "profile", lambda path, **_: FakeProfile(gpu, path))
    monkeypatch.setattr(laboratory, "inspected", lambda *_, **__: None)
    monkeypatch.setattr(laboratory, "can_inspect", lambda: True)
    return made


def test_only_the_last_launch_of_a_case_is_in_its_phase(bench, gpu, cases):
    found = bench.count([cases["read"]])
    (count,) = found.cases
    assert (count.launches, count.columns["bytes_l2"]) == (1, 5.0)
    step = [e for e in gpu.log if e[0] in ("phase", "start")][:5]
    assert [e[:2] for e in step] == [
        ("start", "stream_read"),
        ("start", "stream_read"),
        ("phase", "read"),
        ("start", "stream_read"),
        ("phase", None),
    ]


def test_arguments_have_the_types_of_the_kernel(bench, gpu, cases):
    bench.count([cases["fp32 fma, half predicated off"]])
    _, entry, arguments, blocks = next(e for e in gpu.log if e[0] == "start")
    assert (entry, blocks) == ("half_on_chain", 528)
    *memory, mask, lanes, iterations = arguments
    assert [type(each) for each in memory] == [Memory] * 4
    assert (mask, lanes, iterations) == (np.uint32(4095), np.uint32(0x55555555), np.int32(64))
    assert (mask.dtype, lanes.dtype, iterations.dtype) == (np.uint32, np.uint32, np.int32)


def test_a_missing_total_is_the_null_address_and_counts_are_64_bits_wide(bench, gpu, cases):
    bench.count([cases["copy"]])
    arguments = next(e for e in gpu.log if e[0] == "start")[2]
    assert arguments[3] == 0
    assert type(arguments[3]) is int
    assert (arguments[4], arguments[4].dtype) == (32768, np.uint64)


def test_buffers_of_one_name_are_one_memory_zeroed_and_freed(bench, gpu, cases):
    bench.count([cases["copy"], cases["read"], cases["shared read"]])
    sizes = [e[1] for e in gpu.log if e[0] == "allocate"]
    assert sizes == [512 << 20] * 3
    zeroed = {e[1] for e in gpu.log if e[0] == "zero"}
    assert {e[1] for e in gpu.log if e[0] == "free"} == zeroed
    assert len(zeroed) == 3


def test_a_case_without_a_before_runs_twice_to_settle(bench, gpu, cases):
    bench.count([cases["L2-resident read"]])
    step = [e[0] for e in gpu.log if e[0] in ("phase", "start")][:5]
    assert step == ["start", "start", "phase", "start", "phase"]


def test_a_kernel_that_cannot_be_had_is_lacking_and_the_others_are_counted(
    bench, monkeypatch, cases
):
    def inspected(variant, arch, wanted, *, needed):
        assert not needed
        assert arch == ("sm_90a" if variant.feature else "sm_90")
        if variant.entry == "bulk_multicast":
            raise DeviceError("machine code: 0 of 1 UBLKCP in the loop")
        return ChainWork(512.0, 4.0)

    monkeypatch.setattr(laboratory, "inspected", inspected)
    multicast, copy = bench.count([cases["bulk multicast"], cases["copy"]]).cases
    assert multicast.lacking.startswith("machine code")
    assert multicast.launches == 0
    assert (copy.loop_flop, copy.once_flop, copy.launches) == (512.0, 4.0, 1)


def test_code_for_exactly_this_chip_is_lacking_on_its_successor(bench, cases):
    bench._target = Target("sm_90", features=False, remark="compiled for sm_90")
    (count,) = bench.count([cases["bf16 wgmma"]]).cases
    assert "exactly this chip" in count.lacking


def test_a_library_that_is_not_there_is_lacking(bench, monkeypatch):
    from mansard.bench.cuda import gemm

    def product(*_):
        raise DeviceError("cuBLASLt is not installed (pip install 'mansard[gemm]')")

    monkeypatch.setattr(gemm, "Product", product)
    case = Case(
        name="GEMM",
        group="library",
        launch=ProductLaunch(operand="fp16", n=8),
        expected=(exactly("flop_tensor_fp16", 1024.0, "2 x 8^3"),),
    )
    (count,) = bench.count([case]).cases
    assert "not installed" in count.lacking


def test_the_parts_in_which_a_library_forms_sums_come_with_the_count(bench, monkeypatch):
    from mansard.bench.cuda import gemm

    class Product:
        algorithms = ("first",)

        def __init__(self, *_):
            self.start = lambda _: None

        def parts(self, algorithm):
            return {"first": 5}[algorithm]

        def close(self):
            pass

    monkeypatch.setattr(gemm, "Product", Product)
    case = Case(
        name="GEMM",
        group="library",
        launch=ProductLaunch(operand="fp32", n=8),
        expected=(exactly("flop_vector_fp32", 1024.0, "2 x 8^3"),),
    )
    (count,) = bench.count([case]).cases
    assert (count.lacking, count.parts) == ("", 5)


def test_the_usual_notices_are_left_out_and_definitions_come_along(bench, cases):
    found = bench.count([cases["copy"]])
    assert found.remarks == ("others",)
    assert found.definitions["bytes_l2"].formula == "32 * x.sum"


def test_machine_code_that_cannot_be_read_is_a_remark(bench, monkeypatch, cases):
    monkeypatch.setattr(laboratory, "can_inspect", lambda: False)
    assert "nvdisasm is not installed" in bench.count([cases["copy"]]).remarks[-1]


def test_a_profile_that_failed_is_an_error(bench, gpu, monkeypatch, cases):
    class Failed(FakeProfile):
        def __exit__(self, *_):
            self.failure = CollectError("the counters were taken away")

    monkeypatch.setattr(laboratory, "profile", lambda path, **_: Failed(gpu, path))
    with pytest.raises(CollectError, match="taken away"):
        bench.count([cases["copy"]])
    assert [e[0] for e in gpu.log].count("free") == 3


class FakeHost:
    def __init__(self, _cupti, chip):
        assert chip == "GH100"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def base_counters(self):
        names = counters_of_limits(stated_limits())
        return frozenset(
            n.split(".")[0] for n in names if "dram" in n or "ffma_" in n or "sm__c" in n
        )


class FakeCounting:
    """Two passes; every counter is worth 3, of one range."""

    def __init__(self, counters, log):
        self.counters, self.log, self.left = counters, log, 2

    def start(self):
        self.log.append("start pass")

    def enter(self):
        self.log.append("enter")

    def leave(self):
        self.log.append("leave")

    def stop(self):
        self.left -= 1
        return self.left == 0

    def read(self):
        rows = ((3.0,) * len(self.counters),)
        return {0: CountedRanges(("0",), Counted(self.counters, rows))}

    def close(self):
        self.log.append("close")


@pytest.fixture
def limited(bench, gpu, monkeypatch, opening):
    """The laboratory with CUPTI stood in for; `refuse` is a part of a name that it does not take."""
    bench.opening = opening

    class Instruments:
        refuse = None

        def count_ranges(self, counters, ranges):
            assert ranges == {0: 1}
            if self.refuse and any(self.refuse in each for each in counters):
                raise CollectError("no such counter")
            return FakeCounting(tuple(counters), gpu.log)

        def close(self):
            pass

    monkeypatch.setattr(laboratory, "CuptiInstruments", Instruments)
    monkeypatch.setattr(laboratory, "CounterHost", FakeHost)
    monkeypatch.setattr(laboratory, "load_cupti", lambda: None)
    bench.instruments = Instruments
    return bench


FFMA = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"
DRAM = "dram__bytes.sum.peak_sustained"


def test_limits_are_read_in_all_passes_while_a_kernel_runs(limited, gpu):
    found = limited.limits()
    assert (found.values[FFMA], found.values[DRAM]) == (3.0, 3.0)
    order = [e if isinstance(e, str) else e[0] for e in gpu.log]
    # The kernel is loaded and the GPU is busy before, or the clocks would be those of one at rest.
    assert order[: order.index("start pass")].count("start") > 1
    assert order[order.index("start pass") :] == [
        *("start pass", "enter", "start", "leave") * 2,
        *("close", "free", "free"),
    ]
    assert "dram__bytes" in found.base_counters


def test_a_counter_that_cupti_does_not_take_costs_its_own_limit_alone(limited):
    limited.instruments.refuse = "dram"
    values = limited.limits().values
    assert values[FFMA] == 3.0
    assert DRAM not in values


def test_limits_of_which_none_can_be_read_are_an_error(limited):
    limited.instruments.refuse = "_"
    with pytest.raises(CollectError, match="gave no values"):
        limited.limits()


def test_sums_are_unknown_where_one_launch_is(tmp_path):
    run = write_run(
        tmp_path / "r.parquet",
        [
            ("GEMM", "kernel", {"bytes_l2": 1.0, "bytes_l1": 1.0, "sm_clock_hz": 1e9}),
            ("GEMM", "kernel", {"bytes_l2": 2.0, "sm_clock_hz": 3e9}),
            ("GEMM", "memset", {"bytes_l2": 9.0}),
            ("copy", "kernel", {"bytes_l2": 0.0}),
            (None, "kernel", {"bytes_l2": 7.0}),
        ],
    )
    found = sums_by_phase(run)
    assert {*found} == {"GEMM", "copy"}
    launches, columns = found["GEMM"]
    assert launches == 2
    assert (columns["bytes_l2"], columns["bytes_l1"]) == (3.0, None)
    assert columns["sm_clock_hz"] == 2e9
    assert found["copy"][1]["bytes_l2"] == 0.0
