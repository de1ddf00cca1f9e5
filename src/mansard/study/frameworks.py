"""Which frameworks are installed: looked up once for all cells, without loading any."""

import collections
import importlib.util
from collections.abc import Iterable, Sequence

from mansard.study.plan import Cell
from mansard.workloads.workload import Framework

#: What a package is called by its users; the extras of the project are named like the packages.
_NAMES = {"torch": "PyTorch", "keras": "Keras", "jax": "JAX", "tensorflow": "TensorFlow"}
_WHERE = "in the folder of the source"


def absences(frameworks: Iterable[Framework]) -> dict[Framework, str]:
    """Frameworks that cannot run here, each with what is not installed and how to get it."""
    found = {}
    for framework in dict.fromkeys(frameworks):
        missing = [package for package in _packages(framework) if not _is_installed(package)]
        if missing:
            names = " and ".join(_NAMES[package] for package in missing)
            verb = "is" if len(missing) == 1 else "are"
            found[framework] = (
                f"{names} {verb} not installed: pip install {_extras(framework)} {_WHERE}"
            )
    return found


def nothing_installed(cells: Sequence[Cell]) -> str:
    """What to say where no cell can run: what to install for how many of them."""
    counts = collections.Counter(cell.configuration.framework for cell in cells)
    ways = [f"{_extras(framework)} for {number}" for framework, number in counts.most_common()]
    return (
        f"none of the {len(cells)} cells can run here, for their frameworks are not installed. "
        f"{_WHERE.capitalize()}, pip install {', '.join(ways)} of them"
    )


def _packages(framework: Framework) -> tuple[str, ...]:
    backend = framework.removeprefix("keras-")
    return (backend,) if backend == framework else ("keras", backend)


def _extras(framework: Framework) -> str:
    return f"'.[{','.join(_packages(framework))}]'"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
