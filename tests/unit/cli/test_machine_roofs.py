"""Two machines by their roofs: what compares, what has no baseline, in which words."""

import msgspec
import pytest
from typer.testing import CliRunner

from mansard.bench.fleet import ratios_to_first
from mansard.cli.app import app
from mansard.cli.machine_roofs import roofs
from mansard.model.machine import Ceiling, Machine


def compute(path, instruction, value, arm=None, **more):
    return Ceiling(
        kind="compute", unit="flop/s", path=path, instruction=instruction, value=value, arm=arm,
        **more,
    )  # fmt: skip


OLD = Machine(
    name="old",
    basis="measured",
    ceilings=(
        compute("tensor fp16", "wmma", 50e12),
        compute("tensor fp16", "library", 100e12),
        Ceiling(kind="bandwidth", unit="byte/s", level="dram", access="copy", value=0.8e12),
    ),
)
NEW = Machine(
    name="new",
    basis="measured",
    ceilings=(
        compute("tensor fp16", "wgmma", 900e12, "low-toggle"),
        compute("tensor int8", "wgmma", 1.94e15, "low-toggle"),
        compute("tensor fp8", "mma.sync", None, status="refused", reason="emulated"),
        Ceiling(kind="bandwidth", unit="byte/s", level="dram", access="read", value=4e12),
        Ceiling(kind="launch", unit="s", access="stream", value=2e-6),
        Ceiling(kind="launch", unit="s", access="stream", value=1e-6),
    ),
)


def test_unlike_instructions_and_accesses_compare_by_the_best():
    found = {roof.name: roof for roof in roofs([OLD, NEW])}
    assert found["tensor fp16"].values == (100e12, 900e12)
    assert found["tensor fp16"].reached_by == ("library", "wgmma")
    assert found["tensor fp16"].ratios == (1.0, 9.0)
    assert found["DRAM"].ratios == (1.0, 5.0)
    assert found["DRAM"].reached_by == ("copy", "read")


def test_the_cheapest_launch_is_the_roof_and_what_is_refused_is_none():
    found = {roof.name: roof.values for roof in roofs([NEW, OLD])}
    assert found["launch, stream"] == (1e-6, None)
    assert "tensor fp8" not in found


@pytest.mark.parametrize(
    ("values", "ratios"),
    [
        ((2.0, 1.0), (1.0, 0.5)),
        ((None, 1.0, 2.0), (None, None, None)),
        ((2.0, None), (1.0, None)),
        ((), ()),
    ],
)
def test_without_the_first_there_is_no_ratio(values, ratios):
    assert ratios_to_first(values) == ratios


@pytest.fixture
def files(tmp_path):
    for machine in (OLD, NEW):
        (tmp_path / f"{machine.name}.json").write_bytes(msgspec.json.encode(
            {"schema": machine.schema, **msgspec.to_builtins(machine)}
        ))  # fmt: skip
    return [str(tmp_path / "old.json"), str(tmp_path / "new.json")]


def table(*arguments):
    done = CliRunner().invoke(app, ["machines", *arguments])
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    return [line.split() for line in done.stdout.splitlines()]


def test_the_table_leads_with_the_roofs(files):
    lines = table(*files)
    assert lines[0] == ["roof", "old", "new", "ratio"]
    assert ["tensor", "fp16", "100", "TFLOP/s", "900", "TFLOP/s", "9.000"] in lines
    assert ["tensor", "int8", "-", "1.94", "POP/s", "-"] in lines
    assert lines[-1][-1] == "--all"


def test_all_adds_each_ceiling_in_the_words_of_one_machine(files):
    lines = table(*files, "--all")
    assert ["tensor", "int8", "wgmma", "zeros", "-", "1.94", "POP/s", "-"] in lines
    assert ["tensor", "fp16", "wmma", "50.0", "TFLOP/s", "-", "-"] in lines
    assert not any("low-toggle" in line for line in lines)


def test_roofs_are_in_the_json_on_standard_output_and_in_a_file(files, tmp_path):
    runner = CliRunner()
    for arguments in (["--json"], ["-o", "-"], ["-o", str(tmp_path / "out.json")]):
        done = runner.invoke(app, ["machines", *files, *arguments])
        text = done.stdout or (tmp_path / "out.json").read_text()
        assert msgspec.json.decode(text)["roofs"][0]["ratios"] == [1.0, 9.0]
