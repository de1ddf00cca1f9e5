"""Every counter of every table against NVIDIA's own library, with no GPU.

The library comes with the wheel ``nvidia-cuda-cupti``. It also tells how often a program must
run for a set of counters; the numbers are printed (``pytest -rP`` shows them).
"""

import importlib.util
from pathlib import Path

import pytest

from mansard.counters.plan import counter_groups, counters_for
from mansard.counters.table import tables

# Loaded by its path: test folders are no packages.
_SPEC = importlib.util.spec_from_file_location("nvperf", Path(__file__).with_name("nvperf.py"))
nvperf = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(nvperf)

#: Names that Nsight Compute makes itself; NVIDIA's library does not know them.
TOOL_PREFIXES = ("derived__", "launch__", "device__", "profiler__")
#: Chips of later libraries only.
NEWER_CHIPS = {"GB112", "GB10C", "GB20C"}
#: Libraries since CUDA 13.1 or later keep Volta but dropped its instruction counters; Turing has
#: them under the same names.
VOLTA, TURING = "GV100", "TU102"

CHIP_TABLES = [table for table in tables() if table.chips]


@pytest.fixture(scope="module")
def library():
    path = nvperf.library_path()
    if path is None:
        pytest.skip("needs the wheel nvidia-cuda-cupti (13.x) for its libnvperf_host")
    try:
        return nvperf.NvPerf(path)
    except OSError as error:
        pytest.skip(f"libnvperf_host does not load here: {error}")


def counters(table):
    formulas = [each.formula for ways in table.quantities.values() for each in ways]
    return sorted({name for formula in formulas for name in formula.counters} | {*table.evidence})


def known_chips(library, table):
    listed = {*library.chips(), VOLTA}
    assert {*table.chips} - listed <= NEWER_CHIPS
    return [chip for chip in table.chips if chip in listed]


@pytest.mark.parametrize("table", CHIP_TABLES, ids=lambda table: table.name)
def test_every_counter_exists_on_every_chip_of_its_table(library, table):
    names = [name for name in counters(table) if not name.startswith(TOOL_PREFIXES)]
    for chip in known_chips(library, table):
        with library.chip(chip) as catalogue:
            lost = [name for name in names if not catalogue.has(name)]
            if chip == VOLTA and not any("sass" in base for base in catalogue.base_counters()):
                with library.chip(TURING) as turing:
                    lost = [n for n in lost if "__sass_" not in n or not turing.has(n)]
        assert lost == [], chip


def test_the_generic_table_names_counters_that_exist_somewhere(library):
    generic = next(table for table in tables() if not table.chips)
    found = set()
    for chip in library.chips():
        with library.chip(chip) as catalogue:
            found |= {name for name in counters(generic) if catalogue.has(name)}
    assert found == {*counters(generic)}


@pytest.mark.parametrize("table", CHIP_TABLES, ids=lambda table: table.name)
def test_a_path_called_absent_has_no_counter_of_its_own(library, table):
    """``fp8`` is absent only where the library has no counter with fp8 alone in its name."""
    precisions = {
        column: column.rsplit("_tensor_", 1)[1]
        for column, (first, *_) in table.quantities.items()
        if "_tensor_" in column and not first.formula.counters
    }
    for chip in known_chips(library, table):
        with library.chip(chip) as catalogue:
            sources = {
                base.split("_src_")[1].split("_dst_")[0].removesuffix("_realtime")
                for base in catalogue.base_counters()
                if base.startswith("sm__ops_path_tensor_src_") and "sparsity" not in base
            }
        assert not {*precisions.values()} & sources, chip


@pytest.mark.parametrize("table", CHIP_TABLES, ids=lambda table: table.name)
def test_every_tensor_counter_of_a_chip_is_in_its_table(library, table):
    """A total of tensor operations that no column asks for would be lost work."""
    asked = {name.split(".")[0] for name in counters(table)}
    for chip in known_chips(library, table):
        if chip == VOLTA:
            continue
        with library.chip(chip) as catalogue:
            totals = {
                base
                for base in catalogue.base_counters()
                if base.startswith("sm__ops_path_tensor_src_")
                and "sparsity" not in base
                and "realtime" not in base
            }
        assert totals - asked == set(), chip


def test_the_base_group_takes_few_passes(library, capsys):
    """One pass for counts of instructions, one or two for the rest; everything in a dozen."""
    lines = [f"{'table':12} {'chip':6} {'base':>5} {'with dense tensor':>18} {'everything':>11}"]
    for table in CHIP_TABLES:
        groups = {group.name: group for group in counter_groups(table)}
        base = groups["base"].counters
        columns = [c for name, group in groups.items() if name != "base" for c in group.columns]
        tensor = groups.get("tensor dense", groups["base"]).columns
        wanted = (
            base,
            counters_for(table, [*groups["base"].columns, *tensor], prefer="dense"),
            counters_for(table, [*groups["base"].columns, *columns]),
        )
        chip = known_chips(library, table)[0]
        with library.chip(chip) as catalogue:
            passes = [catalogue.passes(filter(catalogue.has, names)) for names in wanted]
        lines.append(f"{table.name:12} {chip:6} {passes[0]:5} {passes[1]:18} {passes[2]:11}")
        assert passes[0] <= 3
        assert passes[0] <= passes[1] <= passes[2] <= 12
    with capsys.disabled():
        print("\nHow often a program runs for its counters", *lines, sep="\n")
