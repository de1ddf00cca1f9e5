"""Why something does not work here: findings about driver, GPU, CUPTI, permission and machine.

Every look is a function that returns findings and never fails; it works without a GPU too.
"""

import contextlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec

from mansard.bench.messages import INSTALL_BINDINGS
from mansard.collect.cupti.driver import load_driver
from mansard.collect.cupti.failures import PERMISSION_REMEDY
from mansard.collect.cupti.library import find_cupti, load_cupti
from mansard.collect.record import driver_version
from mansard.counters.table import table_for
from mansard.errors import MansardError
from mansard.units import format_si, unit_factor

State = Literal["ok", "warning", "problem", "unknown"]

_SYS_ADMIN, _PERFMON = 21, 38
#: Programs that hold the counters of a GPU while they run, as the kernel names them (15 letters).
_PROFILERS = ("ncu", "nsys", "nv-hostengine", "dcgm-exporter", "nv-nsight-cu-cl", "dcgmi")
_MPS = ("nvidia-cuda-mps",)
_BINDINGS = ("cuda-core", "cuda-bindings")
_ENOUGH_BYTES = 1 << 30
_MHZ = unit_factor("mhz")[0]
_SLOWDOWNS = {
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "temperature",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "temperature (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "external power brake",
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    Attributes:
        what: the thing, e.g. ``permission``.
        state: ``problem`` stops counters from working; ``warning`` may; ``unknown`` could not be
            told.
        found: what was seen.
        remedy: what to do; empty when nothing is needed.
    """

    what: str
    state: State
    found: str
    remedy: str = ""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The places that are looked at.

    Attributes:
        proc: the folder ``/proc``.
        environment: variables of this process.
        root: the folder ``/``.
    """

    proc: Path = Path("/proc")
    environment: dict[str, str] = {}
    root: Path = Path("/")


def doctor(system: System | None = None) -> tuple[Finding, ...]:
    """Look at everything that counters and ceilings need.

    Args:
        system: where to look; this machine by default.

    Returns:
        What was found, in the order in which things depend on each other.
    """
    here = system or System(environment=dict(os.environ))
    looks: tuple[Callable[[System], Iterator[Finding]], ...] = (
        _platform,
        _driver,
        _gpus,
        _bindings,
        _cupti,
        _permission,
        _container,
        _other_profilers,
        _sharing,
        _clocks,
        _ncu,
        _frameworks,
        _disk,
    )
    return tuple(finding for look in looks for finding in look(here))


def _problem(what: str, found: str, remedy: str = "") -> Finding:
    return Finding(what=what, state="problem", found=found, remedy=remedy)


def _platform(_system: System) -> Iterator[Finding]:
    what = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if sys.platform == "linux":
        yield Finding(what="system", state="ok", found=what)
        return
    remedy = "counters and ceilings of a GPU are measured under Linux; reports work anywhere"
    yield _problem("system", what, remedy)


def _driver(system: System) -> Iterator[Finding]:
    version = driver_version(system.proc / "driver/nvidia/version")
    try:
        cuda = ".".join(map(str, load_driver().cuda_version))
    except MansardError as error:
        yield _problem(
            "driver",
            str(error),
            "install NVIDIA's driver, or start the container with --gpus all. Reports, charts and "
            "imports work without",
        )
        return
    yield Finding(what="driver", state="ok", found=f"{version or 'version unknown'}, CUDA {cuda}")


def _gpus(_system: System) -> Iterator[Finding]:
    try:
        driver = load_driver()
        facts = [driver.facts(index) for index in range(driver.device_count)]
    except MansardError as error:
        yield _problem("GPU", str(error))
        return
    for index, each in enumerate(facts):
        table = table_for(compute_capability=each.compute_capability)
        known = bool(table.compute_capabilities)
        yield Finding(
            what=f"GPU {index}",
            state="ok" if known else "warning",
            found=f"{each.name}, compute capability {each.compute_capability}, "
            f"{each.sm_count} SM, counter table {table.name}",
            remedy=""
            if known
            else "no counter table is for this chip: tensor work stays unknown. Update Mansard",
        )


def _bindings(_system: System) -> Iterator[Finding]:
    """The packages behind ceilings of a GPU; counters of a profile do without."""
    try:
        found = ", ".join(f"{name} {metadata.version(name)}" for name in _BINDINGS)
    except metadata.PackageNotFoundError as error:
        yield Finding(
            what="cuda bindings",
            state="warning",
            found=f"missing ({error.name}): bench and validate cannot use a GPU",
            remedy=INSTALL_BINDINGS,
        )
        return
    yield Finding(what="cuda bindings", state="ok", found=found)


def _cupti(_system: System) -> Iterator[Finding]:
    path = find_cupti(_driver_major())
    if path is None:
        yield _problem(
            "CUPTI",
            "not found in Python packages, CUDA_HOME or /usr/local/cuda",
            "pip install 'mansard[cuda]' (or nvidia-cuda-cupti); 'mansard[cuda12]' for drivers of "
            "CUDA 12",
        )
        return
    try:
        version = load_cupti().version
    except MansardError as error:
        yield _problem("CUPTI", str(error))
        return
    major, driver_major = version.split(".", maxsplit=1)[0], _driver_major()
    if major.isdecimal() and driver_major is not None and int(major) > driver_major:
        yield _problem(
            "CUPTI",
            f"CUDA {version} at {path}, but the driver serves CUDA {driver_major}",
            "install the CUPTI of the driver's CUDA (pip install 'mansard[cuda12]'), or a newer "
            "driver",
        )
        return
    yield Finding(what="CUPTI", state="ok", found=f"CUDA {version} at {path}")


def _permission(system: System) -> Iterator[Finding]:
    try:
        text = (system.proc / "driver/nvidia/params").read_text(errors="replace")
    except OSError:
        found = "the driver's settings cannot be read (no driver, or hidden by the container)"
        yield Finding(what="permission", state="unknown", found=found)
        return
    settings = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    admin_only = settings.get("RmProfilingAdminOnly", "").strip()
    capable = _capabilities(system)
    if admin_only == "0":
        yield Finding(what="permission", state="ok", found="every user may read counters")
    elif capable & (1 << _SYS_ADMIN | 1 << _PERFMON):
        found = "only administrators may read counters; you are one"
        yield Finding(what="permission", state="ok", found=found)
    else:
        found = f"RmProfilingAdminOnly is {admin_only or 'not stated'}"
        yield _problem("permission", found, PERMISSION_REMEDY)


def _container(system: System) -> Iterator[Finding]:
    inside = (system.root / ".dockerenv").exists() or (system.root / "run/.containerenv").exists()
    if not inside:
        return
    admin = bool(_capabilities(system) & (1 << _SYS_ADMIN))
    yield Finding(
        what="container",
        state="ok" if admin else "warning",
        found="in a container, " + ("with" if admin else "without") + " CAP_SYS_ADMIN",
        remedy="" if admin else "if counters are refused, start it with --cap-add=SYS_ADMIN",
    )


def _other_profilers(system: System) -> Iterator[Finding]:
    running = sorted(set(_running(system, _PROFILERS)))
    yield Finding(
        what="other profilers",
        state="warning" if running else "ok",
        found=f"running: {', '.join(running)}" if running else "none seen",
        remedy="one tool at a time can hold the counters: stop it, or pause DCGM with "
        "'dcgmi profiling --pause'"
        if running
        else "",
    )


def _sharing(system: System) -> Iterator[Finding]:
    if any(_running(system, _MPS)) or "CUDA_MPS_PIPE_DIRECTORY" in system.environment:
        yield Finding(
            what="MPS",
            state="warning",
            found="the multi-process service is in use",
            remedy="counters then hold the work of all its clients: stop it with "
            "'echo quit | nvidia-cuda-mps-control' while you measure",
        )
    for index, device, nvml in _nvml_devices():
        with contextlib.suppress(nvml.NVMLError):
            current, _ = nvml.nvmlDeviceGetMigMode(device)
            if current:
                yield Finding(
                    what="MIG",
                    state="warning",
                    found=f"GPU {index} is cut into slices",
                    remedy="counters of a slice are limited: use a whole GPU, or '--level trace'",
                )


def _clocks(_system: System) -> Iterator[Finding]:
    for index, device, nvml in _nvml_devices():
        with contextlib.suppress(nvml.NVMLError):
            now = nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM) * _MHZ
            most = nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM) * _MHZ
            reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
            slowed = [text for name, text in _SLOWDOWNS.items() if reasons & getattr(nvml, name, 0)]
            yield Finding(
                what=f"clock of GPU {index}",
                state="warning" if slowed else "ok",
                found=f"SM {format_si(now, 'Hz')} now, at most {format_si(most, 'Hz')}"
                + (f", slowed by {', '.join(slowed)}" if slowed else ""),
                remedy="let it cool, or look at power and fans: 'nvidia-smi -q -d PERFORMANCE'"
                if slowed
                else "",
            )


def _ncu(_system: System) -> Iterator[Finding]:
    missing = "not on the PATH; only needed to record programs that are not Python"
    yield Finding(what="Nsight Compute", state="ok", found=shutil.which("ncu") or missing)


def _frameworks(_system: System) -> Iterator[Finding]:
    found = []
    for name in ("torch", "jax", "tensorflow"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    yield Finding(what="frameworks", state="ok", found=", ".join(found) or "none installed")


def _disk(_system: System) -> Iterator[Finding]:
    for what, folder in (("temporary folder", tempfile.gettempdir()), ("this folder", ".")):
        try:
            free = shutil.disk_usage(folder).free
        except OSError as error:
            yield _problem(what, f"{folder}: {error.strerror}")
            continue
        enough = free >= _ENOUGH_BYTES and os.access(folder, os.W_OK)
        yield Finding(
            what=what,
            state="ok" if enough else "warning",
            found=f"{format_si(free, 'B')} free in {folder}",
            remedy="" if enough else "runs and temporary tables are written there: make room",
        )


def _driver_major() -> int | None:
    with contextlib.suppress(MansardError):
        return load_driver().cuda_version[0]
    return None


def _capabilities(system: System) -> int:
    """Effective capabilities of this process, as a bit set."""
    with contextlib.suppress(OSError, ValueError):
        for line in (system.proc / "self/status").read_text(errors="replace").splitlines():
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    return 0


def _running(system: System, names: tuple[str, ...]) -> Iterator[str]:
    """Names of running programs that start with one of ``names``."""
    for file in system.proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            name = file.read_text(errors="replace").strip()
            if any(name == each or name.startswith(f"{each}-") for each in names):
                yield name


def _nvml_devices() -> Iterator[tuple[int, Any, Any]]:
    """Index and handle of each GPU in NVML; none where it is missing."""
    try:
        import pynvml  # noqa: PLC0415  (only who asks pays for it)
    except ImportError:
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            yield index, pynvml.nvmlDeviceGetHandleByIndex(index), pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
