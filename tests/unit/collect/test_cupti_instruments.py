"""The instruments of a real GPU, over a library and a driver that are not there."""

import contextlib

import pytest

from mansard.collect import cupti_instruments
from mansard.collect.cupti.calls import Call
from mansard.collect.cupti_instruments import CuptiInstruments
from mansard.collect.launches import GRAPH, Identity
from mansard.errors import CollectError, DeviceError, PermissionDeniedError
from mansard.model.device import DeviceFacts

BASE = (
    "gpu__time_duration",
    "sm__cycles_elapsed",
    "dram__bytes",
    "sm__ops_path_tensor_src_bf16_dst_fp32",
)


class Driver:
    """Two GPUs, of which the first is in use."""

    device_count = 2
    cuda_version = (13, 0)

    def __init__(self):
        self.active, self.waited = {0}, []

    def is_active(self, device):
        return device in self.active

    def synchronize(self, device):
        self.waited.append(device)

    @contextlib.contextmanager
    def context(self, device):
        yield 100 + device

    def compute_capability(self, device):
        del device
        return 9, 0

    def facts(self, device, chip=None):
        return DeviceFacts(name=f"GPU {device}", chip=chip)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def instruments(cupti, driver, fake, monkeypatch):
    def chip(block):
        block.pChipName = b"GH100"

    names = [name.encode() for name in BASE]

    def base(block):
        import ctypes

        block.ppMetricNames = (ctypes.c_char_p * len(names))(*names)
        block.numMetrics = len(names)

    fake._cuptiDeviceGetChipName = chip
    fake._cuptiProfilerHostGetBaseMetrics = base
    monkeypatch.setattr(cupti_instruments, "load_cupti", lambda: cupti)
    monkeypatch.setattr(cupti_instruments, "load_driver", lambda: driver)
    return CuptiInstruments(("duration_s", "bytes_dram", "flop_tensor_bf16", "flop_tensor_fp16"))


def test_counters_are_those_asked_for_that_the_chip_has(instruments):
    assert instruments.usable((0,)) == (
        "gpu__time_duration.sum",
        "dram__bytes.sum",
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    )


def test_gpus_of_different_chips_are_not_counted_together(instruments):
    instruments._chips = {0: "GH100", 1: "GA100"}
    with pytest.raises(CollectError, match="CUDA_VISIBLE_DEVICES"):
        instruments.usable((0, 1))


def test_a_configuration_ends_with_profilers_before_hosts_and_frees_the_callbacks(
    instruments, fake
):
    instruments.usable((0,))
    counting = instruments.count_kernels(("dram__bytes.sum", "gpu__time_duration.sum"), {0: 2})
    last = False
    while not last:
        counting.start()
        last = counting.stop()
    found = counting.read()
    counting.close()
    counting.close()
    assert found[0].counted.rows == ((1.0, 2.0), (3.0, 4.0))
    ends = fake.called("RangeProfilerDisable", "Deinitialize", "Unsubscribe")
    assert ends[-3:] == [
        "cuptiRangeProfilerDisable",
        "cuptiProfilerHostDeinitialize",
        "cuptiUnsubscribe",
    ]


@pytest.mark.parametrize(
    "function",
    [
        "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerEnable",
        "cuptiProfilerHostConfigAddMetrics",
        "cuptiRangeProfilerCounterDataImageInitialize",
    ],
)
def test_a_refused_configuration_leaves_nothing_open(instruments, fake, function):
    instruments.usable((0,))
    fake.failing[function] = 35
    with pytest.raises(PermissionDeniedError):
        instruments.count_kernels(("dram__bytes.sum",), {0: 2})
    enabled = fake.log.count("cuptiRangeProfilerEnable") - (function == "cuptiRangeProfilerEnable")
    assert enabled == fake.log.count("cuptiRangeProfilerDisable")
    hosts = fake.log.count("cuptiProfilerHostInitialize")
    assert hosts == fake.log.count("cuptiProfilerHostDeinitialize")
    assert instruments._open == []


def test_closing_the_instruments_ends_what_is_still_counting(instruments, fake):
    instruments.usable((0,))
    counting = instruments.count_ranges(("dram__bytes.sum",), {0: 1})
    counting.start()
    counting.enter()
    instruments.close()
    assert fake.called("Stop", "Disable")[-2:] == [
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDisable",
    ]
    instruments.close()


def test_ranges_are_numbered_and_wait_for_the_gpu_at_each_border(instruments, fake, driver):
    pushed = []
    fake._cuptiRangeProfilerPushRange = lambda block: pushed.append(block.pRangeName)
    instruments.usable((0,))
    counting = instruments.count_ranges(("dram__bytes.sum",), {0: 3})
    counting.start()
    driver.waited.clear()
    counting.enter()
    counting.enter()
    counting.leave()
    assert pushed == [b"0", b"1"]
    assert fake.log.count("cuptiRangeProfilerPopRange") == 2
    assert driver.waited == [0, 0]


def test_calls_are_told_by_gpu_with_readable_names(instruments):
    instruments.usable((0,))
    counting = instruments.count_kernels(("dram__bytes.sum",), {0: 1, 1: 1})
    counting._calls = (
        Call("_Z3addPfS_i", (1, 2, 3, 32, 1, 1), 101, 1),
        Call("", None, 100, 2),
        Call("other", (1, 1, 1, 1, 1, 1), 999, 3),
    )
    assert counting.calls() == {
        0: (GRAPH,),
        1: (Identity("add(float*, float*, int)", (1, 2, 3), (32, 1, 1)),),
    }


def test_with_one_gpu_a_context_of_its_own_counts_too(instruments):
    instruments.usable((0,))
    counting = instruments.count_kernels(("dram__bytes.sum",), {0: 1})
    counting._calls = (Call("k", (1, 1, 1, 1, 1, 1), 4242, 1),)
    assert len(counting.calls()[0]) == 1


def test_the_rehearsal_passes_on_a_refusal_and_keeps_quiet_on_the_rest(instruments, fake):
    instruments.rehearse()
    fake.failing["cuptiRangeProfilerStart"] = 999
    instruments.rehearse()
    fake.failing["cuptiRangeProfilerEnable"] = 35
    with pytest.raises(PermissionDeniedError):
        instruments.rehearse()
    assert instruments._open == []


def test_only_gpus_in_use_are_waited_for(instruments, driver):
    instruments.wait()
    assert driver.waited == [0]


def test_the_image_of_too_many_kernels_does_not_fit(instruments):
    instruments.usable((0,))
    # The fake library wants 8 bytes a range; the limit is 1 GiB.
    assert instruments.fits(("dram__bytes.sum",), 1 << 27)
    assert not instruments.fits(("dram__bytes.sum",), (1 << 27) + 1)


def test_a_driver_without_gpus_is_refused(cupti, driver, monkeypatch):
    driver.device_count = 0
    monkeypatch.setattr(cupti_instruments, "load_cupti", lambda: cupti)
    monkeypatch.setattr(cupti_instruments, "load_driver", lambda: driver)
    with pytest.raises(DeviceError, match="no GPU"):
        CuptiInstruments()
