"""Counts rebuilt from what a file has instead of them."""

import json
from pathlib import Path

import pytest

from mansard.counters.derive import derive
from mansard.counters.formula import Formula

DATA = Path(__file__).parents[2] / "data" / "counters"
TIME = Formula.counter("gpu__time_duration.sum")
FFMA = "sass_thread_inst_executed_op_ffma_pred_on.sum"


def text(counter, available, duration=None):
    found = derive(counter, available, duration)
    return None if found is None else (found.formula.text, found.from_rates)


def test_a_counter_that_is_there_stands_for_itself():
    assert text("dram__bytes.sum", {"dram__bytes.sum", "dram__bytes.sum.per_second"}, TIME) == (
        "dram__bytes.sum",
        False,
    )


@pytest.mark.parametrize(("wanted", "there"), [("sm", "smsp"), ("smsp", "sm")])
def test_the_total_over_sm_parts_is_the_total_over_sms(wanted, there):
    assert text(f"{wanted}__{FFMA}", {f"{there}__{FFMA}"}) == (f"{there}__{FFMA}", False)


def test_cycles_of_sm_parts_are_not_cycles_of_sms():
    assert text("sm__cycles_elapsed.sum", {"smsp__cycles_elapsed.sum"}) is None


def test_a_mean_over_sm_parts_is_not_the_mean_over_sms():
    assert text(f"sm__{FFMA[:-4]}.avg", {f"smsp__{FFMA[:-4]}.avg"}) is None


def test_an_average_times_unknown_instances_is_no_total():
    assert text("dram__bytes.sum", {"dram__bytes.avg", "dram__bytes.max"}, TIME) is None


def test_a_rate_per_cycle_is_multiplied_by_the_cycles_of_its_unit():
    rate = f"smsp__{FFMA}.per_cycle_elapsed"
    assert text(f"sm__{FFMA}", {rate, "smsp__cycles_elapsed.avg"}) == (
        f"{rate} * smsp__cycles_elapsed.avg",
        True,
    )


def test_without_cycles_they_are_time_times_clock():
    rate = f"smsp__{FFMA}.per_cycle_elapsed"
    there = {rate, "sm__cycles_elapsed.avg.per_second", "gpu__time_duration.sum"}
    assert text(f"sm__{FFMA}", there, TIME) == (
        f"{rate} * (gpu__time_duration.sum * sm__cycles_elapsed.avg.per_second)",
        True,
    )


def test_the_l2_does_not_run_on_the_sm_clock():
    there = {"lts__t_bytes.sum.per_cycle_elapsed", "sm__cycles_elapsed.avg"}
    assert text("lts__t_bytes.sum", there, TIME) is None
    assert text("lts__t_bytes.sum", there | {"lts__cycles_elapsed.avg"}, TIME) is not None


def test_a_rate_per_second_is_multiplied_by_the_time():
    there = {"dram__bytes.sum.per_second"}
    assert text("dram__bytes.sum", there, TIME) == (
        "dram__bytes.sum.per_second * gpu__time_duration.sum",
        True,
    )
    assert text("dram__bytes.sum", there) is None


def launch(operation):
    recorded = json.loads((DATA / "h200_rates.json").read_text())
    return next(each["counters"] for each in recorded if each["operation"] == operation)


# 2 M N K of the GEMM (M = N = K = 2048) and 2^25 fused multiply-adds: known from the program.
@pytest.mark.parametrize(
    ("operation", "counter", "known"),
    [
        ("gemm_bf16", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", 2 * 2048**3),
        ("gemm_fp8", "sm__ops_path_tensor_src_fp8_sparsity_off.sum", 2 * 2048**3),
        ("gemm_fp32", f"sm__{FFMA}", 2048**3),
        ("fma_fp64", f"sm__{FFMA.replace('ffma', 'dfma')}", 2**25),
    ],
)
@pytest.mark.parametrize("without", ["", "__cycles_elapsed.avg"])
def test_rates_of_an_h200_report_give_the_known_work(operation, counter, known, without):
    values = launch(operation)
    if without:
        values = {name: value for name, value in values.items() if not name.endswith(without)}
    derived = derive(counter, values, TIME)
    assert derived is not None
    assert derived.from_rates
    assert derived.formula.evaluate(values) == pytest.approx(known, rel=1e-9)
