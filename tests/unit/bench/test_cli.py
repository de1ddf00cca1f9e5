"""The commands bench and machines."""

import importlib
import json

import pytest
import typer
from typer.testing import CliRunner

from mansard.bench import entry
from mansard.cli.bench import bench
from mansard.cli.machines import machines
from mansard.errors import DeviceError, MachineError, OutputError, UsageError
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.store import load_machine, save_machine

MACHINE = Machine(
    name="h200",
    basis="measured",
    device=DeviceFacts(name="NVIDIA H200", sm_count=132, compute_capability="9.0"),
    ceilings=(
        Ceiling(
            kind="compute",
            value=9.5e14,
            unit="flop/s",
            path="tensor bf16",
            instruction="wgmma",
            arm="random",
            sm_clock_hz=1.6e9,
            share_of_limit=0.998,
            reason="held by the power limit",
        ),
        Ceiling(
            kind="compute",
            value=None,
            unit="flop/s",
            status="refused",
            path="tensor fp8",
            instruction="mma.sync",
            reason="machine code: 0 of 64 [QMMA.*] in the loop",
        ),
        Ceiling(kind="bandwidth", value=4.6e12, unit="byte/s", level="dram", access="read"),
        Ceiling(kind="launch", value=1.4e-6, unit="s", access="stream"),
    ),
    caveats=("The GPU was shared.",),
)


def run(command, *arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def measured(monkeypatch):
    """Replaces the measurement; says with what it was called."""
    calls = []

    def fake(device, *, options, progress):
        calls.append((device, options))
        progress("x", 0.5)
        return fake.machine

    fake.machine = MACHINE
    fake.calls = calls
    monkeypatch.setattr(entry, "bench", fake)
    return fake


def test_the_table_fits_80_columns_and_shows_every_ceiling(measured):
    result = run(bench)
    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    for text in ("950 TFLOP/s", "99.8 %", "1.60", "refused", "4.60 TB/s", "1.40 us"):
        assert text in result.stdout
    assert "[QMMA.*]" in result.stdout  # brackets are text, not markup
    assert "The GPU was shared." in result.stdout


def test_the_machine_is_written_and_takes_the_name_of_its_file(measured, tmp_path):
    target = tmp_path / "node7.json"
    assert run(bench, "-o", str(target)).exit_code == 0
    assert load_machine(target).name == "node7"


def test_a_target_that_cannot_be_written_is_refused_before_the_measurement(measured, tmp_path):
    for target in (tmp_path / "none" / "m.json", tmp_path):
        result = run(bench, "-o", str(target))
        assert isinstance(result.exception, OutputError)
    assert measured.calls == []


def test_a_chart_of_an_unknown_kind_is_refused_before_the_measurement(measured, tmp_path):
    result = run(bench, "--chart", str(tmp_path / "m.bmp"))
    assert isinstance(result.exception, UsageError)
    assert measured.calls == []


def test_json_goes_to_standard_output_alone(measured):
    for arguments in (["--json"], ["-o", "-"]):
        result = run(bench, *arguments)
        content = json.loads(result.stdout)
        assert content["schema"] == "mansard-machine/1"
        assert len(content["ceilings"]) == 4


def test_an_interrupted_measurement_is_saved_and_exits_with_130(measured, tmp_path):
    import msgspec

    measured.machine = msgspec.structs.replace(MACHINE, partial=True)
    target = tmp_path / "m.json"
    assert run(bench, "-o", str(target)).exit_code == 130
    assert load_machine(target).partial


def test_what_the_chip_states_is_beside_or_the_reason_why_not(measured, monkeypatch, tmp_path):
    asked = []

    def none(device):
        asked.append(device)
        raise DeviceError("the driver refuses")

    # The package shows the function of that name, so the module is asked for by its name.
    monkeypatch.setattr(importlib.import_module("mansard.validate"), "chip_limits", none)
    assert run(bench, "-d", "cuda:1", "-o", str(tmp_path / "m.json")).exit_code == 0
    assert asked == ["cuda:1"]
    provenance = load_machine(tmp_path / "m.json").provenance
    assert provenance["counter_limits"] == "not read: the driver refuses"
    run(bench, "--quick")  # in a hurry: not asked for
    assert asked == ["cuda:1"]


def test_ctrl_c_while_the_chip_is_asked_does_not_lose_the_ceilings(measured, monkeypatch, tmp_path):
    def interrupted(_device):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("mansard.validate"), "chip_limits", interrupted)
    assert run(bench, "-o", str(tmp_path / "m.json")).exit_code == 0
    machine = load_machine(tmp_path / "m.json")
    assert len(machine.ceilings) == 4
    assert machine.provenance["counter_limits"] == "not read: interrupted"


def test_options_reach_the_measurement(measured):
    run(bench, "--device", "cuda:1", "--extra", "--quick", "--only", "l2", "--only", "bf16")
    device, options = measured.calls[0]
    assert device == "cuda:1"
    assert (options.everything, options.quick, options.only) == (True, True, ("l2", "bf16"))


def test_without_an_argument_the_shipped_machines_are_listed():
    result = run(machines)
    assert result.exit_code == 0
    assert "v100-paper" in result.stdout
    assert any(row["name"] == "v100-paper" for row in json.loads(run(machines, "--json").stdout))


def test_one_machine_is_shown():
    result = run(machines, "v100-paper")
    assert "29.2 TFLOP/s" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_two_machines_stand_side_by_side_with_their_ratio(tmp_path):
    import msgspec

    slower = tuple(
        msgspec.structs.replace(c, value=c.value and c.value * 0.8) for c in MACHINE.ceilings
    )
    save_machine(MACHINE, tmp_path / "a.json")
    save_machine(
        msgspec.structs.replace(MACHINE, name="slow", ceilings=slower), tmp_path / "b.json"
    )
    result = run(machines, str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert "0.800" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_a_folder_is_a_fleet_and_what_is_no_machine_is_skipped_aloud(tmp_path):
    import msgspec

    for index in range(5):
        name = f"gpu{index}"
        save_machine(msgspec.structs.replace(MACHINE, name=name), tmp_path / f"{name}.json")
    sick = Ceiling(kind="bandwidth", value=3e12, unit="byte/s", level="dram", access="read")
    ceilings = (*MACHINE.ceilings[:2], sick, MACHINE.ceilings[3])
    save_machine(
        msgspec.structs.replace(MACHINE, name="sick", ceilings=ceilings), tmp_path / "sick.json"
    )
    (tmp_path / "other.json").write_text("{}")
    result = run(machines, str(tmp_path))
    assert "skipped" in result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith("sick"))
    assert "dram read 0.652" in line
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    table = json.loads(run(machines, str(tmp_path), "--json").stdout)
    assert len(table["standings"]) == 6


def test_a_roofline_of_ert_is_a_machine(tmp_path):
    path = tmp_path / "roofline.json"
    path.write_text(
        json.dumps(
            {
                "empirical": {
                    "gflops": {"data": [["FP64 GFLOPs", 7068.86]]},
                    "gbytes": {"data": [["DRAM", 828.758]]},
                }
            }
        )
    )
    result = run(machines, str(path))
    assert "7.07 TFLOP/s" in result.stdout


def test_a_name_that_is_none_is_refused(tmp_path):
    assert isinstance(run(machines, "no-such-machine").exception, MachineError)
    assert isinstance(run(machines, str(tmp_path)).exception, MachineError)
