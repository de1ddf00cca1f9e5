"""``mansard doctor --explain CODE``: the paragraph of a message, without the source at hand."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mansard.cli import explain
from mansard.cli.app import app
from mansard.cli.explain import explained
from mansard.errors import UsageError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "messages.md"


def test_every_paragraph_of_the_page_is_found():
    codes = re.findall(r"^## (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(codes) > 80
    for code in codes:
        assert len(explained(code)) > 20


def test_a_paragraph_fits_the_terminal_and_ends_before_the_next_part():
    done = CliRunner().invoke(app, ["doctor", "--explain", "tensor-work-unseen"])
    assert done.exit_code == 0
    assert done.stdout == (
        "Kernels whose names look like tensor work (gemm, attention, mma) have no tensor\n"
        "counters. Collect them before judging those kernels.\n"
    )


def test_a_code_that_two_parts_of_the_page_explain_gives_both():
    first, second = explained("counters-left-out").split("\n\n")
    assert "narrow `--keep`" in first
    assert second.startswith("A sample may run the program once")


@pytest.mark.parametrize(
    ("code", "told"), [("no-gp", "is it no-gpu"), ("x" * 10_000, "no message"), ("", "no message")]
)
def test_a_code_that_there_is_not_is_told_with_the_nearest(code, told):
    with pytest.raises(UsageError, match=told) as error:
        explained(code)
    assert len(str(error.value)) < 400


def test_the_page_comes_along_with_the_package():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    (name,) = (
        name
        for source, name in build["targets"]["wheel"]["force-include"].items()
        if (ROOT / source) == PAGE
    )
    assert name == f"mansard/{explain._PAGE}"


def test_the_installed_page_is_preferred(monkeypatch, tmp_path):
    (tmp_path / "messages.md").write_text("# Messages\n\n## no-gpu\nInstalled.\n")
    monkeypatch.setattr(explain.importlib.resources, "files", lambda _: tmp_path)
    assert explained("no-gpu") == "Installed."
