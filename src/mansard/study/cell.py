"""What one cell of a study found, as a file: ``cells/NAME.json`` beside ``runs/NAME.parquet``."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from mansard.errors import FormatError, InputError
from mansard.model.device import DeviceFacts
from mansard.store.atomic import replacing

#: Version of the file.
#: 1: first.
CELL_FORMAT = "mansard-study-cell/1"

#: A cell file is a few kilobytes; more is none of ours.
_MOST_BYTES = 16 * 1024**2

#: ``measured``: it ran. ``unavailable``: it cannot be built here. ``failed``: it ended with an
#: error, a crash or out of memory, or took too long.
State = Literal["measured", "unavailable", "failed"]

#: Numbers that can have been measured: none is negative, and sums of them stay finite.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Flop(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one phase: from the shapes (with its kind of operation) or as counted.

    Attributes:
        phase: name; None for work outside any phase.
        kind: of the operation; None for counted work, which is of all kinds.
        flop: operations of one step; None where they were not counted.
        complete: False where some path was not counted, so that ``flop`` is a lower bound.
    """

    phase: str | None
    kind: str | None = None
    flop: Amount | None = None
    complete: bool = True


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one layer, from its shapes.

    Attributes:
        name: of the layer.
        kind: of its operation.
        forward: FLOP of its forward pass.
        backward: FLOP of its backward pass.
    """

    name: str
    kind: str
    forward: Count
    backward: Count


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of one cell; None is unknown.

    Attributes:
        name: of the cell.
        title: what a person calls it.
        configuration: its fields.
        preset: ``paper`` or ``tiny`` size.
        state: whether it ran.
        reason: why it did not, or why something of it is missing.
        created: ISO 8601 time, UTC.
        device: the GPU; None on a CPU.
        driver_version: of the display driver.
        versions: of the libraries in the process.
        conditions: settings that change numbers.
        parameters: of the model.
        analytic: FLOP from the shapes, by phase and kind.
        layers: what these are sums of, in the order of the forward pass; empty where not known.
        counted: FLOP from the counters, by phase; empty where nothing was counted.
        step_s: times of undisturbed steps, taken before any counter.
        timed_by: how they were taken.
        queued_step_s: mean time of a step when none is waited for.
        energy_j: energy of the whole GPU for one step; None with ``energy_reason``.
        energy_steps: steps over which it was taken.
        energy_reason: why there is no energy.
        losses: after the first step and after the last.
        run: name of the run file in ``runs``; None where no counters or trace were taken.
        collect_reason: why the profile is missing or not whole.
        seconds: what each part of the measurement took.
    """

    schema: str = CELL_FORMAT
    name: str
    title: str
    configuration: dict[str, Any]
    preset: str
    state: State
    reason: str | None = None
    created: str = ""
    device: DeviceFacts | None = None
    driver_version: str | None = None
    versions: dict[str, str] = {}
    conditions: dict[str, str] = {}
    parameters: Count | None = None
    analytic: tuple[Flop, ...] = ()
    layers: tuple[Layer, ...] = ()
    counted: tuple[Flop, ...] = ()
    step_s: tuple[Amount, ...] = ()
    timed_by: str | None = None
    queued_step_s: Amount | None = None
    energy_j: Amount | None = None
    energy_steps: Count | None = None
    energy_reason: str | None = None
    losses: tuple[float | None, float | None] | None = None
    run: str | None = None
    collect_reason: str | None = None
    seconds: dict[str, Amount] = {}

    @property
    def on_gpu(self) -> bool:
        """Whether it was meant for a GPU."""
        return str(self.configuration.get("device", "")).startswith("cuda")

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to measure: of a GPU the profile was taken, or was refused."""
        profiled = self.run is not None or "profile" in self.seconds
        return self.state == "measured" and (profiled or not self.on_gpu)


class Folder:
    """The files of a study.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def cell_file(self, name: str) -> Path:
        """What a cell found."""
        return self.path / "cells" / f"{name}.json"

    def run_file(self, name: str) -> Path:
        """Its launches."""
        return self.path / "runs" / f"{name}.parquet"

    def log_file(self, name: str) -> Path:
        """What its process printed."""
        return self.path / "logs" / f"{name}.txt"

    def make(self) -> None:
        """Make the folders.

        Raises:
            InputError: that is not possible.
        """
        try:
            for part in ("cells", "runs", "logs"):
                (self.path / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self.path}: {error.strerror}") from error

    def save(self, record: CellRecord) -> None:
        """Write what a cell found, whole or not at all."""
        text = msgspec.json.format(msgspec.json.encode(record), indent=2)
        with replacing(self.cell_file(record.name)) as path:
            path.write_bytes(text + b"\n")

    def load(self, name: str) -> CellRecord | None:
        """What a cell found; None where it has not run.

        Raises:
            FormatError: the file is none of ours.
        """
        file = self.cell_file(name)
        return read_cell(file) if file.is_file() else None

    def find(self, name: str) -> CellRecord | None:
        """What a cell found; None where it has not run or its file is damaged."""
        try:
            return self.load(name)
        except FormatError:
            return None


def read_cell(path: Path) -> CellRecord:
    """Read the file of a cell.

    Raises:
        FormatError: it is none, or of a later version.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise FormatError(f"{path} is too large for a cell of a study")
    try:
        record = msgspec.json.decode(path.read_bytes(), type=CellRecord)
    except msgspec.DecodeError as error:
        raise FormatError(f"{path} is no cell of a study: {error}") from None
    if record.schema != CELL_FORMAT:
        raise FormatError(f"{path} has the format '{record.schema[:60]}', not '{CELL_FORMAT}'")
    return record
