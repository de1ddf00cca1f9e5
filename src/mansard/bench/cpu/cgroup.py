"""What the control groups of this process leave it: processor time and memory (v1 and v2)."""

from collections.abc import Iterator
from pathlib import Path

# Version 1 writes a huge page-rounded number where there is no limit.
_UNLIMITED_BYTES = 1 << 60


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of time that the tightest control group allows; None without a limit.

    Args:
        root: root of the file system (tests give their own).
    """
    quotas: list[float] = []
    for folder in _folders(root, "cpu"):
        words = _words(folder / "cpu.max") or [
            *_words(folder / "cpu.cfs_quota_us"),
            *_words(folder / "cpu.cfs_period_us"),
        ]
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that the tightest control group still allows; None without a limit."""
    left: list[int] = []
    for folder in _folders(root, "memory"):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _words(folder / limit_name), _words(folder / used_name)
            if not limit or not used or not limit[0].isdecimal() or not used[0].isdecimal():
                continue
            if int(limit[0]) < _UNLIMITED_BYTES:
                left.append(max(0, int(limit[0]) - int(used[0])))
    return min(left, default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folder of this process for a controller, then each of its parents.

    A container often sees only its own part of the tree: folders that are not there are left out.
    """
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            bases = [mount, mount / "unified"]
        elif controller in controllers.split(","):
            bases = [mount / controllers, mount / controller]
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        for base in bases:
            for depth in range(len(parts), -1, -1):
                folder = base.joinpath(*parts[:depth])
                if folder.is_dir():
                    yield folder


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    lines = _lines(path)
    return lines[0].split() if lines else []
