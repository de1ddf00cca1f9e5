"""Launches by module and operator of the framework."""

import pytest

from mansard import engine
from mansard.analysis import analyze, layers
from mansard.charts.rows import groups_of
from mansard.errors import FormatError, UsageError
from mansard.store import open_run

#: Two layers; the second one runs two kernels. The optimizer is in no module.
STEP = (
    {"name": "gemm", "op": "aten::mm", "module": "fc1", "duration_s": 1.0, "bytes_dram": 4.0},
    {"name": "gemm", "op": "aten::mm", "module": "fc2", "duration_s": 2.0, "bytes_dram": 8.0},
    {"name": "add", "op": "aten::add", "module": "fc2", "duration_s": 0.5, "bytes_dram": 1.0},
    {"name": "adam", "op": "aten::_fused_adam_", "module": None, "duration_s": 0.1},
)


def test_modules_are_summed_longest_first(make_run):
    found = analyze(make_run(*STEP)).modules
    told = [(g.key, g.launches, g.kernels, g.duration_s, g.bytes_by_level["dram"]) for g in found]
    assert told == [
        ("fc2", 2, 2, 2.5, 9.0),
        ("fc1", 1, 1, 1.0, 4.0),
        (None, 1, 1, 0.1, None),
    ]


def test_layers_that_are_built_alike_are_one(make_run):
    paths = ["blocks.0.mix.1", "blocks.12.mix.1", "blocks.12.3x3", "0.fc", None]
    rows = [STEP[0] | {"module": path} for path in paths]
    found = {group.key: group.launches for group in analyze(make_run(*rows)).layers}
    assert found == {"blocks.*.mix.*": 2, "blocks.*.3x3": 1, "*.fc": 1, None: 1}


def test_operators_are_summed_over_the_modules(make_run):
    found = analyze(make_run(*STEP)).operators
    assert [(group.key, group.duration_s) for group in found] == [
        ("aten::mm", 3.0),
        ("aten::add", 0.5),
        ("aten::_fused_adam_", 0.1),
    ]


def test_floors_of_a_module_are_those_of_its_launches(make_run, machine, nothing):
    product = nothing | {"name": "gemm", "duration_s": 0.1, "flop_tensor_fp16": 0.9e12}
    rows = [product | {"module": module} for module in ("a", "a", "b")]
    found = analyze(make_run(*rows), machine).modules
    # 0.9 TFLOP at 10 TFLOP/s take 90 ms.
    assert [(group.key, group.floor_s, group.bound) for group in found] == [
        ("a", pytest.approx(0.18), "tensor"),
        ("b", pytest.approx(0.09), "tensor"),
    ]


def test_launches_without_work_are_those_of_the_totals(make_run, nothing):
    """A kernel that works in one launch of its phase is none without work, wherever it ran."""
    works, idles = nothing | {"flop_vector_fp32": 8.0}, nothing
    rows = [
        works | {"name": "add", "module": "a", "op": "aten::add"},
        idles | {"name": "add", "module": "b", "op": "aten::copy_"},
        idles | {"name": "fill", "module": "b", "op": "aten::fill_"},
    ]
    found = analyze(make_run(*(row | {"duration_s": 1.0} for row in rows)))
    assert found.totals.zero_flop_launches == 1
    for groups in (found.modules, found.layers, found.operators):
        assert sum(group.zero_flop_launches for group in groups) == 1
        assert sum(group.zero_flop_duration_s for group in groups) == 1.0


def test_a_run_that_does_not_name_them_has_none(make_run):
    found = analyze(make_run({"name": "gemm", "duration_s": 1.0}))
    assert (found.modules, found.operators) == ((), ())
    with pytest.raises(UsageError, match="names no modules"):
        groups_of(found, "module")


@pytest.mark.parametrize("limit", ["MOST_LAUNCHES", "MOST_GROUPS"])
def test_runs_that_are_too_large_are_left_alone(make_run, monkeypatch, limit):
    monkeypatch.setattr(layers, limit, 2)
    assert analyze(make_run(*STEP)).modules == ()


def test_a_run_that_names_too_many_is_not_said_to_name_none_alone(make_run, monkeypatch):
    monkeypatch.setattr(layers, "MOST_GROUPS", 2)
    with pytest.raises(UsageError, match=r"names more than 2 modules, which are not summed: use"):
        groups_of(analyze(make_run(*STEP)), "module")


def test_a_run_of_too_many_launches_is_told_so_and_nothing_else(make_run, monkeypatch):
    monkeypatch.setattr(layers, "MOST_LAUNCHES", 3)
    with pytest.raises(UsageError) as told:
        groups_of(analyze(make_run(*STEP)), "layer")
    assert "has 4 launches, and layers are not summed beyond 3: of a job" in str(told.value)
    assert "names" not in str(told.value)


def test_values_that_cannot_be_are_left_out_of_a_module_too(make_run):
    rows = [STEP[0] | {"duration_s": -1.0}, STEP[0]]
    (found,) = analyze(make_run(*rows)).modules
    assert (found.launches, found.untimed_launches, found.duration_s) == (2, 1, 1.0)


def test_a_module_that_is_a_number_is_refused_beside_text_too(tmp_path, write_rows):
    """Alone such a file is refused; DuckDB would read 7 among texts as the text 7."""
    paths = [tmp_path / f"rank{rank}.parquet" for rank in (0, 1)]
    for path in paths:
        write_rows(STEP, path)
    with engine.connect(threads=1) as connection:
        connection.execute(f"CREATE TABLE launched AS FROM '{paths[1]}'")
        connection.execute(
            f"COPY (SELECT * REPLACE (7 AS module) FROM launched) TO '{paths[1]}' (FORMAT parquet, "
            'KV_METADATA {mansard: \'{"format": "mansard-run/1"}\'})'
        )
    found = analyze(open_run(tmp_path))
    (told,) = [notice for notice in found.notices if notice.code == "unreadable-file"]
    assert f"{paths[1]} is no run: module holds INTEGER instead of VARCHAR" in told.message
    assert {group.key for group in found.modules} == {"fc1", "fc2", None}
    with pytest.raises(FormatError, match=r"rank1\.parquet .* module holds INTEGER"):
        analyze(open_run(paths[1]))
