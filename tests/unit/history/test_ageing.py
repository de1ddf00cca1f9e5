"""One GPU over months."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mansard.cli.machines import machines
from mansard.errors import MachineError
from mansard.history import over_time
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.store import save_machine


def measured(day, dram, *, launch=1.4e-6, driver="580.1", uuid="GPU-1"):
    return Machine(
        name=f"{uuid}-{day}",
        basis="measured",
        device=DeviceFacts(name="NVIDIA H200", uuid=uuid),
        ceilings=(
            Ceiling(kind="bandwidth", value=dram, unit="byte/s", level="dram", access="read"),
            Ceiling(kind="launch", value=launch, unit="s", access="stream"),
        ),
        provenance={"created": f"2026-03-{day:02d}T00:00:00+00:00", "driver_version": driver},
    )


def months(fall_on=None, slow_launch_on=None, count=20, seed=3):
    """A GPU a day, with noise of 0.3 %; bandwidth falls by 5 %, launches take half as long again."""
    noise = np.random.default_rng(seed).normal(0, 0.003, (count, 2)).tolist()
    return [
        measured(
            day,
            4.6e12 * (1 + noise[day - 1][0]) * (0.95 if fall_on and day >= fall_on else 1),
            launch=1.4e-6
            * (1 + noise[day - 1][1])
            * (1.5 if slow_launch_on and day >= slow_launch_on else 1),
            driver="580.1" if not fall_on or day < fall_on else "590.2",
        )
        for day in range(1, count + 1)
    ]


def test_a_fall_is_found_with_its_day_whatever_the_order_of_the_files():
    (gpu,) = over_time(months(fall_on=12)[::-1])
    (trend, other) = gpu.trends
    (change,) = trend.changes
    assert trend.name == "dram read"
    assert gpu.dates[change.at].startswith("2026-03-12")
    assert change.ratio == pytest.approx(0.95, abs=0.005)
    assert trend.is_worse(change)
    assert other.changes == ()


def test_a_longer_time_is_worse():
    (gpu,) = over_time(months(slow_launch_on=8))
    (change,) = gpu.trends[0].changes
    assert gpu.trends[0].name == "stream"
    assert gpu.trends[0].is_worse(change)


def test_a_hundred_gpus_that_do_not_age_raise_no_alarm():
    for seed in range(100):
        (gpu,) = over_time(months(seed=seed))
        assert not any(trend.changes for trend in gpu.trends), seed


def test_each_gpu_is_for_itself_and_one_measured_once_is_left_out():
    two = months(count=3) + [measured(day, 4.6e12, uuid="GPU-2") for day in (1, 2)]
    found = over_time([*two, measured(1, 4.6e12, uuid="GPU-3")])
    assert [(gpu.gpu, len(gpu.dates)) for gpu in found] == [("GPU-1", 3), ("GPU-2", 2)]


def run(*arguments):
    app = typer.Typer()
    app.command()(machines)
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def folder(tmp_path):
    for machine in months(fall_on=12):
        save_machine(machine, tmp_path / f"{machine.name}.json")
    return tmp_path


def test_the_command_names_the_ceiling_the_day_and_the_driver(folder):
    result = run(folder, "--over-time")
    assert result.exit_code == 0
    assert "20 measurements from 2026-03-01 to 2026-03-20" in result.stdout
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("dram read"))
    assert line.split()[2:] == [
        *("2026-03-12", "4.60", "TB/s", "4.37", "TB/s", "worse", "580.1", "->", "590.2")
    ]
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_json_has_every_value(folder):
    (gpu,) = json.loads(run(folder, "--over-time", "--json").stdout)["gpus"]
    assert len(gpu["dates"]) == len(gpu["trends"][0]["values"]) == 20
    assert gpu["trends"][0]["changes"][0]["at"] == 11


def test_a_gpu_measured_once_is_no_history(tmp_path):
    save_machine(measured(1, 4.6e12), tmp_path / "a.json")
    result = run(tmp_path, "--over-time")
    assert isinstance(result.exception, MachineError)
    assert "measured twice" in str(result.exception)
