"""NVRTC through cuda.core: kernel sources to machine code, kept on disk between runs.

No nvcc, no header and no driver is needed. A compiler that crashes takes its process with it, so
the bench command calls this in child processes only.
"""

import functools
import importlib.resources
import os
from pathlib import Path
from typing import Any

import msgspec

from mansard.bench.kernels import Variant
from mansard.errors import DeviceError

_CACHE_BYTES = 64 * 1024**2


class Target(msgspec.Struct, frozen=True):
    """What to compile for.

    Attributes:
        arch: as the compiler takes it, e.g. ``sm_90``.
        features: whether the architecture-specific ``a`` variant exists for this very chip.
        remark: what a reader must know when this is not the chip's own architecture.
    """

    arch: str
    features: bool
    remark: str | None = None

    def arch_for(self, variant: Variant) -> str:
        """The architecture to compile one variant for."""
        return f"{self.arch}a" if variant.feature else self.arch


def supported_architectures() -> tuple[int, ...]:
    """Architectures that the installed NVRTC compiles for, e.g. ``(75, 80, 86, ...)``."""
    from cuda.bindings import nvrtc  # noqa: PLC0415

    status, architectures = nvrtc.nvrtcGetSupportedArchs()
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise DeviceError(f"NVRTC does not say what it supports: {status}")
    return tuple(sorted(int(value) for value in architectures))


def nvrtc_version() -> tuple[int, int]:
    """Version of the installed NVRTC.

    Raises:
        DeviceError: it is not installed.
    """
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415

        _, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:  # cuda.pathfinder raises a RuntimeError of its own
        raise DeviceError(
            "NVRTC, the run-time compiler, is not installed: pip install 'mansard[cuda]' "
            f"({_first_line(error)})"
        ) from error
    return int(major), int(minor)


def target_for(capability: tuple[int, int], supported: tuple[int, ...]) -> Target:
    """The architecture whose machine code runs on a GPU of this compute capability.

    A chip's own architecture if the compiler knows it; else the nearest earlier one of the same
    generation (their machine code is compatible); else virtual code of the newest architecture,
    which the driver compiles, unseen by the check of machine code.

    Raises:
        DeviceError: the compiler has dropped or never had anything that runs there.
    """
    wanted = capability[0] * 10 + capability[1]
    name = f"{capability[0]}.{capability[1]}"
    if wanted in supported:
        return Target(f"sm_{wanted}", features=wanted >= 90)
    same = [value for value in supported if value // 10 == capability[0] and value < wanted]
    if same:
        return Target(
            f"sm_{max(same)}",
            features=False,
            remark=f"NVRTC does not know compute capability {name}: compiled for sm_{max(same)}",
        )
    if supported and wanted > max(supported):
        newest = max(supported)
        return Target(
            f"compute_{newest}",
            features=False,
            remark=f"NVRTC does not know compute capability {name}: virtual code of "
            f"compute_{newest}, compiled by the driver; machine code is not checked",
        )
    raise DeviceError(
        f"NVRTC {'.'.join(map(str, nvrtc_version()))} does not compile for compute capability "
        f"{name} (it has {', '.join(str(value) for value in supported)}): "
        "GPUs before Turing need pip install 'mansard[cuda12]'"
    )


def cache_folder() -> Path | None:
    """Where compiled kernels are kept; None when the user's cache folder cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "mansard" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def compile_variant(variant: Variant, arch: str) -> bytes:
    """Machine code (or, for ``compute_`` targets, PTX) of a variant.

    Raises:
        DeviceError: the source does not compile for this architecture.
    """
    from cuda.core import Program, ProgramOptions  # noqa: PLC0415

    macros: list[str | tuple[str, str]] = list(variant.macros)
    options = ProgramOptions(arch=arch, define_macro=macros or None)
    form = "ptx" if arch.startswith("compute_") else "cubin"
    try:
        program = Program(_source(variant.source), "c++", options)
        code = program.compile(form, cache=_cache())
    except Exception as error:  # cuda.core raises many kinds
        raise DeviceError(
            f"{variant.source} does not compile for {arch}: {_last_line(error)}"
        ) from error
    return bytes(code.code)


@functools.cache
def _cache() -> Any:
    from cuda.core.utils import FileStreamProgramCache  # noqa: PLC0415

    folder = cache_folder()
    return FileStreamProgramCache(folder, max_size_bytes=_CACHE_BYTES) if folder else None


@functools.cache
def _source(name: str) -> str:
    package, _, file = name.rpartition(":")
    folder = importlib.resources.files(package or "mansard.bench.cuda") / "kernels"
    return (folder / file).read_text("utf-8")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _last_line(error: Exception) -> str:
    """The line of a compiler's log that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if "error" in line.lower()]
    return (lines or [_first_line(error)])[-1][:200]
