"""A fake H200 and fake child processes that answer from a script."""

import pytest

from mansard.bench.messages import Built, Opened, Outcome, Reply
from mansard.bench.worker import WorkerDied
from mansard.model.device import DeviceFacts

H200 = DeviceFacts(
    name="NVIDIA H200",
    chip="GH100",
    compute_capability="9.0",
    sm_count=132,
    sm_clock_max_hz=1.98e9,
    dram_clock_hz=3.201e9,
    dram_bus_bits=6016,
    l2_bytes=60 * 1024**2,
    dram_bytes=150_109_880_320,
    uuid="GPU-0",
)


def opened_as(**changes):
    fields = {
        "facts": H200,
        "numbers": {
            "l2_bytes": 60.0 * 1024**2,
            "shared_per_sm_bytes": 228.0 * 1024,
            "shared_per_block_bytes": 227.0 * 1024,
            "threads_per_sm": 2048.0,
            "pcie_generation": 5.0,
            "pcie_width": 16.0,
            "pcie_byte_per_s": 63.0e9,
        },
        "texts": {"driver_version": "580.0"},
        "architectures": (75, 80, 86, 89, 90, 100, 103, 120),
    }
    return Opened(**{**fields, **changes})


class FakeWorker:
    """Answers like a child: `script` maps the name of a test to an Outcome, or to an exception."""

    def __init__(self, opened, script, built):
        self.opened = opened
        self.script = script
        self.built = built
        self.asked = []
        self.opens = 0

    def ask(self, request, timeout_s):
        assert timeout_s > 0
        if request.do == "open":
            self.opens += 1
            if isinstance(self.opened, Reply):
                return self.opened
            return Reply(opened=self.opened)
        if request.do == "build":
            answer = self.built(request.variant)
            if isinstance(answer, Exception):
                raise answer
            return Reply(built=answer)
        self.asked.append(request.task.name)
        answer = self.script(request.task)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(outcome=answer)

    def close(self):
        pass


def rate_of(test):
    """A believable outcome for any test, at 1.98 GHz."""
    if test.kind is None:
        return Outcome(curves={test.name: {"columns": ["x", "y"], "rows": [[1.0, 2.0]]}})
    value = {"compute": 1e12, "bandwidth": 1e12, "latency": 1e-7, "launch": 1e-6}[test.kind]
    if test.level == "link":
        value = 5e10
    evidence = {"work_per_sample": 1e12, "bytes_per_sample": 1e6} if test.kind == "compute" else {}
    return Outcome(values=(value,) * 20, clocks_hz=(1.98e9,) * 20, evidence=evidence)


@pytest.fixture
def opened():
    return opened_as


@pytest.fixture
def workers():
    """Makes a factory of fake children, and keeps what it made."""

    def make(opened=None, script=rate_of, built=lambda _: Built()):
        made = []

        def factory():
            made.append(FakeWorker(opened_as() if opened is None else opened, script, built))
            return made[-1]

        factory.made = made
        return factory

    make.died = WorkerDied
    make.rate_of = rate_of
    return make
