"""From a repository to the commit that made a program slower, through the files of real runs."""

import json
import shutil
import subprocess

import pytest

from mansard import engine
from mansard.cli import main
from mansard.collect.commit import commit_of
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Provenance
from mansard.store import write_run

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NIGHTS, SLOWER = 14, 9


def git(folder, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def nights(tmp_path):
    """A project with a commit a day, and a run of each; the tenth commit made it slower."""
    project, folder = tmp_path / "project", tmp_path / "nights"
    project.mkdir()
    folder.mkdir()
    git(project, "init", "-q", "-b", "main")
    commits = []
    with engine.connect(threads=1) as connection:
        for night in range(NIGHTS):
            (project / "train.py").write_text(f"night = {night}\n")
            git(project, "add", ".")
            git(project, "commit", "-q", "-m", f"night {night}")
            commits.append(git(project, "rev-parse", "HEAD"))
            if night == SLOWER:
                (project / "train.py").write_text("# tried by hand\n")
            took = 1e-3 * (1 + 0.001 * (night % 3)) * (1.25 if night >= SLOWER else 1)
            origin = Provenance(
                created=f"2026-03-{night + 1:02d}T03:00:00+00:00",
                devices=(DeviceFacts(name="H200"),),
                extra=commit_of(project / "train.py"),
            )
            select = f"SELECT 0 AS rank, 0 AS step, 'gemm' AS name, {took!r} AS duration_s"
            write_run(connection, select, origin, folder / f"night{night}.parquet")
    return folder, commits


def test_the_commit_of_the_change_and_the_one_before_are_told(nights, capsys):
    folder, commits = nights
    with pytest.raises(SystemExit) as stop:
        main(["history", str(folder), "--json"])
    assert stop.value.code == 1
    told = json.loads(capsys.readouterr().out)
    (change,) = next(t for t in told["trends"] if t["key"] == "gemm")["changes"]
    assert (change["commit"], change["commit_before"]) == (commits[SLOWER], commits[SLOWER - 1])
    assert change["commit_dirty"] is True
    assert [run["commit_dirty"] for run in told["runs"]] == [n == SLOWER for n in range(NIGHTS)]
    with pytest.raises(SystemExit):
        main(["history", str(folder)])
    shown = " ".join(capsys.readouterr().out.split())
    before = commits[SLOWER - 1][:10]
    assert f"commit {commits[SLOWER][:10]}+changes (before: {before})" in shown
