"""Advice: for each rule a run in which it must speak, and one in which it must not.

The roofs (conftest): fp32 1 TFLOP/s, fp64 0.5, tensor fp16 10; L1 100, L2 40, DRAM 10 GB/s.
"""

import dataclasses
import re
from pathlib import Path

import msgspec
import pytest

from mansard.analysis import advice, analyze
from mansard.analysis.advice import advise
from mansard.analysis.advice_launches import MOVEMENTS
from mansard.demo import shipped_run
from mansard.model.analysis import Kernel
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling
from mansard.model.provenance import Provenance
from mansard.store.choose_machine import machine_for

PAGE = Path(__file__).parents[3] / "docs" / "advice.md"


def rules(analysis):
    return [found.rule for found in advise(analysis)]


def given(analysis, rule):
    (found,) = [one for one in advise(analysis) if one.rule == rule]
    return found


def launch_cost(machine, seconds):
    cost = Ceiling(kind="launch", value=seconds, unit="s", access="stream")
    return msgspec.structs.replace(machine, ceilings=(*machine.ceilings, cost))


def with_clocks(machine, hertz):
    ceilings = tuple(
        msgspec.structs.replace(ceiling, sm_clock_hz=hertz) for ceiling in machine.ceilings
    )
    return msgspec.structs.replace(machine, ceilings=ceilings)


@pytest.fixture
def gemm(nothing):
    """A product on tensor cores at 90 % of their roof: nothing to remark."""
    return nothing | {
        "name": "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_nn",
        "duration_s": 0.1,
        "flop_tensor_fp16": 0.9e12,
        "bytes_l1": 1e8,
        "bytes_l2": 1e8,
        "bytes_dram": 1e7,
    }


def test_a_run_at_its_roofs_needs_no_advice(make_run, machine, gemm):
    assert advise(analyze(make_run(gemm), machine)) == ()


def test_an_empty_or_untimed_run_gets_none(make_run, machine, gemm):
    assert advise(analyze(make_run(), machine)) == ()
    assert advise(analyze(make_run(gemm | {"duration_s": None}), machine)) == ()


class TestLaunchBound:
    """Launches that are over before the next one could start."""

    @pytest.fixture
    def adam(self, nothing):
        return nothing | {
            "name": "addcmul_kernel",
            "phase": "optimizer",
            "duration_s": 4e-6,
            "flop_vector_fp32": 1e3,
            "bytes_dram": 1e4,
            "bytes_l2": 1e4,
            "bytes_l1": 1e4,
        }

    def test_many_short_launches(self, make_run, machine, adam, gemm):
        run = make_run(*[adam] * 1000, gemm | {"duration_s": 0.01, "flop_tensor_fp16": 0.09e12})
        found = given(analyze(run, launch_cost(machine, 5e-6)), "launch-bound")
        # 1e4 B at 10 GB/s is 1 us of 4: 3 ms of 1000 launches can be won.
        assert found.recoverable_s == pytest.approx(3e-3)
        assert found.evidence["launch_cost_s"] == pytest.approx(5e-3)
        assert found.evidence["launches"] == 1000
        assert "1,000 of 1 kernel" in found.sentence
        assert "4.00 us each, 4.00 ms in all" in found.sentence
        assert "their work needs 1.00 ms" in found.sentence
        assert "takes the host 5.00 ms" in found.sentence
        assert "most in phase 'optimizer'" in found.sentence
        assert "a fused optimizer" in found.sentence
        assert found.kernels == ("addcmul_kernel",)

    def test_the_cost_of_launching_is_only_told_where_the_machine_knows_it(
        self, make_run, machine, adam
    ):
        assert "host" not in given(analyze(make_run(*[adam] * 9), machine), "launch-bound").sentence

    def test_long_launches_are_not(self, make_run, machine, adam, gemm):
        assert "launch-bound" not in rules(analyze(make_run(adam | {"duration_s": 6e-6}), machine))

    def test_nor_are_a_few_short_ones_in_a_long_run(self, make_run, machine, adam, gemm):
        assert "launch-bound" not in rules(analyze(make_run(adam, gemm), machine))

    def test_a_lambda_is_no_optimizer(self, make_run, machine, adam):
        found = analyze(make_run(*[adam | {"name": "add_kernel<lambda(float)>"}] * 9), machine)
        assert "fused optimizer" not in given(found, "launch-bound").sentence


class TestMovement:
    """Launches that compute nothing."""

    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("bfloat16_copy_kernel_cuda", "casts-and-copies"),
            ("EigenMetaKernel<ScalarConversionOp<half, float>>", "casts-and-copies"),
            ("nchwToNhwcKernel", "layout-changes"),
            ("PadInputCustomKernelNHWC", "layout-changes"),
            ("vectorized_elementwise_kernel<FillFunctor<float>>", "fills"),
            ("CatArrayBatchedCopy", "joins"),
        ],
    )
    def test_all_of_its_time_can_go(self, make_run, machine, gemm, nothing, name, rule):
        moved = nothing | {"name": name, "duration_s": 0.02}
        moved |= {"bytes_dram": 1.5e8, "bytes_l2": 1.5e8, "bytes_l1": 1.5e8}
        found = given(analyze(make_run(moved, moved, gemm), machine), rule)
        assert found.recoverable_s == pytest.approx(0.04)
        assert "40.0 ms (28.6 % of the time): 2 launches" in found.sentence
        assert "300 MB through DRAM" in found.sentence

    def test_next_to_no_work_is_as_none(self, make_run, gemm, nothing):
        # 0.17 FLOP per byte, as the casts of the paper
        cast = nothing | {"name": "ConversionOp", "duration_s": 0.02, "bytes_dram": 1e8}
        assert rules(analyze(make_run(cast | {"flop_vector_fp32": 1.7e7}, gemm))) == [
            "casts-and-copies"
        ]
        assert rules(analyze(make_run(cast | {"flop_vector_fp32": 6e7}, gemm))) == []

    @pytest.mark.parametrize(("flop", "found"), [(4.7e7, ["layout-changes"]), (6e7, [])])
    def test_a_layout_change_that_computes_is_none(self, make_run, gemm, nothing, flop, found):
        # The paper's nchwToNhwc has 0.47 FLOP/byte; with 0.6 it would be work of its own.
        change = nothing | {"name": "nchwToNhwcKernel", "duration_s": 0.02, "bytes_dram": 1e8}
        assert rules(analyze(make_run(change | {"flop_vector_fp32": flop}, gemm))) == found

    def test_a_layout_change_that_l2_serves_is_still_one(self, make_run, gemm, nothing):
        # Of cuDNN's nchwToNhwc of small maps half the bytes never reach device memory.
        change = nothing | {"name": "nchwToNhwcKernel", "duration_s": 0.02, "bytes_l2": 1e8}
        large = change | {"bytes_dram": 1e8, "flop_vector_fp32": 2.5e7}
        small = change | {"bytes_dram": 3e7, "flop_vector_fp32": 2.5e7}
        assert rules(analyze(make_run(large, small, gemm))) == ["layout-changes"]

    def test_unknown_work_is_not_none(self, make_run, gemm, nothing):
        cast = nothing | {"name": "ConversionOp", "duration_s": 0.02, "bytes_dram": 1e8}
        uncounted = {name: None for name in nothing if name.startswith(("flop", "op"))}
        assert rules(analyze(make_run(cast | uncounted))) == []

    def test_gathers_are_work_that_has_to_be_done(self, make_run, gemm, nothing):
        gather = nothing | {"name": "vectorized_gather_kernel", "duration_s": 0.02}
        assert rules(analyze(make_run(gather, gemm))) == []

    def test_copies_between_host_and_gpu(self, make_run, gemm):
        copy = {"name": "memcpy HtoD", "kind": "memcpy", "duration_s": 0.05}
        found = given(analyze(make_run(gemm, copy)), "transfers")
        assert found.recoverable_s == pytest.approx(0.05)
        assert "Pin the host memory" in found.sentence

    @pytest.mark.parametrize("direction", ["DtoD", "AtoD", "PtoP"])
    def test_copies_that_do_not_pass_the_host_have_nothing_to_pin(self, make_run, gemm, direction):
        copy = {"name": f"memcpy {direction}", "kind": "memcpy", "duration_s": 0.05}
        analysis = analyze(make_run(gemm, copy))
        assert rules(analysis) == ["casts-and-copies"]
        assert "Pin" not in given(analysis, "casts-and-copies").sentence


class TestIdleSms:
    """Grids smaller than the GPU."""

    FOUR = Provenance(devices=(DeviceFacts(sm_count=4),))

    @pytest.fixture
    def reduction(self, nothing):
        return nothing | {
            "name": "reduce_kernel",
            "duration_s": 0.01,
            "grid_x": 1,
            "grid_y": 1,
            "grid_z": 1,
            "flop_vector_fp32": 1e6,
            "bytes_dram": 1e6,
            "bytes_l2": 1e6,
            "bytes_l1": 1e6,
        }

    def test_one_block_on_four_sms(self, make_run, machine, reduction):
        analysis = analyze(make_run(reduction, provenance=self.FOUR), machine)
        (kernel,) = analysis.kernels
        assert kernel.idle_sm_launches == 1
        assert kernel.idle_sm_s == pytest.approx(0.0075)
        found = given(analysis, "idle-sms")
        assert found.recoverable_s == pytest.approx(0.0075)
        assert "75.0 % of the 4 SMs got none" in found.sentence

    def test_no_more_than_the_floor_leaves(self, make_run, machine, reduction):
        near = reduction | {"bytes_dram": 8e7, "bytes_l2": 8e7, "bytes_l1": 8e7}
        analysis = analyze(make_run(near, provenance=self.FOUR), machine)
        assert given(analysis, "idle-sms").recoverable_s == pytest.approx(0.002)

    def test_not_where_every_sm_has_a_block(self, make_run, machine, reduction):
        full = reduction | {"grid_x": 2, "grid_y": 2}
        assert "idle-sms" not in rules(analyze(make_run(full, provenance=self.FOUR), machine))

    def test_a_last_round_that_is_not_full_is_not_told(self, make_run, machine, reduction):
        # Five blocks on four SMs may run two at a time on one of them: no counter says.
        tail = reduction | {"grid_x": 5}
        assert "idle-sms" not in rules(analyze(make_run(tail, provenance=self.FOUR), machine))

    def test_not_where_the_grid_or_the_gpu_is_unknown(self, make_run, machine, reduction):
        assert "idle-sms" not in rules(analyze(make_run(reduction), machine))
        unknown = reduction | dict.fromkeys(("grid_x", "grid_y", "grid_z"))
        analysis = analyze(make_run(unknown, provenance=self.FOUR), machine)
        assert "idle-sms" not in rules(analysis)
        assert analysis.kernels[0].idle_sm_s is None


class TestOffTensor:
    """Products on the CUDA cores."""

    @pytest.fixture
    def sgemm(self, nothing):
        return nothing | {
            "name": "ampere_sgemm_128x64_tn",
            "duration_s": 0.1,
            "flop_vector_fp32": 0.8e11,
            "bytes_l1": 1e8,
            "bytes_l2": 1e8,
            "bytes_dram": 1e7,
        }

    def test_a_product_that_tensor_cores_could_do(self, make_run, machine, sgemm):
        found = given(analyze(make_run(sgemm), machine), "off-tensor")
        # 0.8e11 FLOP at 10 TFLOP/s: 8 ms of 100.
        assert found.evidence["floor_on_tensor_s"] == pytest.approx(8e-3)
        assert found.recoverable_s == pytest.approx(0.092)
        assert "vector fp32 computes: on tensor fp16" in found.sentence
        assert "AMP" in found.sentence

    def test_if_the_others_do_it_is_the_shapes(self, make_run, machine, sgemm, gemm):
        found = given(analyze(make_run(sgemm, gemm), machine), "off-tensor")
        assert "multiples of 8" in found.sentence
        assert "Other kernels of the run do use tensor fp16" in found.sentence

    def test_the_memory_sets_the_floor_there_too(self, make_run, machine, sgemm):
        found = given(analyze(make_run(sgemm | {"bytes_dram": 3e8}), machine), "off-tensor")
        assert found.evidence["floor_on_tensor_s"] == pytest.approx(0.03)

    def test_tf32_where_the_machine_has_it(self, make_run, machine, sgemm):
        tf32 = Ceiling(kind="compute", value=5e12, unit="flop/s", path="tensor tf32")
        roofs = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, tf32))
        assert "Allow TF32" in given(analyze(make_run(sgemm), roofs), "off-tensor").sentence

    def test_not_if_tensor_work_was_not_counted(self, make_run, machine, sgemm):
        uncounted = {name: None for name in sgemm if name.startswith("flop_tensor")}
        assert "off-tensor" not in rules(analyze(make_run(sgemm | uncounted), machine))

    def test_not_if_it_is_tensor_work_or_no_product(self, make_run, machine, sgemm, gemm):
        assert "off-tensor" not in rules(analyze(make_run(gemm), machine))
        plain = sgemm | {"name": "fused_bias_gelu_kernel"}
        assert "off-tensor" not in rules(analyze(make_run(plain), machine))

    def test_a_product_that_the_memory_inside_the_sm_holds_is_one_too(
        self, make_run, machine, sgemm
    ):
        # On an H200 most fp32 convolutions are bound by shared memory: 90 ms of L1 here, 80 of FLOP.
        found = given(analyze(make_run(sgemm | {"bytes_l1": 9e9}), machine), "off-tensor")
        assert found.recoverable_s == pytest.approx(0.092)

    def test_not_if_memory_binds_it_anyway(self, make_run, machine, sgemm):
        gemv = sgemm | {"flop_vector_fp32": 1e9, "bytes_dram": 9e8}
        assert "off-tensor" not in rules(analyze(make_run(gemv), machine))

    def test_not_on_a_machine_without_tensor_cores(self, make_run, machine, sgemm):
        vector = tuple(c for c in machine.ceilings if not (c.path or "").startswith("tensor"))
        roofs = msgspec.structs.replace(machine, ceilings=vector)
        assert "off-tensor" not in rules(analyze(make_run(sgemm), roofs))


class TestNoReuse:
    """Streams: as many bytes through L2 as through DRAM."""

    @pytest.fixture
    def stream(self, nothing):
        return nothing | {
            "name": "add_kernel",
            "duration_s": 0.1,
            "flop_vector_fp32": 1e9,
            "bytes_l1": 8e8,
            "bytes_l2": 8.1e8,
            "bytes_dram": 8e8,
        }

    def test_a_stream_near_the_memory_roof(self, make_run, machine, stream):
        found = given(analyze(make_run(stream), machine), "no-reuse")
        # 80 ms of memory in 100; 1 GFLOP needs 1 ms.
        assert found.recoverable_s == pytest.approx(0.099)
        assert "at 80.0 % of the memory roof" in found.sentence
        assert "the computing alone needs 1.00 ms" in found.sentence
        assert "flushed" not in found.sentence

    def test_flushed_caches_are_told(self, make_run, machine, stream):
        flushed = make_run(stream, provenance=Provenance(cache_control="all"))
        assert "flushed the caches" in given(analyze(flushed, machine), "no-reuse").sentence

    def test_not_where_l2_serves_bytes_again(self, make_run, machine, stream):
        reused = stream | {"bytes_l1": 2e9, "bytes_l2": 2e9}
        assert "no-reuse" not in rules(analyze(make_run(reused), machine))

    def test_not_where_l1_does_not_see_the_traffic(self, make_run, machine, stream):
        past_l1 = stream | {"bytes_l1": 1e8, "bytes_l2": 3e9}
        assert "no-reuse" not in rules(analyze(make_run(past_l1), machine))

    def test_not_where_a_level_is_unknown_or_known_in_part(self, make_run, machine, stream):
        unknown = stream | {"bytes_l1": None, "bytes_l2": None}
        assert "no-reuse" not in rules(analyze(make_run(unknown), machine))
        assert "no-reuse" not in rules(analyze(make_run(unknown, stream), machine))

    def test_not_for_optimizers_that_must_touch_every_parameter(self, make_run, machine, stream):
        adam = stream | {"name": "multi_tensor_apply_kernel<FusedAdamFunctor>"}
        assert rules(analyze(make_run(adam), machine)) == []


class TestLatencyBound:
    """Far from every roof."""

    @pytest.fixture
    def waits(self, nothing):
        return nothing | {
            "name": "col2im_kernel",
            "duration_s": 0.1,
            "flop_vector_fp32": 1e8,
            "bytes_l1": 1e8,
            "bytes_l2": 1e8,
            "bytes_dram": 1e8,
        }

    def test_nothing_is_busy(self, make_run, machine, waits):
        found = given(analyze(make_run(waits), machine), "latency-bound")
        assert found.recoverable_s == pytest.approx(0.09)
        assert "the highest floor, mostly DRAM, is 10.0 % of the time" in found.sentence
        assert "No cache serves a byte twice in col2im_kernel" in found.sentence

    def test_lines_fetched_again_through_l1(self, make_run, machine, waits):
        found = given(analyze(make_run(waits | {"bytes_l1": 7.7e8}), machine), "latency-bound")
        assert "moves 7.7 times the bytes of L2 through L1" in found.sentence

    def test_not_where_a_resource_is_unknown(self, make_run, machine, waits):
        # L2 could be what keeps it.
        assert "latency-bound" not in rules(analyze(make_run(waits | {"bytes_l2": None}), machine))

    def test_not_near_the_memory_roof(self, make_run, machine, waits):
        busy = waits | dict.fromkeys(("bytes_l1", "bytes_l2", "bytes_dram"), 6e8)
        assert "latency-bound" not in rules(analyze(make_run(busy), machine))


class TestBelowComputeRoof:
    """Compute-bound at a part of the roof."""

    def test_half_of_the_tensor_roof(self, make_run, machine, gemm):
        found = given(
            analyze(make_run(gemm | {"flop_tensor_fp16": 0.5e12}), machine), "below-compute-roof"
        )
        assert found.recoverable_s == pytest.approx(0.05)
        assert "at 50.0 % of the roof" in found.sentence

    def test_not_near_it(self, make_run, machine, gemm):
        near = gemm | {"flop_tensor_fp16": 0.76e12}
        assert "below-compute-roof" not in rules(analyze(make_run(near), machine))


class TestLowClock:
    """Compute-bound work below the highest clock."""

    def run(self, make_run, gemm, clock, control):
        origin = Provenance(devices=(DeviceFacts(sm_clock_max_hz=2e9),), clock_control=control)
        return make_run(gemm | {"sm_clock_hz": clock}, provenance=origin)

    def test_power(self, make_run, machine, gemm):
        found = given(analyze(self.run(make_run, gemm, 1.5e9, "none"), machine), "low-clock")
        assert "ran at 1.50 GHz, 25.0 % below the highest clock of 2.00 GHz" in found.sentence
        assert "power" in found.sentence
        assert found.recoverable_s == pytest.approx(0.025)

    @pytest.mark.parametrize("highest", [0.0, -1.0, 1e308])
    def test_a_highest_clock_that_cannot_be(self, make_run, machine, gemm, highest):
        origin = Provenance(devices=(DeviceFacts(sm_clock_max_hz=highest),))
        run = make_run(gemm | {"sm_clock_hz": 1.5e9}, provenance=origin)
        assert "low-clock" not in rules(analyze(run, machine))

    def test_a_lock_of_the_profiler_wins_nothing_in_production(self, make_run, machine, gemm):
        found = given(analyze(self.run(make_run, gemm, 1.5e9, "base"), machine), "low-clock")
        assert "--clock-control none" in found.sentence
        assert found.recoverable_s is None
        unsaid = given(analyze(self.run(make_run, gemm, 1.5e9, None), machine), "low-clock")
        assert "does not say which" in unsaid.sentence
        assert unsaid.recoverable_s is None

    def test_not_near_the_highest(self, make_run, machine, gemm):
        assert rules(analyze(self.run(make_run, gemm, 1.95e9, "none"), machine)) == []

    def test_not_for_memory_bound_work(self, make_run, machine, gemm):
        bound = gemm | {"flop_tensor_fp16": 1e10, "bytes_dram": 9.5e8, "bytes_l2": 3e9}
        assert rules(analyze(self.run(make_run, bound, 1e9, "none"), machine)) == []

    def test_not_where_the_clock_is_unknown(self, make_run, machine, gemm):
        assert rules(analyze(self.run(make_run, gemm, None, "none"), machine)) == []


class TestTime:
    """Gaps and exposed communication, from start times."""

    def test_a_gpu_that_waits_for_the_host(self, make_run, machine, gemm):
        slow = [gemm | {"start_s": start} for start in (0.0, 0.4, 0.5)]
        found = given(analyze(make_run(*slow), machine), "idle-gpu")
        assert found.recoverable_s == pytest.approx(0.3)
        assert "nothing to do for 50.0 % of 1 step: 300 ms in 1 gap" in found.sentence
        assert "data loader" in found.sentence

    def test_gaps_as_short_as_launching(self, make_run, machine, gemm):
        short = gemm | {"duration_s": 1e-4, "flop_tensor_fp16": 0.9e9}
        rows = [short | {"start_s": n * 1.1e-4} for n in range(20)]
        found = given(analyze(make_run(*rows), launch_cost(machine, 4e-6)), "idle-gpu")
        assert "CUDA graphs" in found.sentence
        assert found.evidence["gaps"] == 19

    def test_gaps_as_long_as_a_framework_takes(self, make_run, machine, gemm):
        # 80 us each, launching takes 4.
        short = gemm | {"duration_s": 1e-4, "flop_tensor_fp16": 0.9e9}
        rows = [short | {"start_s": n * 1.8e-4} for n in range(20)]
        found = given(analyze(make_run(*rows), launch_cost(machine, 4e-6)), "idle-gpu")
        assert "from one operator to the next" in found.sentence

    def test_gaps_that_only_the_trace_makes_are_not_counted(self, make_run, machine, gemm):
        slow = [gemm | {"start_s": start} for start in (0.0, 0.4, 0.5)]  # busy for 0.3 s of 0.6
        told = Provenance(extra={"step_host_s": "0.4"})
        found = given(analyze(make_run(*slow, provenance=told), machine), "idle-gpu")
        assert found.recoverable_s == pytest.approx(0.1)
        assert "for 25.0 % of 1 step: 100 ms in 1 gap" in found.sentence
        assert "without a trace, which lengthens them to 300 ms" in found.sentence

    @pytest.mark.parametrize("host_s", ["0.3", "0.01"])
    def test_a_program_that_alone_leaves_no_gaps(self, make_run, machine, gemm, host_s):
        slow = [gemm | {"start_s": start} for start in (0.0, 0.4, 0.5)]
        told = Provenance(extra={"step_host_s": host_s})
        assert rules(analyze(make_run(*slow, provenance=told), machine)) == []

    @pytest.mark.parametrize("stated", ["", "nan", "-1", "0", "1e300", "1e999", "soon"])
    def test_a_time_of_the_host_that_is_none_changes_nothing(self, make_run, machine, gemm, stated):
        slow = [gemm | {"start_s": start} for start in (0.0, 0.4, 0.5)]
        told = Provenance(extra={"step_host_s": stated})
        found = given(analyze(make_run(*slow, provenance=told), machine), "idle-gpu")
        assert found.recoverable_s == pytest.approx(0.3)

    def test_a_busy_gpu(self, make_run, machine, gemm):
        rows = [gemm | {"start_s": start} for start in (0.0, 0.102, 0.205)]
        assert rules(analyze(make_run(*rows), machine)) == []

    def test_without_start_times_nothing_is_said(self, make_run, machine, gemm):
        assert rules(analyze(make_run(gemm, gemm), machine)) == []

    def test_exposed_collectives(self, make_run, machine, gemm, nothing):
        nccl = nothing | {"name": "ncclDevKernel_AllReduce", "start_s": 0.05, "duration_s": 0.1}
        found = given(
            analyze(make_run(gemm | {"start_s": 0.0}, nccl), machine), "exposed-collectives"
        )
        assert found.recoverable_s == pytest.approx(0.05)
        assert "For 50.0 ms of 150 ms (33.3 %)" in found.sentence

    def test_hidden_collectives(self, make_run, machine, gemm, nothing):
        nccl = nothing | {"name": "ncclDevKernel_AllReduce", "start_s": 0.05, "duration_s": 0.04}
        assert rules(analyze(make_run(gemm | {"start_s": 0.0}, nccl), machine)) == []


class TestAboveRoof:
    """Faster than the roof: what is wrong?"""

    def causes(self, analysis):
        found = given(analysis, "above-roof")
        assert found.recoverable_s is None
        assert "cannot be" in found.sentence
        return found.evidence["causes"].split(", ")

    def faster(self, gemm, times):
        return gemm | {"flop_tensor_fp16": times * 1e12}

    def test_a_clock_above_that_of_the_roof(self, make_run, machine, gemm):
        run = make_run(self.faster(gemm, 1.2) | {"sm_clock_hz": 1.98e9})
        assert self.causes(analyze(run, with_clocks(machine, 1.59e9)))[0] == "clock"

    def test_a_clock_that_does_not_explain_it(self, make_run, machine, gemm):
        run = make_run(self.faster(gemm, 1.5) | {"sm_clock_hz": 1.98e9})
        assert self.causes(analyze(run, with_clocks(machine, 1.59e9))) == ["sparsity"]

    def test_sparse_work_up_to_twice_the_dense_roof(self, make_run, machine, gemm):
        assert self.causes(analyze(make_run(self.faster(gemm, 2.0)), machine)) == ["sparsity"]
        assert self.causes(analyze(make_run(self.faster(gemm, 3.0)), machine)) == ["scope"]

    def test_tensor_work_counted_as_vector_work(self, make_run, machine, gemm):
        tf32 = Ceiling(kind="compute", value=5e12, unit="flop/s", path="tensor tf32")
        roofs = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, tf32))
        counted = gemm | {"flop_tensor_fp16": 0.0, "flop_vector_fp32": 4e11}
        assert self.causes(analyze(make_run(counted), roofs)) == ["precision"]
        assert self.causes(analyze(make_run(counted | {"flop_vector_fp32": 6e11}), roofs)) == [
            "scope"
        ]

    def test_units(self, make_run, machine, gemm):
        assert self.causes(analyze(make_run(self.faster(gemm, 1000)), machine))[0] == "units"

    def test_packed_halves(self, make_run, machine, gemm):
        half = Ceiling(kind="compute", value=2e12, unit="flop/s", path="vector fp16")
        roofs = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, half))
        counted = gemm | {"flop_tensor_fp16": 0.0, "flop_vector_fp16": 4e11}
        found = self.causes(analyze(make_run(counted), roofs))
        assert found == ["precision", "half-weights"]

    def test_a_level_counted_otherwise_than_its_roof(self, make_run, machine, gemm):
        assert self.causes(analyze(make_run(gemm | {"bytes_l2": 6e9}), machine)) == ["level"]

    def test_counts_and_times_of_several_runs(self, make_run, machine, gemm):
        run = make_run(self.faster(gemm, 1.5), provenance=Provenance(join="by order"))
        assert self.causes(analyze(run, machine)) == ["sparsity", "join"]

    def test_roofs_of_another_gpu(self, make_run, machine, gemm):
        ours = Provenance(devices=(DeviceFacts(compute_capability="9.0"),))
        roofs = msgspec.structs.replace(machine, device=DeviceFacts(compute_capability="7.0"))
        run = make_run(self.faster(gemm, 1.5), provenance=ours)
        assert self.causes(analyze(run, roofs))[0] == "machine"

    def test_a_published_roof(self, make_run, machine, gemm):
        published = tuple(
            msgspec.structs.replace(ceiling, status="published") for ceiling in machine.ceilings
        )
        roofs = msgspec.structs.replace(machine, ceilings=published)
        assert self.causes(analyze(make_run(self.faster(gemm, 1.5)), roofs)) == ["sparsity", "roof"]

    def test_no_other_rule_speaks_of_such_a_kernel(self, make_run, machine, nothing):
        cast = nothing | {"name": "ConversionOp", "duration_s": 0.01, "bytes_dram": 2e8}
        assert rules(analyze(make_run(cast), machine)) == ["above-roof"]

    def test_within_the_noise_it_is_none(self, make_run, machine, gemm):
        assert rules(analyze(make_run(self.faster(gemm, 1.019)), machine)) == []


class TestSecondFault:
    """A kernel with two faults: both are said in one line, and counted once."""

    FOUR = Provenance(devices=(DeviceFacts(sm_count=4),))

    @pytest.fixture
    def alone(self, nothing):
        """A product of one block on CUDA cores: 80 ms of floor in 1 s, 8 ms on tensor cores."""
        return nothing | {
            "name": "precomputed_convolve_sgemm",
            "duration_s": 1.0,
            "grid_x": 1,
            "grid_y": 1,
            "grid_z": 1,
            "flop_vector_fp32": 0.8e11,
            "bytes_l1": 1e8,
            "bytes_l2": 1e8,
            "bytes_dram": 1e7,
        }

    def test_a_small_grid_without_tensor_work(self, make_run, machine, alone):
        (found,) = advise(analyze(make_run(alone, provenance=self.FOUR), machine))
        assert found.rule == "idle-sms"
        # Three of four SMs are idle: 0.75 s; on tensor cores 1 s less 8 ms.
        assert found.recoverable_s == pytest.approx(0.75)
        assert found.sentence.endswith(
            "Also no tensor work in precomputed_convolve_sgemm (1.00 s): up to 992 ms of the same "
            "time."
        )
        (other,) = found.also
        assert (other.rule, other.kernels) == ("off-tensor", ("precomputed_convolve_sgemm",))
        assert other.recoverable_s == pytest.approx(0.992)

    def test_only_the_kernels_that_have_both(self, make_run, machine, alone):
        reduction = alone | {"name": "reduce_kernel"}
        (found,) = advise(analyze(make_run(reduction, alone, provenance=self.FOUR), machine))
        assert set(found.kernels) == {"reduce_kernel", "precomputed_convolve_sgemm"}
        assert found.also[0].kernels == ("precomputed_convolve_sgemm",)

    def test_a_second_fault_takes_no_part_in_the_order(self, make_run, machine, alone, nothing):
        fill = nothing | {"name": "fill_kernel", "duration_s": 0.8, "bytes_dram": 1e8}
        run = make_run(alone, fill, provenance=self.FOUR)
        # 0.8 s of fills before 0.75 s of idle SMs, whatever tensor cores could win there.
        assert rules(analyze(run, machine)) == ["fills", "idle-sms"]
        assert sum(one.recoverable_s for one in advise(analyze(run, machine))) < 1.8

    def test_short_launches_that_only_move_data(self, make_run, machine, nothing):
        cast = nothing | {"name": "ConversionOp", "duration_s": 4e-6, "bytes_dram": 1e4}
        fill = cast | {"name": "fill_kernel", "duration_s": 3e-6}
        other = cast | {"name": "add_kernel", "duration_s": 2e-6, "flop_vector_fp32": 1e5}
        (found,) = advise(analyze(make_run(*[cast, fill, other] * 9), machine))
        assert found.rule == "launch-bound"
        # 1 us of floor for each launch: 1e4 B at 10 GB/s.
        assert found.recoverable_s == pytest.approx(9 * (9e-6 - 3e-6))
        assert [(one.rule, one.kernels) for one in found.also] == [
            ("casts-and-copies", ("ConversionOp",)),
            ("fills", ("fill_kernel",)),
        ]
        assert "Also casts and copies in ConversionOp (36.0 us): up to 36.0 us" in found.sentence
        assert "Also fills with a constant in fill_kernel (27.0 us)" in found.sentence

    def test_a_sentence_names_two_and_the_json_all(self, make_run, machine, nothing):
        moved = nothing | {"duration_s": 4e-6, "bytes_dram": 1e4}
        names = ("ConversionOp", "fill_kernel", "nchwToNhwcKernel", "CatArrayBatchedCopy")
        (found,) = advise(analyze(make_run(*(moved | {"name": name} for name in names)), machine))
        assert len(found.also) == 4
        assert found.sentence.count(" Also ") == 2

    def test_what_follows_from_the_first_fault_is_none(self, make_run, machine, alone):
        # It waits (latency-bound) because three of four SMs have nothing to do.
        waits = alone | {"name": "reduce_kernel", "bytes_dram": 1e9, "bytes_l2": 1e9}
        (found,) = advise(analyze(make_run(waits, provenance=self.FOUR), machine))
        assert (found.rule, found.also) == ("idle-sms", ())
        assert "Also" not in found.sentence

    def test_little_is_not_told(self, make_run, machine, alone):
        reduction = alone | {"name": "reduce_kernel", "duration_s": 100.0}
        (found,) = advise(analyze(make_run(reduction, alone, provenance=self.FOUR), machine))
        assert found.also == ()


class TestOrder:
    """What comes first, and that nothing is counted twice."""

    def test_contradictions_first_then_the_most_time(self, make_run, machine, gemm, nothing):
        cast = nothing | {"name": "ConversionOp", "duration_s": 0.05, "bytes_dram": 1e8}
        fill = cast | {"name": "fill_kernel", "duration_s": 0.07}
        above = gemm | {"name": "wrong", "flop_tensor_fp16": 1.5e12}
        run = make_run(cast, fill, above)
        assert rules(analyze(run, machine)) == ["above-roof", "fills", "casts-and-copies"]

    def test_a_kernel_belongs_to_one_rule(self, make_run, machine, nothing):
        # A cast on one SM that waits: it is advised to go, not to be made faster.
        cast = nothing | {"name": "ConversionOp", "duration_s": 0.05, "bytes_dram": 1e7}
        cast |= {"grid_x": 1, "grid_y": 1, "grid_z": 1}
        run = make_run(cast, provenance=Provenance(devices=(DeviceFacts(sm_count=4),)))
        assert rules(analyze(run, machine)) == ["casts-and-copies"]

    def test_small_change_is_not_told(self, make_run, machine, gemm, nothing):
        cast = nothing | {"name": "ConversionOp", "bytes_dram": 1e6}
        told = analyze(make_run(gemm, cast | {"duration_s": 1.1e-3}), machine)
        untold = analyze(make_run(gemm, cast | {"duration_s": 0.9e-3}), machine)
        assert (rules(told), rules(untold)) == (["casts-and-copies"], [])

    def test_twenty_thousand_kernels_take_no_time_to_speak_of(self, make_run, machine, nothing):
        waits = nothing | {"duration_s": 0.1, "bytes_dram": 1e8, "bytes_l2": 1e8, "bytes_l1": 1e8}
        (kernel,) = analyze(make_run(waits | {"name": "k"}), machine).kernels
        many = tuple(dataclasses.replace(kernel, key=str(n)) for n in range(20_000))
        analysis = dataclasses.replace(analyze(make_run(waits), machine), kernels=many)
        compared = 0

        def count_comparisons(*_):
            nonlocal compared
            compared += 1
            return False

        # Kernels are large values: comparing each with each took minutes.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kernel, "__eq__", count_comparisons)
            assert rules(analysis) == ["latency-bound"]
        assert compared == 0

    def test_hostile_names_stay_text_of_bounded_length(self, make_run, machine, nothing):
        name = "\x1b[31m</script>" + "x" * 5000 + "copy_kernel"
        cast = nothing | {"name": name, "duration_s": 0.05, "bytes_dram": 1e8}
        (found,) = advise(analyze(make_run(cast), machine))
        assert len(found.sentence) < 600
        assert found.kernels == (name,)


@pytest.mark.parametrize("name", ["h200-deeplabv3-step", "h200-zoo", "v100-deepcam-forward"])
def test_no_advice_on_a_real_run_promises_more_than_the_counters_show(name):
    run = shipped_run(name)
    analysis = analyze(run, machine_for(run)[0])
    kernels = {kernel.key: kernel for kernel in analysis.kernels}
    of_kernels = [
        one
        for one in advise(analysis)
        if one.rule not in ("low-clock", "idle-gpu", "exposed-collectives", "above-roof")
    ]
    assert of_kernels
    named = [key for one in of_kernels for key in one.kernels]
    assert len(named) == len(set(named))
    for one in of_kernels:
        spent = sum(kernels[key].duration_s for key in one.kernels)
        assert 0 < one.recoverable_s <= spent * (1 + 1e-12), one.rule
        for other in one.also:
            assert set(other.kernels) <= set(one.kernels)
            assert 0 < other.recoverable_s <= spent * (1 + 1e-12)
    gained = sum(one.recoverable_s for one in of_kernels)
    assert gained <= analysis.totals.duration_s


def test_every_rule_and_cause_has_its_paragraph_in_the_documentation():
    source = Path(advice.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.glob("advice*.py"))
    rules_given = set(re.findall(r'rule="([a-z-]+)"', text))
    rules_given |= {movement.rule for movement in MOVEMENTS}
    causes_given = set(re.findall(r'Cause\(\s*"([a-z-]+)"', text))
    assert len(rules_given) == 15
    assert len(causes_given) == 11
    page = PAGE.read_text(encoding="utf-8")
    headings = {
        word for line in re.findall(r"^### (.*)$", page, re.MULTILINE) for word in line.split(", ")
    }
    assert rules_given == headings
    assert {cause for cause in causes_given if f"| `{cause}` |" not in page} == set()
