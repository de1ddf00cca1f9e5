"""Machines of one name: each gets one of its own, from where it lies."""

import msgspec
import pytest
from typer.testing import CliRunner

from mansard.cli.app import app
from mansard.cli.machine_files import load_machines, under_own_names
from mansard.cli.told_apart import told_apart
from mansard.model.machine import Ceiling, Machine
from mansard.store import save_machine

ROOF = Ceiling(kind="compute", value=1e12, unit="flop/s", path="vector fp32")


@pytest.fixture
def files(tmp_path):
    """Three files: two of one name in two folders, all of one inner name."""
    made = []
    for place in ("old/gpu.json", "new/gpu.json", "new/other.json"):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        save_machine(Machine(name="h200", basis="measured", ceilings=(ROOF,)), path)
        made.append(str(path))
    return made


def names(items):
    return [machine.name for machine in under_own_names(load_machines(items))]


def test_names_that_differ_stay(files):
    assert names([files[0], "v100-paper"]) == ["h200", "v100-paper"]


def test_equal_names_get_the_name_of_the_file(files):
    assert names(files[1:]) == ["h200 (gpu.json)", "h200 (other.json)"]


def test_and_of_the_folder_where_the_file_is_called_alike(files):
    assert names(files[:2]) == ["h200 (old/gpu.json)", "h200 (new/gpu.json)"]


def test_one_file_twice_is_numbered(files):
    assert names([files[0], files[0]]) == ["h200 (gpu.json, 1)", "h200 (gpu.json, 2)"]


def test_one_that_comes_along_is_told_from_a_file(tmp_path):
    ((shipped, _),) = load_machines(["v100-paper"])
    save_machine(shipped, tmp_path / "mine.json")
    assert names(["v100-paper", str(tmp_path / "mine.json")]) == [
        "v100-paper (shipped)",
        "v100-paper (mine.json)",
    ]


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (["a/x", "b/x"], ["a/x", "b/x"]),
        (["x", "a/x"], ["x", "a/x"]),
        (["s3://b/one/run/", "s3://b/two/run/"], ["one/run", "two/run"]),
        (["a/x", "a/x", "b/x"], ["a/x, 1", "a/x, 2", "b/x"]),
        ([], []),
    ],
)
def test_paths_from_their_end(paths, told):
    assert told_apart(paths) == told


def test_all_forms_have_names_of_their_own(files, tmp_path):
    runner = CliRunner()
    arguments = ["machines", *files[:2]]
    table = runner.invoke(app, arguments).stdout
    assert "(old/gpu.json)" in table
    assert "(new/gpu.json)" in table
    found = msgspec.json.decode(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert found["machines"] == ["h200 (old/gpu.json)", "h200 (new/gpu.json)"]
    page = tmp_path / "m.html"
    assert runner.invoke(app, ["compare", *files[:2], "-o", str(page)]).exit_code == 0
    assert "<title>h200 (old/gpu.json) and h200 (new/gpu.json)</title>" in page.read_text()
