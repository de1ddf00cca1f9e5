"""One cell, one process: whatever happens in it, the parent goes on and knows why."""

import sys
import time
from pathlib import Path

import pytest

from mansard.study.process import Ended, run_process


def run(code, log, *arguments, limit_s=20.0):
    run_process(arguments, log, limit_s=limit_s, command=(sys.executable, "-c", code))


def test_what_a_process_prints_goes_to_its_log(tmp_path):
    run("import sys; print(sys.argv[1:])", tmp_path / "log", "a b", "$(c)")
    assert (tmp_path / "log").read_text().strip() == "['a b', '$(c)']"


def test_a_failure_tells_the_last_line(tmp_path):
    with pytest.raises(Ended, match=r"ended with code 3: the reason$"):
        run("import sys; print('first\\nthe reason'); sys.exit(3)", tmp_path / "log")


def test_a_crash_tells_its_signal(tmp_path):
    with pytest.raises(Ended, match="was ended by SIGKILL"):
        run("import os; os.kill(os.getpid(), 9)", tmp_path / "log")


def test_bytes_that_are_no_text_do_not_matter(tmp_path):
    with pytest.raises(Ended, match="ended with code 1"):
        run("import os, sys; os.write(1, b'\\xff\\xfe\\n'); sys.exit(1)", tmp_path / "log")


def test_the_time_limit_ends_the_process_and_what_it_started(tmp_path):
    pids = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(pids)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    with pytest.raises(Ended, match="more than 2 s"):
        run(code, tmp_path / "log", limit_s=2.0)
    grandchild = int(pids.read_text())
    for _ in range(100):
        if not _runs(grandchild):
            break
        time.sleep(0.05)
    assert not _runs(grandchild)


def _runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    # A process without a parent that waits for it stays in the table as a zombie.
    return state.rsplit(")", 1)[1].split()[0] != "Z"
