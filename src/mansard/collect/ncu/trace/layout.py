"""The files of a trace: records of CUPTI by kind, byte by byte, texts apart.

One folder a process, named by its id. ``<kind>.bin`` holds the records of a kind one after the
other, with a hash in place of each pointer to a text; ``names.bin`` the texts: hash (8 bytes),
length (4 bytes), text. ``faults.txt`` says what went wrong.
"""

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mansard.collect.cupti import activity, records

if TYPE_CHECKING:
    from numpy import ndarray

#: The kinds that are written, with their records.
KINDS: dict[int, Any] = {
    activity.KERNEL: records.KernelRecord,
    activity.MEMCPY: records.CopyRecord,
    activity.PEER_COPY: records.PeerCopyRecord,
    activity.MEMSET: records.SetRecord,
    activity.RUNTIME: records.ApiRecord,
    activity.DRIVER: records.ApiRecord,
    activity.MARKER: records.MarkerRecord,
}
#: Fields that point to a text.
TEXTS = ("name", "domain")
#: A longer trace is cut there, and says so: about 4 million launches with their calls.
MOST_BYTES = 4 << 30
NAMES, FAULTS = "names.bin", "faults.txt"
HEAD = struct.Struct("<QI")
_HASH_START, _HASH_FACTOR, _MASK = 14695981039346656037, 1099511628211, 2**64 - 1


def layout_text() -> str:
    """The layout as the injected library reads it."""
    return ";".join(
        f"{kind}:{size_of(record)}:{','.join(map(str, text_offsets(record)))}"
        for kind, record in KINDS.items()
    )


def size_of(record: Any) -> int:
    """Bytes of a record."""
    import ctypes  # noqa: PLC0415  (its name is that of a parameter type elsewhere)

    return ctypes.sizeof(record)


def text_offsets(record: Any) -> list[int]:
    """Where a record points to texts."""
    return [getattr(record, name).offset for name in TEXTS if hasattr(record, name)]


def hash_of(text: bytes) -> int:
    """FNV-1a, as in the injected library."""
    value = _HASH_START
    for byte in text:
        value = (value ^ byte) * _HASH_FACTOR & _MASK
    return value


def read_kind(folder: Path, kind: int) -> "ndarray":
    """The records of one kind, as an array with the fields of the record; none is empty.

    A record that is cut short at the end is left out.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    record = KINDS[kind]
    fields = {name: getattr(record, name) for name in _field_names(record)}
    layout = np.dtype(
        {
            "names": list(fields),
            "formats": [_format(name, field.size) for name, field in fields.items()],
            "offsets": [field.offset for field in fields.values()],
            "itemsize": size_of(record),
        }
    )
    path = folder / f"{kind}.bin"
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data[: len(data) // layout.itemsize * layout.itemsize], dtype=layout)


def read_names(folder: Path) -> dict[int, str]:
    """The texts by their hash."""
    path = folder / NAMES
    data = path.read_bytes() if path.exists() else b""
    found = {0: ""}
    at = 0
    while at + HEAD.size <= len(data):
        number, length = HEAD.unpack_from(data, at)
        at += HEAD.size
        if at + length > len(data):
            break
        found[number] = data[at : at + length].decode(errors="replace")
        at += length
    return found


def read_faults(folder: Path) -> list[str]:
    """What went wrong in a process."""
    path = folder / FAULTS
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def _field_names(record: Any) -> list[str]:
    fields = [*records.Record._fields_, *record._fields_]
    return [name for name, *_ in fields]


def _format(name: str, size: int) -> str:
    """All fields are little-endian integers; arrays of them are not read."""
    signed = name.startswith(("grid", "block")) and name != "gridId"
    return {1: "u1", 2: "<u2", 4: "<i4" if signed else "<u4", 8: "<u8"}.get(size, f"V{size}")
