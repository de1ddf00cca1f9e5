"""Shares of launches, time and work."""

import msgspec
import pytest

from mansard.analysis import analyze
from mansard.analysis.census import census
from mansard.model.machine import Ceiling


def test_shares_of_launches_time_and_work(make_run, nothing):
    run = make_run(
        nothing | {"name": "cast", "duration_s": 1e-6},
        nothing | {"name": "gemm", "duration_s": 3e-6, "flop_tensor_fp16": 75, "op_tensor_int8": 9},
        nothing | {"name": "add", "duration_s": 6e-6, "flop_vector_fp32": 25, "bytes_dram": 1000},
    )
    found = census(analyze(run).totals)
    assert found.zero_flop_launches == pytest.approx(1 / 3)
    assert found.zero_flop_time == pytest.approx(0.1)
    assert found.near_zero_flop_launches == pytest.approx(1 / 3)
    assert found.near_zero_flop_time == pytest.approx(0.6)
    assert found.short_launches == pytest.approx(2 / 3)
    assert found.flop_by_path == {"tensor fp16": 0.75, "vector fp32": 0.25}
    assert found.tensor_flop == 0.75
    assert found.launch_cost_s is None


def test_the_cost_of_launching_beside_the_time_on_the_gpu(make_run, machine, nothing):
    stream = Ceiling(kind="launch", value=4e-6, unit="s", access="stream")
    roofs = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, stream))
    run = make_run(*[nothing | {"name": "adam", "duration_s": 5e-6}] * 10)
    found = census(analyze(run).totals, roofs)
    assert found.launch_cost_s == pytest.approx(40e-6)
    assert found.launch_cost_time == pytest.approx(0.8)


def test_unknown_work_has_no_shares(make_run):
    found = census(analyze(make_run({"name": "k", "duration_s": 1})).totals)
    assert found.zero_flop_launches is None
    assert found.tensor_flop is None
    assert found.flop_by_path == {}
