"""Lines that a reader may copy name the program as it was called."""

import shlex
import subprocess
import sys

import pytest

from mansard.cli import called


def test_where_the_shell_finds_it_its_name_is_enough(monkeypatch):
    monkeypatch.setattr(called.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "argv", ["/somewhere/mansard"])
    assert called.called_as() == "mansard"


@pytest.fixture
def not_on_the_path(monkeypatch):
    monkeypatch.setattr(called.shutil, "which", lambda _: None)


@pytest.mark.usefixtures("not_on_the_path")
def test_else_the_path_that_was_called(monkeypatch, tmp_path):
    script = tmp_path / "a b" / "mansard"
    script.parent.mkdir()
    script.touch()
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert called.called_as() == f"'{script}'"


@pytest.mark.usefixtures("not_on_the_path")
@pytest.mark.parametrize("first", ["/x/mansard/__main__.py", "-c", "", "/gone/mansard"])
def test_a_module_is_called_through_its_python(monkeypatch, first):
    monkeypatch.setattr(sys, "argv", [first])
    monkeypatch.setattr(sys, "executable", "/opt/py thon")
    assert called.called_as() == "'/opt/py thon' -m mansard"


def test_an_error_is_explained_by_the_command_that_it_names(tmp_path):
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "mansard", "report", "memory://none/run/"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 2
    line = next(line for line in done.stderr.splitlines() if line.strip().startswith("more: "))
    command = shlex.split(line.strip().removeprefix("more: "))
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert told.stdout.startswith("A run at a URL (`s3://...`) cannot be read")
