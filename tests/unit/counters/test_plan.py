"""What to collect for columns, and in which groups."""

import pytest

from mansard.counters.apply import apply
from mansard.counters.plan import counter_groups, counters_for
from mansard.counters.table import load_table, tables
from mansard.errors import CounterError


def test_the_best_counters_are_asked_for_once():
    found = counters_for(load_table("gh100"), ("bytes_l2", "bytes_l1", "bytes_l2"))
    assert found[0] == "lts__t_sectors_srcunit_tex.sum"
    assert found.count("l1tex__t_bytes.sum") == 1
    assert len(found) == len(set(found))


def test_a_column_that_the_chip_cannot_give_needs_no_counter():
    assert counters_for(load_table("ga10b"), ("bytes_dram",)) == ()
    assert counters_for(load_table("ga100"), ("flop_tensor_fp8",)) == ()


def test_a_column_that_does_not_exist_is_refused():
    with pytest.raises(CounterError, match="'bytes_l3'"):
        counters_for(load_table("gh100"), ("bytes_l3",))


def test_dense_counters_are_taken_where_they_exist():
    table = load_table("gh100")
    assert counters_for(table, ("flop_tensor_fp8",), prefer="dense") == (
        "sm__ops_path_tensor_src_fp8_sparsity_off.sum",
    )
    assert counters_for(table, ("bytes_l2",), prefer="dense") == counters_for(table, ("bytes_l2",))


def test_groups_of_a_hopper():
    groups = {group.name: group for group in counter_groups(load_table("gh100"))}
    assert list(groups) == [
        "base",
        *(f"tensor {p}" for p in ("fp64", "tf32", "fp16", "bf16", "fp8", "int8", "int1")),
        "tensor dense",
        "parts",
        "link",
    ]
    assert "sm__inst_executed_pipe_tensor.sum" in groups["base"].counters
    assert "bytes_dram_write" in groups["base"].columns
    assert groups["tensor bf16"].counters == ("sm__ops_path_tensor_src_bf16_dst_fp32.sum",)
    assert "op_tensor_int1" not in groups["tensor dense"].columns


def test_a_chip_without_tensor_cores_has_no_tensor_group():
    assert [group.name for group in counter_groups(load_table("tu11x"))] == [
        "base",
        "parts",
        "link",
    ]


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_the_counters_of_a_group_make_its_columns(table):
    for group in counter_groups(table):
        assert group.counters
        applied = apply(table, group.counters)
        assert not set(group.columns) & set(applied.missing)


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_all_groups_together_leave_nothing_uncollected(table):
    counters = [counter for group in counter_groups(table) for counter in group.counters]
    applied = apply(table, counters)
    assert applied.missing == {}
    assert not [n for n in applied.notices if n.code.endswith("-not-collected")]
