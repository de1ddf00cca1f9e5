"""Finds ncu, and what its version can do."""

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mansard.errors import DeviceError

#: Names the ncu to use, before every other place.
VARIABLE = "MANSARD_NCU"
_NAME = "ncu"
#: Variables that module systems and installers set to a folder with ncu somewhere inside.
_HOMES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDATOOLKIT_HOME",
    "EBROOTCUDA",
    "EBROOTNSIGHTMINCOMPUTE",
    "NVHPC_CUDA_HOME",
    "NSIGHT_COMPUTE_HOME",
    "CONDA_PREFIX",
)
_INSIDE = ("bin", "", "nsight-compute-*", "nsight-compute/*")
#: Where packages and installers put it; the newest version of a pattern first.
_PLACES = (
    "usr/local/cuda/bin",
    "usr/local/cuda-*/bin",
    "opt/nvidia/nsight-compute/*",
    "usr/local/NVIDIA-Nsight-Compute*",
    "usr/lib/nsight-compute",
    "opt/cuda/bin",
    "opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Compute",
    "opt/nvidia/hpc_sdk/Linux_*/*/compilers/bin",
)
_VERSION = re.compile(r"^Version\s+(\d+(?:\.\d+)+)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
_NUMBER = re.compile(r"(\d+)")
#: ncu answers these at once; a wrapper that waits for a license server would not.
_ANSWER_S = 60.0
_INSTALL = (
    "It comes with the CUDA toolkit (package nsight-compute; not with PyTorch). Load its module, "
    f"add its folder to PATH, or set {VARIABLE} to the program"
)


@dataclasses.dataclass(frozen=True, slots=True)
class NcuTool:
    """An installed ncu.

    Attributes:
        path: the program.
        version: e.g. ``2025.3.1.0``; None when it does not say.
        options: names of its long options, without dashes; empty when it does not say.
    """

    path: Path
    version: str | None = None
    options: frozenset[str] = frozenset()

    def has(self, option: str) -> bool:
        """Whether this version knows an option; True when it does not tell its options."""
        return option in self.options or not self.options

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return f"Nsight Compute {self.version or '(unknown version)'} ({self.path})"


def find_ncu(
    environment: Mapping[str, str] | None = None,
    *,
    given: Path | None = None,
    root: Path = Path("/"),
) -> NcuTool:
    """The ncu to use: the one given, ``$MANSARD_NCU``, PATH, toolkits, in this order.

    A candidate that cannot tell its version is passed over: the toolkit has a script of the same
    name that only looks for an installation.

    Args:
        environment: variables; those of this process when None.
        given: a program that a person chose; it alone is tried.
        root: folder in which the usual places are looked for.

    Raises:
        DeviceError: there is none, or the one that was asked for does not work.
    """
    variables = os.environ if environment is None else environment
    named = str(given or variables.get(VARIABLE, ""))
    if named:
        asked = shutil.which(named, path=variables.get("PATH"))
        tool = examine(Path(asked)) if asked else None
        if tool is None:
            who = "--ncu" if given else f"${VARIABLE}"
            raise DeviceError(
                f"{who} names {named}, which is not an ncu that runs: give the path of the program",
                slug="ncu",
            )
        return tool
    tried: list[Path] = []
    for path in candidates(variables, root):
        tool = examine(path)
        if tool is not None:
            return tool
        tried.append(path)
    broken = f" ({', '.join(map(str, tried))} did not answer --version)" if tried else ""
    raise DeviceError(f"Nsight Compute (ncu) was not found{broken}. {_INSTALL}", slug="ncu")


def candidates(environment: Mapping[str, str], root: Path = Path("/")) -> Iterator[Path]:
    """Programs called ncu, most wanted first, each once."""
    seen: set[Path] = set()
    on_path = shutil.which(_NAME, path=environment.get("PATH", os.defpath))
    homes = [Path(environment[name]) for name in _HOMES if environment.get(name)]
    folders = [home / inside for home in homes for inside in _INSIDE]
    folders += [root / place for place in _PLACES]
    for path in ([Path(on_path)] if on_path else []) + [f / _NAME for f in _expanded(folders)]:
        real = path.resolve()
        if real not in seen and path.is_file() and os.access(path, os.X_OK):
            seen.add(real)
            yield path


def examine(path: Path) -> NcuTool | None:
    """Ask a program for its version and its options; None when it is not a working ncu."""
    found = _VERSION.search(_answer(path, "--version"))
    if found is None:
        return None
    return NcuTool(path, found[1], options_in(_answer(path, "--help")))


def options_in(help_text: str) -> frozenset[str]:
    """Long options that a help text mentions."""
    return frozenset(_OPTION.findall(help_text))


def _answer(path: Path, option: str) -> str:
    try:
        ended = subprocess.run(
            [str(path), option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (ended.stdout + ended.stderr).decode(errors="replace") if ended.returncode == 0 else ""


def _expanded(patterns: Iterable[Path]) -> Iterator[Path]:
    for pattern in patterns:
        if "*" not in str(pattern):
            yield pattern
            continue
        relative = str(pattern.relative_to(pattern.anchor))
        found = Path(pattern.anchor).glob(relative)
        yield from sorted(found, key=lambda path: _natural(str(path)), reverse=True)


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key that puts 2025.10 after 2025.3."""
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in _NUMBER.split(text)]
