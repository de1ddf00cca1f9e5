"""What may be said of the link between two GPUs."""

import pytest

from mansard.bench.neighbour import Neighbour


def test_nvml_that_names_nvlink_for_the_pair_is_believed():
    assert Neighbour(index=1, nvlink_p2p=True).name == "NVLink"


def test_links_that_are_up_are_nvlink_where_nvml_does_not_answer_for_the_pair():
    assert Neighbour(index=1, links_up=18).name == "NVLink"


def test_links_that_are_up_but_do_not_lead_to_this_gpu_are_not_its_link():
    assert Neighbour(index=1, nvlink_p2p=False, links_up=4).name == "peer link"


@pytest.mark.parametrize("fields", [{}, {"nvlink_p2p": False}, {"links_up": 0}, {"link_count": 18}])
def test_without_a_source_that_says_nvlink_the_link_has_no_kind(fields):
    assert Neighbour(index=1, **fields).name == "peer link"


@pytest.mark.parametrize(
    ("fields", "links"),
    [
        ({"links_up": 6, "link_count": 18}, 6),
        ({"links_up": 0, "link_count": 18}, None),
        ({"link_count": 18}, 18),
        ({}, None),
    ],
)
def test_links_are_those_that_are_up_or_else_those_that_there_are(fields, links):
    assert Neighbour(index=1, **fields).links == links


def test_an_unknown_link_that_beats_pcie_is_said_to_be_another_and_never_pcie():
    text = Neighbour(index=1, said={"NVLink P2P": "not supported"}).remark(381e9, 63e9)
    assert "faster than PCIe can carry (63.0 GB/s)" in text
    assert "NVLink P2P: not supported" in text


def test_an_unknown_link_that_is_slow_may_be_pcie():
    assert "it may be PCIe" in Neighbour(index=1).remark(50e9, 63e9)


def test_a_known_link_says_where_it_leads_and_is_not_compared_with_pcie():
    said = {"NVLinks": "18 up to a switch", "fabric": "completed"}
    found = Neighbour(index=3, nvlink_p2p=True, links_up=18, said=said)
    assert found.remark(381e9, 63e9) == "to GPU 3, NVLinks: 18 up to a switch"
    assert Neighbour(index=3, nvlink_p2p=True).remark(381e9, 63e9) == "to GPU 3"


def test_a_virtual_machine_that_hides_pcie_leaves_the_comparison_out():
    assert "PCIe" not in Neighbour(index=1).remark(381e9, None)
