"""What README and the first page tell a newcomer to type works as it stands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")


@pytest.fixture
def source(tmp_path):
    """A folder that looks like that of the source, and that may be written to."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def run(*command, folder):
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "80", "PYTHONWARNINGS": "error"},
    )  # fmt: skip


def section(text, title):
    return text.split(title, 1)[1].split("\n#", 1)[0]


def test_the_comparison_of_the_readme_gives_what_it_shows(source):
    (block,) = re.findall(r"```\n(.*?)```", section(README, "### 4. Compare"), re.DOTALL)
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    assert [command.split()[1] for command in commands] == ["import", "import", "compare"]
    for command in commands:
        done = run("-m", *shlex.split(command), folder=source)
        assert done.returncode == 0, done.stderr
    shown = [line for line in block.splitlines() if line and not line.startswith(("$ ", "..."))]
    assert set(shown) <= set(map(str.rstrip, done.stdout.splitlines()))


def test_the_program_of_the_readme_runs(source):
    (code,) = re.findall(r"```python\n(.*?)```", section(README, "### 5. Use"), re.DOTALL)
    done = run("-c", code, folder=source)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5


def test_the_first_page_runs_without_a_gpu_and_without_a_report_of_ones_own(source):
    first, _ = re.findall(r"```\n(.*?)```", FIRST_PAGE, re.DOTALL)
    for line in first.splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "cp":
            (source / words[2]).write_bytes((source / words[1]).read_bytes())
            continue
        done = run("-m", *words, folder=source)
        assert done.returncode == 0, done.stderr
    (code,) = re.findall(r"```python\n(.*?)```", FIRST_PAGE, re.DOTALL)
    done = run("-c", code, folder=source)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 9
