"""Builds the libraries that are loaded into a program, with the system's C compiler."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_COMPILERS = ("cc", "gcc", "clang")
_BUILD_S = 60.0
_FLAGS = ("-O2", "-shared", "-fPIC")


def build_injection(folder: Path, environment: Mapping[str, str] | None = None) -> Path | None:
    """Compile the tracer that the CUDA driver loads; None where that does not work.

    Args:
        folder: where the library goes; it must allow programs to run from it.
        environment: ``CC`` names the compiler, ``PATH`` is where it is looked for.
    """
    source = resources.files(__package__).joinpath("injection.c")
    return build_library(source, folder / "libmansard_trace.so", environment)


def build_library(
    source: Traversable, target: Path, environment: Mapping[str, str] | None = None
) -> Path | None:
    """Compile one C file to a shared library; None where there is no compiler, or it fails.

    Args:
        source: the C file.
        target: the library, in a folder that allows programs to run from it.
        environment: ``CC`` names the compiler, ``PATH`` is where it is looked for.
    """
    variables = os.environ if environment is None else environment
    for name in filter(None, (variables.get("CC"), *_COMPILERS)):
        compiler = shutil.which(name, path=variables.get("PATH", os.defpath))
        if compiler is None:
            continue
        with (
            resources.as_file(source) as file,
            contextlib.suppress(OSError, subprocess.SubprocessError),
        ):
            ended = subprocess.run(
                [compiler, *_FLAGS, "-o", str(target), str(file), "-ldl", "-lpthread"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_BUILD_S,
                check=False,
            )
            if ended.returncode == 0 and target.exists():
                return target
    return None
