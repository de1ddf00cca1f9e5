"""Every counter of the stated limits against NVIDIA's own library, with no GPU."""

import importlib.util
from pathlib import Path

import pytest

from mansard.counters.limits import counters_of_limits, limits_of_chip, stated_limits
from mansard.counters.table import tables
from mansard.model.paths import MACHINE_LEVELS, PATHS

# Loaded by its path: test folders are no packages.
_SPEC = importlib.util.spec_from_file_location("nvperf", Path(__file__).with_name("nvperf.py"))
nvperf = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(nvperf)

#: Chips of later libraries only, and one whose instruction counters were dropped.
UNUSUAL = {"GB112", "GB10C", "GB20C", "GV100"}
CHIPS = sorted(chip for table in tables() for chip in table.chips if chip not in UNUSUAL)


@pytest.fixture(scope="module")
def library():
    path = nvperf.library_path()
    if path is None:
        pytest.skip("needs the wheel nvidia-cuda-cupti (13.x) for its libnvperf_host")
    try:
        return nvperf.NvPerf(path)
    except OSError as error:
        pytest.skip(f"libnvperf_host does not load here: {error}")


@pytest.fixture(scope="module")
def limits(library):
    """The limits of each chip, and those of their counters that it does not have."""
    found = {}
    for chip in CHIPS:
        with library.chip(chip) as catalogue:
            stated = limits_of_chip(catalogue.base_counters())
            lost = [n for n in counters_of_limits(stated) if not catalogue.has(n)]
            found[chip] = ({(each.name, each.label) for each in stated}, lost)
    return found


def test_every_counter_of_a_chips_limits_exists_there(limits):
    assert {chip: lost for chip, (_, lost) in limits.items() if lost} == {}


def test_every_chip_states_the_cuda_cores_and_the_levels_that_it_counts(limits):
    for chip, (names, _) in limits.items():
        wanted = {"vector fp64", "vector fp32", "vector fp16", "shared", "l1", "l2"}
        assert wanted <= {name for name, label in names if not label}, chip
        no_dram = chip in ("GA10B", "GB10B", "GB20B")
        assert (("dram", "") in names) is not no_dram, chip


def test_dense_and_half_of_sparse_stand_side_by_side_on_ampere_and_hopper(limits):
    for chip in ("GA100", "GH100"):
        names, _ = limits[chip]
        for path in ("tensor tf32", "tensor bf16", "tensor int8"):
            assert {(path, ""), (path, "half of sparse")} <= names


def test_turing_whose_tensor_cores_have_no_sparse_form_is_not_halved(limits):
    names, _ = limits["TU102"]
    assert ("tensor int8", "") in names
    assert ("tensor int8", "half of sparse") not in names


def test_every_entry_is_used_by_some_chip(library):
    used = set()
    for chip in CHIPS:
        with library.chip(chip) as catalogue:
            used |= {*limits_of_chip(catalogue.base_counters())}
    assert {(e.name, e.formula.text) for e in stated_limits()} - {
        (e.name, e.formula.text) for e in used
    } == set()


def test_names_are_those_of_paths_and_levels():
    paths = {path.name for path in PATHS}
    for each in stated_limits():
        known = paths if each.unit == "flop/s" else MACHINE_LEVELS
        assert each.name in known
        assert each.clock.endswith("__cycles_elapsed.avg.per_second")
        assert all(c.endswith(".sum.peak_sustained") for c in each.formula.counters)


def test_limits_are_read_in_a_few_passes(library):
    for chip in CHIPS:
        with library.chip(chip) as catalogue:
            counters = counters_of_limits(limits_of_chip(catalogue.base_counters()))
            assert catalogue.passes(counters) <= 4, chip
