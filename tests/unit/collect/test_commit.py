"""The commit of a program, in real repositories made for the purpose."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mansard.collect import commit as module
from mansard.collect.commit import commit_of, commit_of_command
from mansard.collect.ranks import Rank
from mansard.collect.record import job_facts

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


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
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "train.py").write_text("print(1)\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture(params=["git", "files"])
def how(request, monkeypatch):
    if request.param == "files":
        monkeypatch.setattr(module, "_from_git", lambda _: {})
    return request.param


def test_the_commit_of_the_repository_around_the_program(project, how):
    found = commit_of(project / "src" / "train.py")
    assert found["commit"] == git(project, "rev-parse", "HEAD")
    assert found.get("commit_dirty") == {"git": "no", "files": None}[how]


def test_a_changed_file_makes_it_dirty_and_a_new_one_does_not(project):
    (project / "notes.txt").write_text("x")
    assert commit_of(project)["commit_dirty"] == "no"
    (project / "src" / "train.py").write_text("print(2)\n")
    assert commit_of(project / "src" / "train.py")["commit_dirty"] == "yes"


def test_packed_references_a_detached_head_and_a_worktree(project, tmp_path, how):
    head = git(project, "rev-parse", "HEAD")
    git(project, "pack-refs", "--all")
    assert commit_of(project)["commit"] == head
    git(project, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "other")
    assert commit_of(tmp_path / "beside")["commit"] == head
    git(project, "checkout", "-q", "--detach")
    assert commit_of(project)["commit"] == head


def test_where_there_is_no_commit_nothing_is_said(tmp_path, how):
    assert commit_of(tmp_path / "train.py") == {}
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path / "train.py") == {}


def test_an_installed_program_belongs_to_the_folder_where_it_is_started(project, monkeypatch):
    monkeypatch.chdir(project)
    found = commit_of(Path(sys.prefix) / "bin" / "torchrun")
    assert found["commit"] == git(project, "rev-parse", "HEAD")


def test_git_that_is_missing_fails_or_hangs_leaves_the_files(project, monkeypatch, tmp_path):
    head = git(project, "rev-parse", "HEAD")
    broken = tmp_path / "bin"
    broken.mkdir()
    monkeypatch.setenv("PATH", str(broken))
    assert commit_of(project) == {"commit": head}  # there is none
    (broken / "git").write_text("#!/bin/sh\nexit 128\n")
    (broken / "git").chmod(0o755)
    assert commit_of(project) == {"commit": head}
    (broken / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(module, "_LIMIT_S", 0.2)
    assert commit_of(project) == {"commit": head}


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/heads/gone", "ref: ../../etc/passwd", "ref: refs/../x", "\0" * 9, "G" * 40],
)
def test_files_of_git_that_nobody_wrote_are_not_believed(project, head, monkeypatch):
    monkeypatch.setattr(module, "_from_git", lambda _: {})
    (project / ".git" / "HEAD").write_text(head)
    assert commit_of(project) == {}


def test_references_in_a_circle_end(project, monkeypatch):
    monkeypatch.setattr(module, "_from_git", lambda _: {})
    (project / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main")
    assert commit_of(project) == {}


def test_a_link_to_itself_is_no_error(tmp_path, how):
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    assert commit_of(tmp_path / "loop.py") == {}


def test_the_job_is_noted_with_commit_and_number_of_ranks(project, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(project / "src" / "train.py")])
    facts = job_facts(Rank(3, 8, "host", 1))
    assert facts == {
        "commit": git(project, "rev-parse", "HEAD"),
        "commit_dirty": "no",
        "rank": "3",
        "world_size": "8",
    }
    assert "world_size" not in job_facts(Rank(None, 1, "host", 1))


def test_a_command_is_of_the_repository_of_its_program_not_of_its_launcher(project):
    head = git(project, "rev-parse", "HEAD")
    script = str(project / "src" / "train.py")
    assert commit_of_command(["mpirun", "-n", "4", "/usr/bin/env", script])["commit"] == head
    assert commit_of_command(["solver", "no such file", "\0", "x" * 5000]) == {}
