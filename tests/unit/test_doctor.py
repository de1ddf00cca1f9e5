"""What ``mansard doctor`` finds on machines made up of a few files, and on this one."""

import importlib
import json
import types

import pytest
import typer

from mansard.cli.doctor import doctor as command
from mansard.doctor import Finding, System, doctor
from mansard.errors import DeviceError
from mansard.model.device import DeviceFacts

# The public name mansard.doctor is the function; its module is reached so.
module = importlib.import_module("mansard.doctor")


@pytest.fixture
def system(tmp_path):
    """An empty machine: /proc and / are folders of the test."""
    (tmp_path / "proc/self").mkdir(parents=True)
    return System(proc=tmp_path / "proc", root=tmp_path / "root", environment={})


@pytest.fixture
def no_driver(monkeypatch):
    def refuse():
        raise DeviceError("no NVIDIA driver was found (libcuda.so.1)")

    monkeypatch.setattr(module, "load_driver", refuse)
    monkeypatch.setattr(module, "_nvml_devices", lambda: iter(()))


def a_driver(monkeypatch, cuda=(13, 0), capability="9.0"):
    facts = DeviceFacts(name="NVIDIA H200", compute_capability=capability, sm_count=132)
    driver = types.SimpleNamespace(cuda_version=cuda, device_count=1, facts=lambda index: facts)
    monkeypatch.setattr(module, "load_driver", lambda: driver)
    monkeypatch.setattr(module, "_nvml_devices", lambda: iter(()))


def params(system, value, capabilities=0):
    folder = system.proc / "driver/nvidia"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params").write_text(f"RmMsg: \nRmProfilingAdminOnly: {value}\nOther: 1\n")
    (system.proc / "self/status").write_text(f"Name:\tx\nCapEff:\t{capabilities:016x}\n")


def process(system, number, name):
    folder = system.proc / str(number)
    folder.mkdir()
    (folder / "comm").write_text(f"{name}\n")


def found(system, what):
    return [finding for finding in doctor(system) if finding.what == what]


@pytest.mark.usefixtures("no_driver")
def test_without_a_gpu_everything_is_looked_at_and_nothing_fails(system):
    findings = doctor(system)
    states = {finding.what: finding.state for finding in findings}
    assert states["driver"] == "problem"
    assert states["GPU"] == "problem"
    assert states["permission"] == "unknown"
    assert "this folder" in states
    driver = next(finding for finding in findings if finding.what == "driver")
    assert "--gpus all" in driver.remedy


@pytest.mark.usefixtures("no_driver")
def test_every_problem_and_warning_has_a_remedy_or_stands_behind_one(system):
    for finding in doctor(system):
        if finding.state in ("problem", "warning") and finding.what != "GPU":
            assert finding.remedy


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize(
    ("value", "capabilities", "state"),
    [("0", 0, "ok"), ("1", 0, "problem"), ("1", 1 << 21, "ok"), ("1", 1 << 38, "ok")],
)
def test_permission_follows_the_drivers_setting_and_the_capabilities(
    system, value, capabilities, state
):
    params(system, value, capabilities)
    (finding,) = found(system, "permission")
    assert finding.state == state
    if state == "problem":
        assert "NVreg_RestrictProfilingToAdminUsers=0" in finding.remedy


@pytest.mark.usefixtures("no_driver")
def test_programs_that_hold_the_counters_are_named(system):
    process(system, 10, "nv-hostengine")
    process(system, 11, "python3")
    process(system, 12, "ncu")
    (finding,) = found(system, "other profilers")
    assert finding.state == "warning"
    assert finding.found == "running: ncu, nv-hostengine"
    assert "dcgmi profiling --pause" in finding.remedy


@pytest.mark.usefixtures("no_driver")
def test_mps_is_seen_by_its_process_or_its_variable(system):
    assert found(system, "MPS") == []
    process(system, 10, "nvidia-cuda-mps-server"[:15])
    assert found(system, "MPS")[0].state == "warning"
    other = System(
        proc=system.root, root=system.root, environment={"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps"}
    )
    assert found(other, "MPS")[0].state == "warning"


@pytest.mark.usefixtures("no_driver")
def test_a_container_without_the_capability_is_told(system):
    system.root.mkdir()
    (system.root / ".dockerenv").touch()
    params(system, "0")
    (finding,) = found(system, "container")
    assert finding.state == "warning"
    assert "--cap-add=SYS_ADMIN" in finding.remedy
    params(system, "0", 1 << 21)
    assert found(system, "container")[0].state == "ok"


def test_a_known_gpu_is_told_with_its_counter_table(system, monkeypatch):
    a_driver(monkeypatch)
    (finding,) = found(system, "GPU 0")
    assert finding.state == "ok"
    assert finding.found == ("NVIDIA H200, compute capability 9.0, 132 SM, counter table gh100")


def test_a_gpu_that_no_table_is_for_is_a_warning(system, monkeypatch):
    a_driver(monkeypatch, capability="99.0")
    (finding,) = found(system, "GPU 0")
    assert finding.state == "warning"
    assert "Update Mansard" in finding.remedy


def test_a_cupti_newer_than_the_driver_is_a_problem(system, monkeypatch):
    a_driver(monkeypatch, cuda=(12, 8))
    monkeypatch.setattr(module, "find_cupti", lambda major: "/x/libcupti.so.13")
    monkeypatch.setattr(module, "load_cupti", lambda: types.SimpleNamespace(version="13.0"))
    (finding,) = found(system, "CUPTI")
    assert finding.state == "problem"
    assert "mansard[cuda12]" in finding.remedy


def test_a_missing_cupti_says_how_to_install_it(system, monkeypatch):
    a_driver(monkeypatch)
    monkeypatch.setattr(module, "find_cupti", lambda major: None)
    (finding,) = found(system, "CUPTI")
    assert finding.state == "problem"
    assert "pip install 'mansard[cuda]'" in finding.remedy


@pytest.mark.usefixtures("no_driver")
def test_missing_packages_of_cuda_are_told_with_the_command_that_installs_them(system, monkeypatch):
    def version(name):
        raise module.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.metadata, "version", version)
    (finding,) = found(system, "cuda bindings")
    assert finding.state == "warning"
    assert finding.found == "missing (cuda-core): bench and validate cannot use a GPU"
    assert finding.remedy.startswith("pip install 'mansard[cuda]'")


@pytest.mark.usefixtures("no_driver")
def test_installed_packages_of_cuda_are_told_with_their_versions(system, monkeypatch):
    monkeypatch.setattr(module.metadata, "version", lambda _: "13.1")
    (finding,) = found(system, "cuda bindings")
    assert (finding.state, finding.found) == ("ok", "cuda-core 13.1, cuda-bindings 13.1")


def nvml(mig=0, reasons=0):
    error = type("NVMLError", (Exception,), {})
    return types.SimpleNamespace(
        NVMLError=error,
        NVML_CLOCK_SM=1,
        nvmlClocksThrottleReasonSwThermalSlowdown=0x20,
        nvmlDeviceGetMigMode=lambda device: (mig, mig),
        nvmlDeviceGetClockInfo=lambda device, which: 1410,
        nvmlDeviceGetMaxClockInfo=lambda device, which: 1980,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda device: reasons,
    )


def test_a_hot_gpu_and_a_sliced_one_are_warnings(system, monkeypatch):
    a_driver(monkeypatch)
    slow = nvml(mig=1, reasons=0x20)
    monkeypatch.setattr(module, "_nvml_devices", lambda: iter([(0, "device", slow)]))
    (clock,) = found(system, "clock of GPU 0")
    assert clock.state == "warning"
    assert clock.found == "SM 1.41 GHz now, at most 1.98 GHz, slowed by temperature"
    assert found(system, "MIG")[0].state == "warning"


def test_a_full_disk_is_a_warning(system, monkeypatch):
    a_driver(monkeypatch)
    monkeypatch.setattr(
        module.shutil, "disk_usage", lambda folder: types.SimpleNamespace(free=10**6)
    )
    (finding,) = found(system, "this folder")
    assert finding.state == "warning"
    assert finding.found == "1.00 MB free in ."


def run(monkeypatch, findings, *arguments):
    monkeypatch.setattr(module, "doctor", lambda: findings)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    return app(args=list(arguments), standalone_mode=False)


def test_the_table_names_what_to_do_and_the_exit_code_tells_problems(monkeypatch, capsys):
    fine = Finding(what="driver", state="ok", found="580")
    wrong = Finding(what="permission", state="problem", found="no", remedy="ask [bold]root[/]")
    assert run(monkeypatch, (fine,)) is None
    assert run(monkeypatch, (fine, wrong)) == 3
    output = capsys.readouterr().out
    assert "-> ask [bold]root[/]" in output
    assert max(map(len, output.splitlines())) <= 80


def test_findings_come_as_json(monkeypatch, capsys):
    wrong = Finding(what="permission", state="problem", found="no", remedy="ask")
    run(monkeypatch, (wrong,), "--json")
    assert json.loads(capsys.readouterr().out) == [
        {"what": "permission", "state": "problem", "found": "no", "remedy": "ask"}
    ]


def test_this_machine_can_be_examined():
    findings = doctor()
    assert {"system", "driver", "CUPTI", "permission"} <= {finding.what for finding in findings}
