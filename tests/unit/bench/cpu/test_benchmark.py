"""The benchmark of the CPU's ceilings, as a person starts it."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "cpu_ceilings.py"


@pytest.fixture
def benchmark_module(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("cpu_ceilings", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_a_pattern_that_matches_no_kernel_names_those_that_there_are(benchmark_module):
    cases = [SimpleNamespace(name="l2 read"), SimpleNamespace(name="l2 copy")]
    assert benchmark_module.matching(cases, "*read") == cases[:1]
    with pytest.raises(SystemExit, match="no kernel matches 'nothing': there are l2 copy, l2 read"):
        benchmark_module.matching(cases, "nothing")
