"""The child process and what the parent makes of its end."""

import contextlib
import types
from pathlib import Path

import msgspec
import pytest

from mansard.bench.worker import WorkerDied
from mansard.errors import CollectError, DeviceError, PermissionDeniedError
from mansard.validate import child
from mansard.validate.messages import CaseCount, Counted, LimitValues, Opening, Reply, Request
from mansard.validate.rig import CasesLost, ChildRig


class FakeWorker:
    """Answers in the order of its script: a reply, or an event."""

    def __init__(self, *script):
        self.script, self.asked, self.closed = list(script), [], 0

    def exchange(self, line, timeout_s):
        assert timeout_s > 0
        request = msgspec.json.decode(line, type=Request)
        self.asked.append(request.do)
        answer = self.script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return msgspec.json.encode(answer)

    def close(self):
        self.closed += 1


@pytest.fixture
def opened(opening):
    return Reply(opening=opening)


def rig(worker):
    return ChildRig(make_worker=lambda: worker)


def test_a_device_is_opened_once_and_cases_are_sent_whole(opened, cases, opening):
    counted = Counted(cases=(CaseCount(name="copy", columns={"bytes_l2": None}, launches=1),))
    worker = FakeWorker(opened, Reply(counted=counted), Reply(counted=counted))
    one = rig(worker)
    assert one.open() == opening
    assert one.count([cases["copy"]]) == counted
    one.count([cases["copy"], cases["bulk copy"]])
    assert worker.asked == ["open", "count", "count"]


def test_a_case_survives_the_way_to_the_child(cases):
    for case in cases.values():
        request = Request(do="count", cases=(case,))
        assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


def test_a_child_that_dies_loses_the_cases_and_is_opened_again(opened, cases):
    counted = Counted(cases=())
    worker = FakeWorker(
        opened, WorkerDied("the process was ended by SIGSEGV"), opened, Reply(counted=counted)
    )
    one = rig(worker)
    one.open()
    with pytest.raises(CasesLost, match="SIGSEGV"):
        one.count([cases["copy"]])
    assert one.count([cases["copy"]]) == counted
    assert worker.asked == ["open", "count", "open", "count"]


def test_after_an_error_the_context_is_thought_lost(opened, cases):
    worker = FakeWorker(opened, Reply(error="CUDA_ERROR_ILLEGAL_ADDRESS"), opened, Reply())
    one = rig(worker)
    one.open()
    with pytest.raises(CasesLost, match="ILLEGAL_ADDRESS"):
        one.count([cases["copy"]])
    assert worker.closed == 1
    with pytest.raises(CasesLost, match="counted nothing"):
        one.count([cases["copy"]])


def test_refused_counters_are_an_error_with_its_paragraph(opened):
    reply = Reply(error="the driver refuses counters", slug="permission", refused=True)
    one = rig(FakeWorker(opened, reply))
    one.open()
    with pytest.raises(PermissionDeniedError, match="refuses") as caught:
        one.limits()
    assert caught.value.slug == "permission"


def test_a_device_that_does_not_open_is_a_device_error():
    with pytest.raises(DeviceError, match="no NVIDIA driver") as caught:
        rig(FakeWorker(Reply(error="no NVIDIA driver", slug="no-gpu"))).open()
    assert caught.value.slug == "no-gpu"
    with pytest.raises(DeviceError, match="cuda:0 cannot be opened: no answer"):
        rig(FakeWorker(WorkerDied("no answer within 120 s"))).open()


def test_limits_come_from_the_child(opened):
    values = LimitValues(values={"a.sum": 1.0, "b.sum": None}, base_counters=("a", "b"))
    one = rig(FakeWorker(opened, Reply(limits=values)))
    one.open()
    assert one.limits() == values


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a GPU here")
def test_a_real_child_says_that_there_is_no_gpu():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    with (
        contextlib.closing(ChildRig()) as one,
        pytest.raises(DeviceError, match=r"no NVIDIA driver|no GPU"),
    ):
        one.open()


def serve(laboratory, request):
    state = child._State()
    state._laboratory = laboratory
    return state.serve(request)


def raising(error):
    def fail(*_):
        raise error

    return types.SimpleNamespace(limits=fail, count=fail)


def test_the_child_needs_an_open_device():
    reply = child._State().serve(Request(do="limits"))
    assert (reply.error, reply.refused) == ("no device is open", True)


def test_the_child_passes_counts_on(opening):
    counted = Counted(cases=(CaseCount(name="copy"),))
    laboratory = types.SimpleNamespace(count=lambda cases: counted)
    assert serve(laboratory, Request(do="count")).counted == counted


@pytest.mark.parametrize(
    ("error", "do", "refused"),
    [
        (PermissionDeniedError("no", slug="permission"), "count", True),
        (DeviceError("CUDA_ERROR_ILLEGAL_ADDRESS"), "count", False),
        (DeviceError("CUPTI was not found", slug="cupti"), "limits", True),
        (CollectError("no such counter"), "limits", False),
        (ValueError("a fault"), "count", False),
        (MemoryError(), "count", False),
    ],
)
def test_every_failure_of_the_child_becomes_an_answer(error, do, refused):
    reply = serve(raising(error), Request(do=do))
    assert reply.error
    assert reply.refused is refused
    assert reply.slug == getattr(error, "slug", "")


def test_an_opening_carries_the_chip(opening):
    assert msgspec.json.decode(msgspec.json.encode(opening), type=Opening) == opening
