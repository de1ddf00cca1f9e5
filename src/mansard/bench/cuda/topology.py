"""Asking NVML and CUDA how two GPUs are linked; every source, since each may be silent."""

import contextlib
import ctypes
from collections import Counter
from typing import Any

from cuda.bindings import driver
from cuda.core import Device

from mansard.bench.cuda.device import check
from mansard.bench.cuda.sensors import Sensors
from mansard.bench.neighbour import Neighbour
from mansard.units import format_si, unit_factor

#: NVML's numbers: capability of a pair, fields of a GPU, most links of any.
_P2P_NVLINK, _P2P_PCIE = 2, 4
_FIELD_LINK_SPEED, _FIELD_LINK_COUNT = 90, 91
_MOST_LINKS = 36
_P2P = (
    "ok",
    "chipset does not support it",
    "GPU does not support it",
    "topology does not support it",
    "disabled",
    "not supported",
    "unknown",
)
_REMOTE = {0: "GPU", 1: "NPU", 2: "switch"}
_FABRIC = ("not supported", "not started", "in progress", "completed")
_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
_MEGA = unit_factor("mhz")[0]


def neighbour(sensors: Sensors, index: int, peer: int, peer_uuid: str) -> Neighbour:
    """Ask every source about the way from one GPU to another.

    Args:
        sensors: of the GPU.
        index: its CUDA index.
        peer: CUDA index of the other.
        peer_uuid: its UUID; empty if it is not known.
    """
    said: dict[str, str] = {}
    other, why = sensors.other(peer_uuid)
    over: dict[int, int | None] = {}
    for name, capability in (("NVLink P2P", _P2P_NVLINK), ("PCIe P2P", _P2P_PCIE)):
        status, problem = (
            (None, why) if other is None else sensors.ask("P2PStatus", other, capability)
        )
        over[capability] = status
        said[name] = problem or _named(_P2P, status)
    up, said["NVLinks"] = _links(sensors)
    count, speed, fields = _fields(sensors)
    said["NVLink fields"] = fields
    version, problem = sensors.ask("NvLinkVersion", 0)
    said["NVLink version"] = problem or _VERSIONS.get(version, f"number {version}")
    said["fabric"] = _fabric(sensors)
    said["CUDA"] = _cuda(index, peer)
    status = over[_P2P_NVLINK]
    return Neighbour(
        index=peer,
        nvlink_p2p=None if status is None or status >= len(_P2P) - 1 else status == 0,
        links_up=up,
        link_count=count if speed != 0 else None,
        said=said,
    )


def uuid_of(index: int) -> str:
    """Identity of a device as NVML and nvidia-smi give it."""
    try:
        uuid = str(Device(index).uuid)
    except Exception:  # noqa: BLE001  (only sensors and the machine file need it)
        return ""
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def _links(sensors: Sensors) -> tuple[int | None, str]:
    """Links that are up, and what each state and remote end was."""
    found: Counter[str] = Counter()
    first = None
    up = None
    for link in range(_MOST_LINKS):
        state, problem = sensors.ask("NvLinkState", link)
        if problem:
            first = first or problem
            continue
        up = (up or 0) + (state == 1)
        if state == 1:
            remote, _ = sensors.ask("NvLinkRemoteDeviceType", link)
            found[f"up to a {_REMOTE[remote]}" if remote in _REMOTE else "up"] += 1
        else:
            found["down"] += 1
    if up is None:
        return None, first or "no answer"
    return up, " and ".join(f"{count} {state}" for state, count in found.items())


def _fields(sensors: Sensors) -> tuple[int | None, int | None, str]:
    """Number of links, speed of a link in Mbyte/s, and both in words."""
    values, problem = sensors.ask("FieldValues", [_FIELD_LINK_COUNT, _FIELD_LINK_SPEED])
    if problem:
        return None, None, problem
    count, speed = (int(one.value.uiVal) if one.nvmlReturn == 0 else None for one in values)
    rate = None if speed is None else format_si(speed * _MEGA, "B/s", 5)
    return count, speed, f"count {count or 'not told'}, speed {rate or 'not told'}"


def _fabric(sensors: Sensors) -> str:
    """Whether a fabric manager has taken the GPU into an NVSwitch fabric."""
    kind = sensors.library("c_nvmlGpuFabricInfo_v2_t")
    if kind is None:
        return "NVML does not know it"
    info = kind()
    _, problem = sensors.ask("GpuFabricInfoV", ctypes.byref(info))
    return problem or _named(_FABRIC, info.state)


def _cuda(index: int, peer: int) -> str:
    attribute = driver.CUdevice_P2PAttribute
    said = []
    for text, what in (
        ("access", attribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED),
        ("atomics", attribute.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED),
        ("rank", attribute.CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK),
    ):
        value: Any = "no answer"
        with contextlib.suppress(Exception):
            value = int(check(driver.cuDeviceGetP2PAttribute(what, index, peer)))
        said.append(f"{text} {value}")
    return " ".join(said)


def _named(names: tuple[str, ...], number: Any) -> str:
    return names[number] if number in range(len(names)) else f"number {number}"
