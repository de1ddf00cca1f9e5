"""Builds the library that the CUDA driver loads into a program, with the system's C compiler."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

_SOURCE = "injection.c"
_COMPILERS = ("cc", "gcc", "clang")
_BUILD_S = 60.0


def build_injection(folder: Path, environment: Mapping[str, str] | None = None) -> Path | None:
    """Compile the library into a folder; None where there is no compiler, or it fails.

    Args:
        folder: where the library goes; it must allow programs to run from it.
        environment: ``CC`` names the compiler, ``PATH`` is where it is looked for.
    """
    variables = os.environ if environment is None else environment
    source = resources.files("mansard.collect.ncu.trace").joinpath(_SOURCE)
    target = folder / "libmansard_trace.so"
    for name in filter(None, (variables.get("CC"), *_COMPILERS)):
        compiler = shutil.which(name, path=variables.get("PATH", os.defpath))
        if compiler is None:
            continue
        with (
            resources.as_file(source) as file,
            contextlib.suppress(OSError, subprocess.SubprocessError),
        ):
            ended = subprocess.run(
                [compiler, "-O2", "-shared", "-fPIC", "-o", str(target), str(file), "-ldl"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_BUILD_S,
                check=False,
            )
            if ended.returncode == 0 and target.exists():
                return target
    return None
