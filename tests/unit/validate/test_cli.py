"""``mansard validate``: table, exit codes, files."""

import importlib
import json

import pytest
import typer
from typer.testing import CliRunner

from mansard.cli.validate import validate as command
from mansard.cli.validate_table import validation_lines
from mansard.errors import DeviceError, OutputError
from mansard.store import load_machine
from mansard.validate import validate
from mansard.validate.messages import LimitValues
from mansard.validate.rig import CasesLost

# The public name mansard.validate is the function; its module is reached so.
MODULE = importlib.import_module("mansard.validate")


@pytest.fixture
def run(monkeypatch, make_rig):
    """Runs the command on a rig."""

    def invoke(*arguments, rig=None):
        def measured(device, **options):
            return validate(device, make_rig=lambda _: rig or make_rig(), **options)

        monkeypatch.setattr(MODULE, "validate", measured)
        app = typer.Typer()
        app.command()(command)
        return CliRunner().invoke(app, list(arguments))

    return invoke


def test_all_that_holds_exits_with_0(run):
    result = run()
    assert result.exit_code == 0, result.output
    assert "other work         none on 65 kernels" in result.stdout
    assert "DEVIATES" not in result.stdout


def test_what_does_not_hold_exits_with_1_and_is_explained(run, make_rig):
    rig = make_rig(changes={"add": {"bytes_l2": 1.506 * 1.5 * (1 << 30)}})
    result = run(rig=rig)
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "add l2 bytes 1.61G 2.43G 1.506 DEVIATES" in text
    assert "DEVIATES: add, l2 bytes: 814970044" in text
    assert "Expected: 3 arrays of 536870912 bytes, each byte once" in text
    assert "l2 bytes holds within 3 % on 8 kernels; deviates on add (1.506)" in text


@pytest.mark.parametrize(
    "rig",
    [
        {"changes": {"copy": {"bytes_dram": None}}},
        {"events": {"copy": CasesLost("the process was ended by SIGSEGV")}},
    ],
)
def test_unknown_and_failed_exit_with_1(run, make_rig, rig):
    assert run(rig=make_rig(**rig)).exit_code == 1


def test_an_interrupt_exits_with_130_and_shows_what_was_found(run, make_rig):
    result = run(rig=make_rig(events={"copy": KeyboardInterrupt()}))
    assert result.exit_code == 130
    assert "fp32 fma" in result.stdout
    assert "(interrupted: the rest was not run)" in result.stdout


def test_no_gpu_exits_with_2_in_one_sentence(monkeypatch, capsys):
    from mansard.cli import main

    def measured(device, **_):
        raise DeviceError("there is no NVIDIA driver on this machine")

    monkeypatch.setattr(MODULE, "validate", measured)
    with pytest.raises(SystemExit) as caught:
        main(["validate"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "mansard: there is no NVIDIA driver on this machine\n"


def test_every_line_fits_80_columns(make_rig, limit_values, cases):
    base = tuple({name.split(".")[0] for name in limit_values})
    wrong = {name: dict.fromkeys(("bytes_l2", "bytes_dram"), 1.8e19) for name in cases}
    for rig in (
        make_rig(stated=LimitValues(values=limit_values, base_counters=base)),
        make_rig(changes=wrong),
        make_rig(lacking=dict.fromkeys(cases, "it is not there, " * 9)),
        make_rig(events={"copy": CasesLost("x" * 300)}),
    ):
        lines = validation_lines(validate(make_rig=lambda _, rig=rig: rig))
        assert max(map(len, lines)) <= 80, max(lines, key=len)


def test_work_of_another_path_gets_a_line_of_its_own(make_rig):
    rig = make_rig(changes={"bf16 wgmma": {"flop_tensor_fp16": 8.0}})
    lines = validation_lines(validate(make_rig=lambda _: rig))
    (line,) = (each for each in lines if each.startswith("bf16 wgmma") and "other" in each)
    assert line.split()[2:] == ["other", "work", "0", "8.00", "-", "DEVIATES"]
    assert "DEVIATES: bf16 wgmma, other work: 8 too many." in "\n".join(lines)


def test_limits_are_shown_beside_what_was_measured(make_rig, limit_values):
    base = tuple({name.split(".")[0] for name in limit_values})
    rig = make_rig(stated=LimitValues(values=limit_values, base_counters=base))
    text = "\n".join(validation_lines(validate(make_rig=lambda _: rig)))
    limits = text.partition("Limits that the chip states")[2]
    (line,) = (each for each in limits.splitlines() if each.startswith("vector fp32  "))
    assert line.split()[2:6] == ["33792", "1.98", "GHz", "66.9"]
    # 33,792 FLOP a clock, at the clock of the ceiling that comes along.
    fp32 = load_machine("h200-sxm").compute("vector fp32")
    assert line.endswith(f"{100 * fp32.value / (33792 * fp32.sm_clock_hz):.1f} %")


def test_json_goes_to_standard_output_and_the_table_to_standard_error(run):
    result = run("--json", "--only", "bulk")
    written = json.loads(result.stdout)
    assert written["schema"] == "mansard-validation/1"
    assert next(iter(written)) == "schema"
    assert "bulk multicast" in result.stderr


def test_a_file_is_written_whole_beside_json_on_standard_output(run, tmp_path):
    target = tmp_path / "validate.json"
    result = run("--json", "-o", str(target), "--only", "bulk")
    assert json.loads(target.read_text()) == json.loads(result.stdout)
    assert f"wrote {target}" in result.stderr


def test_a_dash_is_standard_output(run):
    assert json.loads(run("-o", "-", "--only", "bulk").stdout)["findings"]


def test_a_file_that_cannot_be_written_is_told_before_anything_runs(run, make_rig, tmp_path):
    rig = make_rig()
    for target in (tmp_path, tmp_path / "none" / "v.json"):
        result = run("-o", str(target), rig=rig)
        assert isinstance(result.exception, OutputError)
    assert rig.asked == []


def test_what_is_left_out_is_told_with_its_reason(run):
    text = " ".join(run().stdout.split())
    assert "skipped: tensor fp4: compute capability 9.0 does not have it" in text
