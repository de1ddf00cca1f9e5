"""Importing mansard is cheap and changes nothing."""

import os
import subprocess
import sys

HEAVY = ("numpy", "duckdb", "matplotlib", "llvmlite", "cuda", "typer", "rich", "pandas", "torch")


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_mansard_loads_nothing_heavy():
    out = _run(f"import sys, mansard; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert out.strip() == "[]"


def test_importing_mansard_takes_less_than_a_tenth_of_a_second():
    # The best of several: the question is what the import costs, not how busy the machine is.
    code = "import time; t = time.perf_counter(); import mansard; print(time.perf_counter() - t)"
    assert min(float(_run(code)) for _ in range(5)) < 0.1


def test_importing_mansard_changes_no_environment():
    before = dict(os.environ)
    out = _run(
        "import os; before = dict(os.environ); import mansard; print(before == dict(os.environ))"
    )
    assert out.strip() == "True"
    assert dict(os.environ) == before


def test_help_needs_no_table_engine_and_no_drawing_library():
    out = _run(
        "import sys\n"
        "from mansard.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([n for n in ('numpy', 'duckdb', 'matplotlib', 'llvmlite') if n in sys.modules])"
    )
    assert out.strip().endswith("[]")
