"""Each answer that NVML may give about the link between two GPUs."""

import ctypes
import sys
import types

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

from mansard.bench.cuda.sensors import Sensors
from mansard.bench.cuda.topology import neighbour


class Fabric(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("state", ctypes.c_ubyte))


def field(value, status=0):
    return types.SimpleNamespace(nvmlReturn=status, value=types.SimpleNamespace(uiVal=value))


def refuse(*_):
    raise RuntimeError("Not Supported")


def library(**answers):
    """An NVML that refuses everything but what is given."""
    names = (
        "P2PStatus",
        "NvLinkState",
        "NvLinkRemoteDeviceType",
        "FieldValues",
        "NvLinkVersion",
        "GpuFabricInfoV",
    )
    calls = {f"nvmlDeviceGet{name}": answers.get(name, refuse) for name in names}
    return types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=answers.get("HandleByUUID", lambda uuid: uuid),
        c_nvmlGpuFabricInfo_v2_t=Fabric,
        **calls,
    )


@pytest.fixture
def ask(monkeypatch):
    def asked(**answers):
        monkeypatch.setitem(sys.modules, "pynvml", library(**answers))
        return neighbour(Sensors("GPU-a"), 0, 1, "GPU-b")

    return asked


def up(count):
    """States of as many links as an H200 has; beyond them NVML refuses the argument."""

    def state(_, link):
        if link >= 18:
            raise RuntimeError("Invalid Argument")
        return int(link < count)

    return state


def completed(_, info):
    info._obj.state = 3


def test_a_bare_host_answers_everything(ask):
    found = ask(
        P2PStatus=lambda *_: 0,
        NvLinkState=up(18),
        NvLinkRemoteDeviceType=lambda *_: 2,
        FieldValues=lambda *_: [field(18), field(26562)],
        NvLinkVersion=lambda *_: 6,
        GpuFabricInfoV=completed,
    )
    assert (found.name, found.links, found.nvlink_p2p) == ("NVLink", 18, True)
    assert found.said["NVLinks"] == "18 up to a switch"
    assert found.said["NVLink fields"] == "count 18, speed 26.562 GB/s"
    assert found.said["NVLink version"] == "4.0"
    assert found.said["fabric"] == "completed"


def test_a_virtual_machine_that_refuses_every_question_leaves_the_link_without_a_kind(ask):
    found = ask()
    assert (found.name, found.links, found.nvlink_p2p) == ("peer link", None, None)
    assert found.said["NVLink P2P"] == "not supported"
    assert found.said["NVLinks"] == "not supported"
    assert found.said["NVLink fields"] == "not supported"


def test_the_status_of_the_pair_alone_is_enough(ask):
    found = ask(P2PStatus=lambda *_: 0)
    assert (found.name, found.links) == ("NVLink", None)


def test_links_that_are_up_are_enough_where_the_pair_is_not_told(ask):
    found = ask(NvLinkState=up(6))
    assert (found.name, found.links) == ("NVLink", 6)
    assert found.said["NVLinks"] == "6 up and 12 down"


def test_a_pair_that_is_not_over_nvlink_has_no_nvlink_although_links_are_up(ask):
    found = ask(P2PStatus=lambda *_: 5, NvLinkState=up(4))
    assert found.name == "peer link"
    assert found.said["NVLink P2P"] == "not supported"


def test_a_status_that_is_unknown_says_nothing(ask):
    assert ask(P2PStatus=lambda *_: 6).nvlink_p2p is None


def test_links_that_are_all_down_are_not_counted(ask):
    found = ask(NvLinkState=up(0), FieldValues=lambda *_: [field(18), field(0)])
    assert (found.name, found.links) == ("peer link", None)
    assert found.said["NVLinks"] == "18 down"


def test_a_count_of_links_without_a_speed_is_taken(ask):
    # As on two H200s in a virtual machine, whose links then went by the name of PCIe.
    found = ask(P2PStatus=lambda *_: 0, FieldValues=lambda *_: [field(18), field(0, status=3)])
    assert (found.name, found.links) == ("NVLink", 18)
    assert found.said["NVLink fields"] == "count 18, speed not told"


def test_another_gpu_that_nvml_does_not_know_cannot_be_asked_about(ask):
    found = ask(HandleByUUID=lambda uuid: uuid if uuid == "GPU-a" else refuse(), P2PStatus=None)
    assert found.nvlink_p2p is None
    assert "not known to NVML" in found.said["NVLink P2P"]


def test_without_nvml_every_source_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = neighbour(Sensors("GPU-a"), 0, 1, "GPU-b")
    assert found.name == "peer link"
    assert found.said["NVLinks"] == "no NVML"


def test_a_version_or_state_that_is_newer_than_the_table_is_given_as_a_number(ask):
    found = ask(NvLinkVersion=lambda *_: 99, P2PStatus=lambda *_: 42)
    assert found.said["NVLink version"] == "number 99"
    assert found.said["NVLink P2P"] == "number 42"
    assert found.nvlink_p2p is None
