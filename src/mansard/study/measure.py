"""Measures one cell in this process: build, time, energy, counters."""

import contextlib
import dataclasses
import datetime as dt
import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mansard import engine
from mansard.errors import CollectError, MansardError
from mansard.model.device import DeviceFacts
from mansard.store import open_run, write_run
from mansard.study.cell import CellRecord, Flop, Folder, Layer
from mansard.study.energy import EnergyMeter, EnergySensor
from mansard.study.plan import Cell
from mansard.study.timing import WARMUP_STEPS, time_steps
from mansard.version import __version__
from mansard.workloads import Unavailable, Workload, build
from mansard.workloads.workload import Configuration

#: Libraries whose versions stand in a record.
_LIBRARIES = (
    "torch",
    "keras",
    "jax",
    "jaxlib",
    "tensorflow",
    "tensorflow-cpu",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cuda-cupti",
    "triton",
    "numpy",
)
#: Classes of errors that mean that memory did not suffice, by name: the frameworks have their own.
_OUT_OF_MEMORY = ("OutOfMemoryError", "ResourceExhaustedError", "MemoryError")
_MEMORY_WORDS = ("out of memory", "RESOURCE_EXHAUSTED")


@dataclasses.dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that a cell runs on.

    Attributes:
        facts: what the driver says of it.
        driver_version: of the display driver.
        sensor: its energy counter.
    """

    facts: DeviceFacts
    driver_version: str | None
    sensor: EnergySensor | None


def find_gpu(device: str) -> Gpu | None:
    """The GPU behind a name such as ``cuda:0``; None for a CPU.

    Raises:
        DeviceError: there is no driver or no such GPU.
    """
    if not device.startswith("cuda"):
        return None
    from mansard.bench.cuda.sensors import Sensors  # noqa: PLC0415
    from mansard.collect.cupti.driver import load_driver  # noqa: PLC0415

    facts = load_driver().facts(int(device.partition(":")[2] or 0))
    sensors = Sensors(facts.uuid or "")
    return Gpu(facts, sensors.driver(), sensors)


def measure_cell(
    cell: Cell,
    folder: Folder,
    *,
    preset: str,
    build_step: Callable[[Configuration], Workload] = build,
    gpu_of: Callable[[str], Gpu | None] = find_gpu,
) -> CellRecord:
    """Measure one cell and write its files. A cell that cannot run is a finding, not an error.

    Args:
        cell: what to run.
        folder: where its files go.
        preset: name of the sizes.
        build_step: makes the workload.
        gpu_of: finds the GPU.

    Returns:
        What was found, as it was written.
    """
    # A process that is ended midway must not leave an earlier run beside a later record.
    folder.run_file(cell.name).unlink(missing_ok=True)
    record = blank(cell, preset)
    try:
        record = _measured(cell, folder, record, build_step, gpu_of)
    except Unavailable as error:
        record = msgspec.structs.replace(record, state="unavailable", reason=str(error))
    except Exception as error:  # noqa: BLE001  (whatever a framework raises is the finding)
        record = msgspec.structs.replace(record, state="failed", reason=reason_of(error))
    folder.save(record)
    return record


def blank(cell: Cell, preset: str) -> CellRecord:
    """The record of a cell of which nothing is known yet."""
    return CellRecord(
        name=cell.name,
        title=cell.title,
        configuration=dataclasses.asdict(cell.configuration),
        preset=preset,
        state="failed",
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    )


def reason_of(error: Exception) -> str:
    """One line on why a cell failed."""
    name = type(error).__name__
    text = " ".join(str(error).split())[:400]
    if name in _OUT_OF_MEMORY or any(words in text for words in _MEMORY_WORDS):
        return f"out of memory ({name}): {text}"
    return f"{name}: {text}" if text else name


def _measured(
    cell: Cell,
    folder: Folder,
    record: CellRecord,
    build_step: Callable[[Configuration], Workload],
    gpu_of: Callable[[str], Gpu | None],
) -> CellRecord:
    seconds: dict[str, float] = {}
    gpu = gpu_of(cell.configuration.device)
    with _taking(seconds, "build"):
        workload = build_step(cell.configuration)
    with _taking(seconds, "first step"):
        workload.step()
        workload.synchronize()
    first_loss = workload.loss()
    with _taking(seconds, "timing"):
        for _ in range(WARMUP_STEPS):
            workload.step()
        meter = EnergyMeter(gpu.sensor if gpu else None)
        timed = time_steps(workload, meter)
    last_loss = workload.loss()
    record = msgspec.structs.replace(
        record,
        state="measured",
        device=gpu.facts if gpu else None,
        driver_version=gpu.driver_version if gpu else None,
        versions=_versions(),
        conditions=_conditions(),
        parameters=workload.parameters,
        analytic=tuple(
            Flop(phase=each.phase, kind=each.kind, flop=each.flop) for each in workload.flop
        ),
        layers=tuple(Layer(**dataclasses.asdict(each)) for each in workload.layers),
        step_s=timed.step_s,
        timed_by=timed.timed_by,
        queued_step_s=timed.queued_step_s,
        energy_j=meter.energy_j,
        energy_steps=meter.steps,
        energy_reason=meter.reason,
        losses=(first_loss, last_loss),
        seconds=seconds,
    )
    if gpu is None:
        return msgspec.structs.replace(record, collect_reason="a CPU has no GPU counters")
    # What is known so far stays, should the profile end the process.
    folder.save(msgspec.structs.replace(record, collect_reason="the process ended in the profile"))
    with _taking(seconds, "profile"):
        return _profiled(workload, folder, record)


def _profiled(workload: Workload, folder: Folder, record: CellRecord) -> CellRecord:
    """Take counters; where they are refused, a trace alone."""
    path = folder.run_file(record.name)
    reason = None
    for level in ("counters", "trace"):
        try:
            failure = profile_steps(workload, path, level)
            failed = None if failure is None else str(failure)
        except MansardError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001  (a step that breaks under counters)
            failed = reason_of(error)
        reason = reason or failed
        if path.is_file():
            break
    if not path.is_file():
        return msgspec.structs.replace(record, collect_reason=reason or "nothing was recorded")
    state_step(path, record.step_s)
    return msgspec.structs.replace(
        record, run=path.name, counted=counted_flop(path), collect_reason=reason
    )


def state_step(path: Path, step_s: Sequence[float]) -> None:
    """Put the time of an undisturbed step into a run, whose own trace lengthens it."""
    if not step_s:
        return
    (origin,) = open_run(path).provenance
    told = {
        "step_host_s": f"{statistics.median(step_s):.6f}",
        "step_host_from": "median of the steps that were timed before",
    }
    with engine.connect() as connection:
        write_run(
            connection,
            f"SELECT * FROM {engine.parquet((path,))}",
            msgspec.structs.replace(origin, extra={**origin.extra, **told}),
            path,
        )


def profile_steps(workload: Workload, path: Path, level: str) -> MansardError | None:
    """Let the in-process collector see as many steps as it needs.

    Returns:
        Why it stopped early; None where it did not.
    """
    from mansard.collect import profile  # noqa: PLC0415

    taken = profile(path, level=level, warmup=WARMUP_STEPS, phases=workload.phases)
    with taken:
        while not taken.done:
            with taken.step():
                workload.step()
                workload.synchronize()
    if taken.run is None and taken.failure is None:
        return CollectError("nothing was recorded")
    return taken.failure


def counted_flop(path: Path) -> tuple[Flop, ...]:
    """Counted work of one step of a run, by phase."""
    from mansard.analysis import analyze  # noqa: PLC0415

    analysis = analyze(open_run(path))
    return tuple(
        Flop(phase=phase.key, flop=phase.flop, complete=phase.flop_complete)
        for phase in analysis.phases
    )


@contextlib.contextmanager
def _taking(seconds: dict[str, float], what: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[what] = round(time.perf_counter() - began, 3)


def _versions() -> dict[str, str]:
    found: dict[str, Any] = {"mansard": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[library] = importlib.metadata.version(library)
    return found


def _conditions() -> dict[str, str]:
    """Environment variables that change what frameworks do."""
    names = ("XLA_FLAGS", "KERAS_BACKEND", "TF_FORCE_GPU_ALLOW_GROWTH", "NVIDIA_TF32_OVERRIDE")
    return {name: os.environ[name] for name in names if os.environ.get(name)}
