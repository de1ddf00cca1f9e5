"""Which counters ncu is asked for, and for which chip."""

from pathlib import Path

import pytest
from ncu_makers import program_file

from mansard.collect.ncu import metrics
from mansard.collect.ncu.installation import NcuTool, examine
from mansard.collect.ncu.metrics import (
    metrics_in,
    refused_counters,
    split_by_chip,
    table_of,
    wanted_counters,
)
from mansard.collect.ncu.options import NcuOptions, Tensor
from mansard.counters.table import table_for
from mansard.errors import DeviceError

HOPPER = table_for(chip="GH100")


def test_a_named_chip_or_capability_chooses_the_table():
    assert table_of(NcuOptions(chip="GH100")).name == "gh100"
    assert table_of(NcuOptions(chip="8.0")).name == "ga100"


def no_driver():
    raise DeviceError("no driver")


def test_the_chip_is_asked_of_nvidia_smi_where_the_driver_does_not_load(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "load_driver", no_driver)
    program_file(tmp_path / "nvidia-smi", "#!/bin/sh\necho 9.0\necho 9.0\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert table_of(NcuOptions()).name == "gh100"


def test_without_a_gpu_the_message_names_the_ways_out(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "load_driver", no_driver)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match=r"no GPU was found.*--chip") as caught:
        table_of(NcuOptions())
    assert caught.value.slug == "no-gpu"


def test_dense_tensor_work_is_counted_by_default_and_sparse_on_request():
    dense = wanted_counters(HOPPER, NcuOptions())
    assert any("sparsity_off" in counter for counter in dense)
    every = wanted_counters(HOPPER, NcuOptions(tensor=Tensor.ALL))
    assert "sm__ops_path_tensor_src_bf16_dst_fp32.sum" in every
    none = wanted_counters(HOPPER, NcuOptions(tensor=Tensor.NONE))
    assert not any("ops_path_tensor" in counter for counter in none)
    # What tells launches without any tensor work costs a pass, and is needed only here.
    assert "sm__inst_executed_pipe_tensor.sum" in none
    assert "sm__inst_executed_pipe_tensor.sum" not in dense
    assert set(none) - set(dense) == set(HOPPER.evidence)


def test_a_refused_counter_takes_those_of_its_kind_along():
    refused = refused_counters(
        ["==ERROR== Metric sm__sass_adds.sum is not supported in range replay."],
        ("dram__bytes.sum", "sm__sass_adds.sum", "sm__sass_muls.sum", "sm__inst.sum"),
    )
    assert refused == ("sm__sass_adds.sum", "sm__sass_muls.sum")


def test_a_message_about_something_else_refuses_nothing():
    assert refused_counters(["==ERROR== out of memory", ""], ("dram__bytes.sum",)) == ()


def test_columns_choose_their_counters_alone():
    options = NcuOptions(columns=("duration_s", "bytes_dram"))
    assert wanted_counters(HOPPER, options) == ("gpu__time_duration.sum", "dram__bytes.sum")


def test_counters_that_this_ncu_does_not_list_are_left_out(fake_ncu, monkeypatch):
    monkeypatch.setenv("FAKE_NCU_METRICS", "dram__bytes gpu__time_duration")
    counters = ("dram__bytes.sum", "lts__new.sum", "gpu__time_duration.sum", "launch__x")
    kept, lost = split_by_chip(examine(fake_ncu), HOPPER, counters)
    assert kept == ("dram__bytes.sum", "gpu__time_duration.sum", "launch__x")
    assert lost == ("lts__new.sum",)


def test_an_ncu_that_lists_nothing_is_trusted():
    tool = NcuTool(Path("/nowhere/ncu"), "1.0", frozenset({"metrics"}))
    assert split_by_chip(tool, HOPPER, ("a.sum",)) == (("a.sum",), ())


def test_a_listing_gives_the_names_at_the_start_of_its_lines():
    text = (
        "Device GH100\n----- ---\nMetric Name  Unit\ndram__bytes   byte # of b__x\n\n  lts__t x\n"
    )
    assert metrics_in(text) == {"dram__bytes", "lts__t"}
