"""Imports point down, and each outside library has one owner."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "mansard"

#: From the bottom to the top. A module may import from its own package and from lower layers.
LAYERS = (
    {"units", "errors", "version"},
    {"location"},
    {"engine", "model"},
    {"analysis", "counters"},
    {"readers", "store"},
    {"bench", "collect", "charts", "machines"},
    {"doctor", "validate", "workloads", "demo", "history", "fleet"},
    {"study"},
    {"__init__"},
    {"cli"},
    {"__main__"},
)
#: The two packages of a layer that may know each other, and why.
ALLOWED = {
    ("readers", "store"),  # an import ends in a run file
}
OWNERS = {
    "duckdb": {"engine.py"},
    "matplotlib": {"charts/static.py"},
    "llvmlite": {"bench/cpu"},
    "cuda": {"bench/cuda", "collect/cupti", "doctor.py"},
    "pynvml": {"bench/cuda", "doctor.py"},
    "typer": {"cli"},
    "pyspark": {"analysis/spark.py"},
    "py4j": {"analysis/spark.py"},
    "sqlglot": {"analysis/spark.py"},
    "fsspec": {"location.py"},
    "torch": {"workloads/pytorch", "workloads/keras/step_torch.py"},
    "keras": {"workloads/keras", "collect/frameworks.py"},
    "jax": {"workloads/keras/step_jax.py", "workloads/keras/layers_jax.py"},
    "tensorflow": {"workloads/keras/step_tensorflow.py"},
    "h5py": {"workloads/climate_files.py"},
}


def _level(package: str) -> int:
    for level, names in enumerate(LAYERS):
        if package in names:
            return level
    raise AssertionError(f"{package} belongs to no layer: add it to LAYERS")


def _imports(path: Path) -> set[str]:
    """Modules imported at run time (type-checking blocks set no dependency)."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "mansard":
            found.update(f"mansard.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


MODULES = sorted(SOURCE.rglob("*.py"))


def _package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_below(path):
    own = _package(path)
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "mansard":
            continue
        other = parts[1] if len(parts) > 1 else "__init__"
        if other == own or (own, other) in ALLOWED:
            continue
        assert _level(other) < _level(own), f"{own} must not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_an_outside_library_is_imported_by_its_owner_only(path):
    place = path.relative_to(SOURCE).as_posix()
    for name in _imports(path):
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None:
            assert any(place == owner or place.startswith(f"{owner}/") for owner in owners), (
                f"{place} imports {name}, which belongs to {owners}"
            )


def test_no_module_grows_beyond_one_thing():
    long = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES
    }
    assert {name: lines for name, lines in long.items() if lines > 350} == {}
