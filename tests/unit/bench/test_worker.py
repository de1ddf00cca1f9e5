"""Child processes that answer, crash, hang, or talk nonsense."""

import pytest

from mansard.bench.kernels import Variant
from mansard.bench.messages import Request
from mansard.bench.worker import Worker, WorkerDied

OPEN = Request(do="open")

CHILD = """
import os, signal, sys, time
for count, line in enumerate(sys.stdin):
    {body}
    sys.stdout.write('{{"error": "answer %d"}}\\n' % count)
    sys.stdout.flush()
"""


@pytest.fixture
def child(tmp_path, monkeypatch):
    made = []

    def make(body="pass"):
        (tmp_path / "odd_child.py").write_text(CHILD.format(body=body))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        made.append(Worker("odd_child"))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


def test_a_child_answers_one_request_after_the_other(child):
    worker = child()
    assert [worker.ask(OPEN, 20).error for _ in range(3)] == ["answer 0", "answer 1", "answer 2"]
    assert worker.restarts == 1


def test_a_child_killed_by_a_signal_is_named_and_replaced(child):
    worker = child("count == 1 and os.kill(os.getpid(), signal.SIGSEGV)")
    worker.ask(OPEN, 20)
    with pytest.raises(WorkerDied, match="SIGSEGV"):
        worker.ask(OPEN, 20)
    assert worker.ask(OPEN, 20).error == "answer 0"  # a new one
    assert worker.restarts == 2


def test_the_last_words_of_a_child_are_passed_on(child):
    worker = child("print('ptxas fatal: no', file=sys.stderr); sys.exit(7)")
    with pytest.raises(WorkerDied, match="code 7: ptxas fatal: no"):
        worker.ask(OPEN, 20)


def test_a_child_that_hangs_is_ended(child):
    worker = child("time.sleep(60)")
    with pytest.raises(WorkerDied, match="no answer within 1 s"):
        worker.ask(OPEN, 1)


def test_a_worker_that_was_never_asked_starts_nothing():
    worker = Worker("there_is_no_such_module")
    worker.close()
    assert worker.restarts == 0


def test_a_module_that_cannot_start_is_a_death_too():
    worker = Worker("there_is_no_such_module")
    with pytest.raises(WorkerDied, match="No module named"):
        worker.ask(OPEN, 20)


def test_the_real_child_says_that_there_is_no_driver_and_still_compiles():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    from mansard.bench.cuda.compile import nvrtc_version
    from mansard.errors import DeviceError

    try:
        nvrtc_version()
    except DeviceError as error:
        pytest.skip(str(error))
    worker = Worker()
    try:
        reply = worker.ask(OPEN, 60)
        if reply.opened is not None:
            pytest.skip("there is a GPU here")
        assert "driver" in reply.error
        assert "driver" in worker.ask(Request(do="count"), 60).error
        variant = Variant(source="clock.cu", entry="nothing")
        assert worker.ask(Request(do="build", arch="sm_80", variant=variant), 60).built is not None
        broken = Variant(source="vector.cu", entry="vector_chain", macros=(("ILP", "1"),))
        reply = worker.ask(Request(do="build", arch="sm_80", variant=broken), 60)
        assert "vector.cu does not compile for sm_80" in reply.error
    finally:
        worker.close()
