"""A test has one name: parallel workers collect the suite one by one and must agree on it."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHANGING = {"now", "time", "time_ns", "monotonic", "perf_counter", "getpid", "uuid4", "urandom"}


def changing_calls(source: str) -> list[int]:
    """Lines of parameters whose value, and so the name of the test, differs between processes."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize")):
            continue
        # The order of a set differs between processes; one as a value gives no name.
        lines.extend(values.lineno for values in node.args[1:2] if isinstance(values, ast.Set))
        for part in ast.walk(node):
            if not isinstance(part, ast.Call):
                continue
            name = ast.unparse(part.func)
            dated = name.endswith("gzip.compress") and not any(
                word.arg == "mtime" for word in part.keywords
            )
            # A call inside a lambda runs in the test, not at collection.
            held = any(
                isinstance(outer, ast.Lambda) and part in ast.walk(outer)
                for outer in ast.walk(node)
            )
            if (dated or name.rpartition(".")[2] in CHANGING) and not held:
                lines.append(part.lineno)
    return lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("@pytest.mark.parametrize('x', [gzip.compress(b'')])\ndef test(): ...", [1]),
        ("@pytest.mark.parametrize('x', [gzip.compress(b'', mtime=0)])\ndef test(): ...", []),
        ("@pytest.mark.parametrize('x', [lambda: gzip.compress(b'')])\ndef test(): ...", []),
        ("@pytest.mark.parametrize('x', [time.time()])\ndef test(): ...", [1]),
        ("@pytest.mark.parametrize('x', {1, 2})\ndef test(): ...", [1]),
    ],
)
def test_a_parameter_that_changes_is_seen(source, lines):
    assert changing_calls(source) == lines


def test_no_parameter_of_a_test_changes_between_processes():
    changing = {
        str(path.relative_to(TESTS)): lines
        for path in sorted(TESTS.rglob("test_*.py"))
        if (lines := changing_calls(path.read_text(encoding="utf-8")))
    }
    assert changing == {}
