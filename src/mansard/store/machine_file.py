"""Machines on disk: JSON files of ceilings, and those that come with Mansard."""

import codecs
import importlib.resources
import math
import re
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from mansard.errors import MachineError
from mansard.model.device import DeviceFacts
from mansard.model.machine import (
    MACHINE_FORMAT,
    ROOM_ABOVE_LIMIT,
    ROOM_ABOVE_LIMIT_CPU,
    Ceiling,
    Machine,
)
from mansard.model.paths import MACHINE_LEVELS, MACHINE_PATHS
from mansard.store.atomic import replacing

#: Far above any real machine file; a larger one is not read.
MAX_BYTES = 64 * 1024**2

_SUFFIX = ".json"
_NAME, _VERSION = MACHINE_FORMAT.split("/")
_UNITS = {"compute": "flop/s", "bandwidth": "byte/s", "latency": "s", "launch": "s"}
#: A share may be rounded by so much, as people write it.
_ROUNDED = 0.001
#: Below any time and above any rate, clock and size, and far from where quotients overflow.
_LEAST, _LARGEST = 1e-15, 1e30
#: Letters of a word of the file in a message.
_WORD = 40

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: Python refuses to read numbers of thousands of digits.
_VERSION_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class _SchemaOnly(msgspec.Struct):
    """The one field that every version of the format has."""

    schema: str = ""


def machine(name_or_path: str | Path) -> Machine:
    """The ceilings of a machine, by the name of a shipped one or from a file.

    Args:
        name_or_path: ``"v100-paper"`` or another of ``shipped_machines()``, or the path of a
            JSON file that ``save_machine`` or ``mansard bench`` wrote.

    Raises:
        MachineError: no such machine, or its file is wrong.
    """
    return load_machine(name_or_path)


def load_machine(name_or_path: str | Path) -> Machine:
    """Read and check a machine: see ``machine``."""
    path = Path(name_or_path)
    if path.is_file():
        return _read(path)
    text = str(name_or_path)
    shipped = shipped_machines()
    if text in shipped:
        return _decode((_folder() / f"{text}{_SUFFIX}").read_bytes(), f"shipped machine {text}")
    known = ", ".join(shipped) or "none"
    if isinstance(name_or_path, Path) or path.suffix == _SUFFIX or len(path.parts) > 1:
        raise MachineError(f"there is no machine file {text}; machines that come along: {known}")
    raise MachineError(
        f"there is no machine {text[:80]!r}: give one of {known}, or the path of a machine file"
    )


def shipped_machines() -> tuple[str, ...]:
    """Names of the machines that come with Mansard."""
    found = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def save_machine(machine: Machine, path: Path) -> None:
    """Write a machine as JSON, whole or not at all; equal machines give equal files.

    Raises:
        MachineError: a ceiling is not valid.
        OutputError: the file cannot be written.
    """
    _check(machine, machine.name)
    # Fields at their default are left out; the version must stand there all the same.
    fields = {"schema": machine.schema, **msgspec.to_builtins(machine, order="deterministic")}
    text = msgspec.json.format(msgspec.json.encode(fields), indent=2)
    with replacing(Path(path)) as part:
        part.write_bytes(text + b"\n")


def _folder() -> Traversable:
    return importlib.resources.files("mansard") / "machines"


def _read(path: Path) -> Machine:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise MachineError(f"{path} has {size} bytes; machine files have {MAX_BYTES} at most")
        return _decode(path.read_bytes(), str(path))
    except OSError as error:
        raise MachineError(f"cannot read {path}: {error.strerror or error}") from error


def _decode(content: bytes, where: str) -> Machine:
    try:
        content = _as_utf8(content)
        stated = msgspec.json.decode(content, type=_SchemaOnly).schema
        name, _, version = stated.partition("/")
        if name != _NAME or not _VERSION_NUMBER.fullmatch(version):
            raise MachineError(
                f"{where} is not a machine file: its schema is {stated[:60]!r}, not "
                f"{MACHINE_FORMAT!r}"
            )
        if int(version) > int(_VERSION):
            raise MachineError(
                f"{where} was written by a newer Mansard ({stated}; this one reads up to "
                f"{MACHINE_FORMAT}): update Mansard"
            )
        machine = msgspec.json.decode(content, type=Machine)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MachineError(
            f"{where} is not a machine file: {error}; 'mansard bench -o FILE' writes one"
        ) from error
    _check(machine, where)
    return machine


def _as_utf8(content: bytes) -> bytes:
    """Without the mark at the start that says the encoding; PowerShell's ``>`` writes UTF-16."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding).encode()
    return content


def _check(machine: Machine, where: str) -> None:
    """Refuse what would make a wrong roof."""
    if not machine.name:
        raise MachineError(f"{where}: the machine has no name")
    problem = _device_problem(machine.device)
    if problem:
        raise MachineError(f"{where}: the device {problem}; correct it, or leave it out")
    for index, ceiling in enumerate(machine.ceilings):
        problem = _problem(ceiling) or _beyond(ceiling, machine)
        if problem:
            words = (ceiling.kind, ceiling.path, ceiling.level, ceiling.access, ceiling.instruction)
            what = " ".join(word[:_WORD] for word in words if word)
            raise MachineError(
                f"{where}: ceiling {index} ({what}) {problem}; correct it, or measure again with "
                "'mansard bench -o FILE'"
            )


def _device_problem(device: DeviceFacts) -> str | None:
    """A number of the device that no device has."""
    for name in device.__struct_fields__:
        number = getattr(device, name)
        if isinstance(number, int | float) and not 0 <= number <= _LARGEST:
            return f"has {name} {number:.6g}; it must be from 0 to {_LARGEST:g}"
    return None


def _problem(ceiling: Ceiling) -> str | None:
    if ceiling.status == "refused":
        if not (ceiling.reason or "").strip():
            return "is refused without a reason"
    elif ceiling.value is None:
        return "has no value, and is not refused"
    if ceiling.unit != _UNITS[ceiling.kind]:
        return f"has unit {ceiling.unit}; its kind has {_UNITS[ceiling.kind]}"
    if ceiling.kind == "compute" and not ceiling.path:
        return "names no path"
    if ceiling.kind == "bandwidth" and not ceiling.level:
        return "names no level"
    if ceiling.kind == "launch" and not ceiling.access:
        return "does not say how it launches (access)"
    for word, named, known in (
        ("path", ceiling.path, MACHINE_PATHS),
        ("level", ceiling.level, MACHINE_LEVELS),
    ):
        if named is not None and named not in known:
            return f"has the unknown {word} {named[:_WORD]!r}; it can be {', '.join(known)}"
    numbers = {
        "value": ceiling.value,
        "sm_clock_hz": ceiling.sm_clock_hz,
        "limit_at_clock": ceiling.limit_at_clock,
        "share_of_limit": ceiling.share_of_limit,
        **{f"sample {index}": sample for index, sample in enumerate(ceiling.samples)},
    }
    for name, number in numbers.items():
        if number is not None and not _LEAST <= number <= _LARGEST:
            return f"has {name} {number:.6g}; it must be from {_LEAST:g} to {_LARGEST:g}"
    return None


def _beyond(ceiling: Ceiling, machine: Machine) -> str | None:
    """What of a value does not fit the limit that stands beside it."""
    value, limit, share = ceiling.value, ceiling.limit_at_clock, ceiling.share_of_limit
    if value is not None and limit is not None:
        found = value / limit
        of = f"value {value:.6g}, {100 * found:.4g} % of its limit_at_clock {limit:.6g}"
        if share is not None and not math.isclose(share, found, rel_tol=_ROUNDED):
            return f"has share_of_limit {share:.4g}, but {of}"
    elif share is not None:
        found, of = share, f"share_of_limit {share:.4g}"
    else:
        return None
    is_cpu = machine.device.compute_capability is None
    # What the bench lets stand above a documented limit of a CPU, it remarks on.
    if ceiling.status == "refused" or (is_cpu and ceiling.reason):
        return None
    room = ROOM_ABOVE_LIMIT_CPU if is_cpu else ROOM_ABOVE_LIMIT
    return f"has {of}: nothing is faster than its limit" if found > 1 + room else None
