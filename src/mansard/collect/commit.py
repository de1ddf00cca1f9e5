"""Which commit of its repository a program is: from git, or from git's own files without it."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: Key of the commit in ``Provenance.extra``, and of whether tracked files differ from it.
COMMIT, DIRTY = "commit", "commit_dirty"

#: A status of a very large tree on a slow disk is not waited for.
_LIMIT_S = 5.0
#: Of a file of git no more than this is read; packed references of large projects are long.
_MOST_BYTES = 16 << 20
_MOST_LINKS = 5
#: Words of a command that may be its program, launchers and their options before it included.
_MOST_WORDS = 20
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE = re.compile(r"refs/[^\s~^:?*\[\\]{1,1000}")


def commit_of(program: Path) -> dict[str, str]:
    """The commit of the repository that a program lies in; never an error.

    Args:
        program: a file, or a folder. A file of the Python installation is nobody's work: then the
            current folder counts.

    Returns:
        ``commit`` (hexadecimal) and ``commit_dirty`` (``yes`` or ``no``: whether a tracked file
        was changed since), each only as far as it is known.
    """
    try:
        folder = _folder(program)
        return _from_git(folder) or _from_files(folder)
    except (OSError, ValueError, RuntimeError):  # a loop of links, a name that is none
        return {}


def commit_of_command(command: Sequence[str]) -> dict[str, str]:
    """The commit of the first file of a command that lies in a repository.

    Args:
        command: e.g. ``("python", "train.py")`` or ``("mpirun", "-n", "4", "./solver")``; an
            interpreter or launcher of the system lies in none.
    """
    for word in command[:_MOST_WORDS]:
        path = Path(word)
        try:
            found = commit_of(path) if path.is_file() else {}
        except (OSError, ValueError):  # a word that no file can be called
            continue
        if found:
            return found
    return {}


def _folder(program: Path) -> Path:
    place = program.resolve()
    folder = place if place.is_dir() else place.parent
    return Path.cwd() if folder.is_relative_to(Path(sys.prefix).resolve()) else folder


def _from_git(folder: Path) -> dict[str, str]:
    # Variables of a hook would point to another repository; a status must not write the index.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    asked = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), "status", "--branch"]
    asked += ["--porcelain=v2", "--untracked-files=no", "--ignore-submodules=dirty"]
    try:
        done = subprocess.run(
            asked,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.decode(errors="replace").splitlines()
    ids = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    if not ids or not _ID.fullmatch(ids[0]):
        return {}  # no commit yet
    changed = any(not line.startswith("#") for line in lines)
    return {COMMIT: ids[0], DIRTY: "yes" if changed else "no"}


def _from_files(folder: Path) -> dict[str, str]:
    """The commit alone: git is not installed, is slow, or does not trust the owner."""
    inside = next((at / ".git" for at in (folder, *folder.parents) if (at / ".git").exists()), None)
    if inside is None:
        return {}
    if inside.is_file():  # a worktree or a submodule
        inside = inside.parent / _text(inside).removeprefix("gitdir:").strip()
    common = inside / "commondir"
    roots = [inside, *([inside / _text(common).strip()] if common.is_file() else [])]
    found = _text(inside / "HEAD").strip()
    for _ in range(_MOST_LINKS):
        if _ID.fullmatch(found):
            return {COMMIT: found}
        found = _referred(found.removeprefix("ref:").strip(), roots)
    return {}


def _referred(name: str, roots: list[Path]) -> str:
    """What a reference such as refs/heads/main holds: an id, another reference, or nothing."""
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return ""
    for root in roots:
        if (root / name).is_file():
            return _text(root / name).strip()
    for root in roots:
        packed = root / "packed-refs"
        if packed.is_file():
            for line in _text(packed).splitlines():
                if line.endswith(f" {name}"):
                    return line.split(" ")[0]
    return ""


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace")
