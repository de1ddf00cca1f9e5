"""The CUPTI layer over a library that is not there: order of calls, errors, buffers, clean ends."""

import ctypes
import importlib.util
import re
from pathlib import Path

import pytest

from mansard.collect.cupti import activity, calls, failures, library, records
from mansard.collect.cupti.activity import KERNEL, ActivityRecorder
from mansard.collect.cupti.calls import CallWatch
from mansard.collect.cupti.host import CounterHost, count_passes
from mansard.collect.cupti.ranges import RangeMode, RangeProfiler
from mansard.errors import CollectError, DeviceError, MansardError, PermissionDeniedError


def test_the_version_is_told_as_that_of_cuda(cupti):
    assert cupti.version == "13.0"


@pytest.mark.parametrize(
    ("number", "text"), [(24, "12.6"), (28, "12.9"), (130501, "13.5"), (18, "API 18")]
)
def test_old_and_new_version_numbers_are_read(number, text):
    assert library._version_text(number) == text


def test_the_size_told_to_cupti_is_that_of_the_oldest_layout(fake, cupti):
    seen = []
    fake._cuptiRangeProfilerEnable = lambda block: seen.append(block.structSize)
    RangeProfiler(cupti, 5)
    assert seen == [32]


def test_missing_permission_says_how_to_get_it(fake, cupti):
    fake.failing["cuptiRangeProfilerEnable"] = 35
    with pytest.raises(PermissionDeniedError) as caught:
        RangeProfiler(cupti, 5)
    text = str(caught.value)
    assert "cuptiRangeProfilerEnable" in text
    assert "NVreg_RestrictProfilingToAdminUsers=0" in text
    assert "SYS_ADMIN" in text
    assert "--level trace" in text
    assert caught.value.slug == "permission"


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [
        (26, DeviceError, "dcgmi profiling --pause"),
        (39, CollectError, "another profiler"),
        (43, DeviceError, "MIG"),
        (33, DeviceError, "vGPU"),
        (40, PermissionDeniedError, "enable_profiling=1"),
        (46, DeviceError, "newer nvidia-cuda-cupti"),
        (8, CollectError, "--level phases"),
        (999, CollectError, "CUDA graph"),
        (12345, CollectError, "code 12345"),
    ],
)
def test_each_failure_is_ours_and_has_a_remedy(fake, cupti, code, kind, word):
    fake.failing["cuptiRangeProfilerStart"] = code
    profiler = RangeProfiler(cupti, 5)
    with pytest.raises(kind, match=re.escape(word)):
        profiler.start()


def test_result_codes_have_the_names_of_the_vendors_header():
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or ()) if spec else ()
    headers = [Path(root) / "cu13/include/cupti_result.h" for root in roots]
    header = next((each for each in headers if each.exists()), None)
    if header is None:
        pytest.skip("needs the headers of the nvidia-cuda-cupti wheel")
    named = dict(re.findall(r"CUPTI_ERROR_(\w+)\s*=\s*(\d+)", header.read_text()))
    for code, meaning in failures.RESULTS.items():
        assert named[meaning.name] == str(code)


def test_a_counter_host_tells_passes_and_is_freed(fake, cupti):
    assert count_passes(cupti, "GH100", ("a.sum", "b.sum")) == 2
    assert fake.log[-1] == "cuptiProfilerHostDeinitialize"


def test_a_counter_host_that_cannot_be_configured_is_freed_too(fake, cupti):
    fake.failing["cuptiProfilerHostConfigAddMetrics"] = 17
    with pytest.raises(CollectError, match="no such counter"):
        CounterHost(cupti, "GH100", ("nonsense.sum",))
    assert fake.log.count("cuptiProfilerHostDeinitialize") == 1


def test_the_host_side_works_where_the_driver_side_does_not(fake, cupti):
    fake.failing["cuptiProfilerInitialize"] = 999
    assert count_passes(cupti, "GH100", ("a.sum",)) == 2


def test_ranges_come_back_with_their_counters_after_the_last_pass(fake, cupti):
    host = CounterHost(cupti, "GH100", ("a.sum", "b.sum"))
    profiler = RangeProfiler(cupti, 5)
    profiler.configure(host, mode=RangeMode.KERNEL, most_ranges=8)
    ends = []
    for _ in range(2):
        profiler.start()
        ends.append(profiler.stop())
    found = profiler.read()
    profiler.close()
    host.close()
    assert ends == [False, True]
    assert found.names == ("0", "1")
    assert found.values == ((1.0, 2.0), (3.0, 4.0))
    order = fake.called("Start", "Stop", "Decode", "Disable", "Deinit")
    assert order == [
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData",
        "cuptiRangeProfilerDisable",
        "cuptiProfilerHostDeinitialize",
    ]


def test_closing_in_the_middle_of_a_pass_stops_it_first_and_only_once(fake, cupti):
    host = CounterHost(cupti, "GH100", ("a.sum",))
    profiler = RangeProfiler(cupti, 5)
    profiler.configure(host, mode=RangeMode.NAMED, most_ranges=1)
    profiler.start()
    profiler.close()
    profiler.close()
    assert fake.called("Stop", "Disable") == ["cuptiRangeProfilerStop", "cuptiRangeProfilerDisable"]


def test_the_counters_are_handed_back_even_if_stopping_fails(fake, cupti):
    profiler = RangeProfiler(cupti, 5)
    profiler.start()
    fake.failing["cuptiRangeProfilerStop"] = 999
    with pytest.raises(CollectError):
        profiler.close()
    assert fake.log[-1] != "cuptiRangeProfilerStop"
    assert "cuptiRangeProfilerDisable" in fake.log


def kernel_record(address, name=b"add", correlation=1, start=100, end=200):
    record = records.KernelRecord.from_address(address)
    record.kind, record.correlationId = KERNEL, correlation
    record.start, record.end, record.name = start, end, name
    return 160


def test_records_of_all_buffers_are_read(fake, cupti):
    recorder = ActivityRecorder(cupti)
    recorder.start([KERNEL])
    one, two = fake.lend(), fake.lend()
    fake.filled = [(one, kernel_record(one, b"one")), (two, kernel_record(two, b"two"))]
    assert [record.name for record in recorder.stop()] == [b"one", b"two"]


def test_what_was_recorded_before_the_start_is_dropped(fake, cupti):
    recorder = ActivityRecorder(cupti)
    recorder.start([KERNEL])
    recorder.close()
    late = fake.lend()
    fake.filled = [(late, kernel_record(late, b"before"))]
    recorder.start([KERNEL])
    assert recorder.stop() == []


def test_what_is_dropped_does_not_come_back(fake, cupti):
    recorder = ActivityRecorder(cupti)
    recorder.start([KERNEL])
    early = fake.lend()
    fake.filled = [(early, kernel_record(early, b"early"))]
    recorder.drop()
    late = fake.lend()
    fake.filled = [(late, kernel_record(late, b"late"))]
    assert [record.name for record in recorder.stop()] == [b"late"]


def test_buffers_of_another_profiler_are_not_read(fake, cupti):
    recorder = ActivityRecorder(cupti)
    recorder.start([KERNEL])
    own = fake.lend()
    foreign = (ctypes.c_uint64 * 100)()
    fake.filled = [
        (ctypes.addressof(foreign), 160),
        (own, kernel_record(own, b"ours")),
    ]
    assert [record.name for record in recorder.stop()] == [b"ours"]


def test_every_start_takes_the_callbacks_back_from_whoever_took_them(fake, cupti):
    recorder = ActivityRecorder(cupti)
    for _ in range(2):
        recorder.start([KERNEL])
        fake.request = None
        recorder.stop()
    assert fake.log.count("cuptiActivityRegisterCallbacks") == 2


def test_two_recordings_at_once_are_refused(cupti):
    recorder = ActivityRecorder(cupti)
    recorder.start([KERNEL])
    with pytest.raises(CollectError, match="another profile is being taken"):
        recorder.start([KERNEL])


def test_one_process_has_one_recorder(cupti):
    assert activity.recorder(cupti) is activity.recorder(cupti)


class _Launch(ctypes.Structure):
    _fields_ = (("f", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 6))


class _LaunchEx(ctypes.Structure):
    _fields_ = (("config", ctypes.c_void_p), ("f", ctypes.c_void_p))


def tell(fake, function, symbol, arguments, *, site=0, correlation=1):
    data = calls.CallbackData(
        callbackSite=site,
        functionParams=ctypes.addressof(arguments),
        symbolName=symbol,
        context=5,
        correlationId=correlation,
    )
    fake.callback(None, 1, function, ctypes.pointer(data))


def test_launches_are_noted_with_name_and_shape_in_the_order_of_their_calls(fake, cupti):
    watch = CallWatch(cupti)
    watch.start()
    plain = _Launch(grid=(1, 2, 3, 128, 1, 1))
    inside = (ctypes.c_uint32 * 6)(7, 1, 1, 32, 2, 1)
    extended = _LaunchEx(config=ctypes.addressof(inside))
    tell(fake, 652, b"triton_add", extended, correlation=9)
    tell(fake, 307, b"_Z3addv", plain, correlation=8)
    tell(fake, 307, b"_Z3addv", plain, site=1, correlation=8)
    tell(fake, 514, None, plain, correlation=10)
    found = watch.stop()
    assert [(call.symbol, call.grid, call.context) for call in found] == [
        ("_Z3addv", (1, 2, 3, 128, 1, 1), 5),
        ("triton_add", (7, 1, 1, 32, 2, 1), 5),
        ("", None, 5),
    ]


def test_callbacks_are_only_on_between_start_and_stop_and_given_up_at_the_end(fake, cupti):
    watch = CallWatch(cupti)
    assert "cuptiEnableCallback" not in fake.log
    watch.start()
    watch.stop()
    watch.close()
    watch.close()
    assert fake.log.count("cuptiEnableCallback") == 16
    assert fake.log.count("cuptiUnsubscribe") == 1


def test_where_another_tool_holds_the_callbacks_nothing_is_noted(fake, cupti):
    fake.failing["cuptiSubscribe"] = 39
    watch = CallWatch(cupti)
    watch.start()
    assert watch.stop() == ()
    watch.close()
    assert not watch.available
    assert "cuptiUnsubscribe" not in fake.log


def test_a_copy_that_is_loaded_already_is_taken(tmp_path):
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f01 r-xp 00000000 00:00 1 /usr/lib/libc.so.6\n"
        "7f01-7f02 r-xp 00000000 00:00 2 /opt/my env/nvidia/cu13/lib/libcupti.so.13\n"
        "7f03-7f04 rw-p 00000000 00:00 0 \n"
    )
    assert list(library.loaded_libraries(maps)) == ["/opt/my env/nvidia/cu13/lib/libcupti.so.13"]
    assert list(library.loaded_libraries(tmp_path / "none")) == []


def test_the_library_must_not_be_newer_than_the_driver():
    both = [Path("/a/libcupti.so.13"), Path("/b/libcupti.so.12")]
    assert library.choose(both, 13) == "/a/libcupti.so.13"
    assert library.choose(both, 12) == "/b/libcupti.so.12"
    assert library.choose(both, None) == "/a/libcupti.so.13"
    assert library.choose(both[:1], 12) == "/a/libcupti.so.13"  # told later by its own error
    assert library.choose([], 13) is None


def test_the_year_in_an_old_file_name_is_no_cuda_version():
    assert library.choose([Path("/a/libcupti.so.2024.3.2")], 12) == "/a/libcupti.so.2024.3.2"


def test_a_toolkit_named_by_cuda_home_is_searched(tmp_path, monkeypatch):
    folder = tmp_path / "extras/CUPTI/lib64"
    folder.mkdir(parents=True)
    (folder / "libcupti.so.12").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert folder / "libcupti.so.12" in list(library.candidates())


def test_without_a_library_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(library, "find_cupti", lambda *_: None)
    library.load_cupti.cache_clear()
    with pytest.raises(DeviceError, match="pip install mansard\\[cuda\\]"):
        library.load_cupti()


def test_a_file_that_is_no_library_is_told_with_its_path(monkeypatch, tmp_path):
    broken = tmp_path / "libcupti.so.13"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(library, "find_cupti", lambda *_: str(broken))
    library.load_cupti.cache_clear()
    with pytest.raises(MansardError, match=re.escape(str(broken))):
        library.load_cupti()


def test_the_clock_is_that_of_the_records(cupti):
    assert cupti.timestamp_ns() == 77
