"""The script that runs all that needs a GPU: what it says without one."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.py"


def run(*arguments, cwd):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_stages_are_listed_without_a_folder(tmp_path):
    done = run("--list", cwd=tmp_path)
    assert done.returncode == 0
    assert "validate      180 s  counters against known work" in done.stdout
    assert not list(tmp_path.iterdir())


def test_without_a_folder_it_says_so(tmp_path):
    done = run("--only", "doctor", cwd=tmp_path)
    assert done.returncode == 2
    assert "give -o FOLDER, where the results go, or --list" in done.stderr
    assert not list(tmp_path.iterdir())
