"""Programs in a group of their own: output, exit codes, signals."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from ncu_makers import program_file

from mansard.collect.ncu.process import resolve_program, run_program
from mansard.errors import InputError

PYTHON = (sys.executable, "-S", "-E")


def test_output_and_arguments_pass_through_untouched(tmp_path, capfd):
    script = tmp_path / "a script.py"
    script.write_text("import sys; print(sys.argv[1:]); sys.stderr.write('\\x1b[1mbold\\n')")
    ended = run_program([*PYTHON, str(script), "a b", 'quote"s', "$HOME", "*", "é"])
    out, err = capfd.readouterr()
    assert (ended.code, ended.stopped_by) == (0, None)
    assert out == "['a b', 'quote\"s', '$HOME', '*', 'é']\n"
    assert err == "\x1b[1mbold\n"


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.abort()", -6)]
)
def test_exit_codes_and_signals_are_told(code, expected):
    assert run_program([*PYTHON, "-c", code]).code == expected


def test_the_caller_hears_of_it_while_it_runs():
    ticks = []
    run_program([*PYTHON, "-c", "import time; time.sleep(0.7)"], tick=lambda: ticks.append(1))
    assert len(ticks) >= 3


def test_a_caller_that_fails_leaves_no_program_behind():
    started = time.perf_counter()

    def fail():
        raise ValueError

    with pytest.raises(ValueError):
        run_program([*PYTHON, "-c", "import time; time.sleep(60)"], tick=fail)
    assert time.perf_counter() - started < 20


def outer(tmp_path, program, grace=5.0):
    """Run a program through ``run_program`` in a process of its own, which can be signalled."""
    inner = tmp_path / "inner.py"
    inner.write_text(textwrap.dedent(program))
    code = (
        "import sys\n"
        "from mansard.collect.ncu.process import run_program\n"
        f"e = run_program([sys.executable, '-S', '-E', {str(inner)!r}], grace_s={grace})\n"
        "print('ended', e.code, e.stopped_by, flush=True)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_program_end_in_order(tmp_path, number):
    process = outer(
        tmp_path,
        """
        import os, signal, sys, time
        def stop(*_):
            os.write(1, b"saved\\n")
            sys.exit(5)
        signal.signal(signal.SIGINT, stop)
        print("ready", flush=True)
        time.sleep(60)
        """,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert out == f"saved\nended 5 {int(number)}\n"


def test_a_group_that_ignores_the_interrupt_is_ended_with_its_children(tmp_path):
    process = outer(
        tmp_path,
        """
        import os, signal, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.fork() == 0:
            print("child", os.getpid(), flush=True)
            time.sleep(60)
        time.sleep(60)
        """,
        grace=0.3,
    )
    child = int(process.stdout.readline().split()[1])
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out == f"ended {-signal.SIGTERM} {int(signal.SIGINT)}\n"
    state = Path(f"/proc/{child}/status")
    assert not state.exists() or "zombie" in state.read_text()


def test_a_missing_program_is_told_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match="no program: give it after --"):
        resolve_program([])
    with pytest.raises(InputError, match="no program nowhere_to_be_found on PATH"):
        resolve_program(["nowhere_to_be_found"])
    with pytest.raises(InputError, match="is a folder"):
        resolve_program([str(tmp_path)])
    (tmp_path / "data").write_text("x")
    with pytest.raises(InputError, match=r"chmod \+x"):
        resolve_program([str(tmp_path / "data")])


def test_a_python_script_is_run_by_this_python(tmp_path):
    script = tmp_path / "train me.py"
    script.write_text("")
    assert resolve_program([str(script), "--epochs"]) == (sys.executable, str(script), "--epochs")
    program_file(script, "#!/usr/bin/env python3\n")
    assert resolve_program([str(script)]) == (str(script),)


def test_a_program_that_is_none_is_told(tmp_path):
    broken = program_file(tmp_path / "broken", "\0\0\0")
    with pytest.raises(InputError, match="cannot be started: Exec format error"):
        run_program([str(broken)])
    assert os.access(broken, os.X_OK)
