"""Each notice: when it is given, what it says, and when it is not."""

import msgspec
import pytest

from mansard.analysis import AnalysisOptions, analyze
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance


def codes(analysis):
    return [notice.code for notice in analysis.notices]


def message(analysis, code):
    (found,) = [notice.message for notice in analysis.notices if notice.code == code]
    return found


@pytest.fixture
def clean(nothing):
    """A launch with nothing to remark: all counted, well below its roofs, not small."""
    return nothing | {
        "name": "k",
        "duration_s": 0.01,
        "sm_clock_hz": 1.9e9,
        "flop_vector_fp32": 1e9,
        "bytes_l1": 1e7,
        "bytes_l2": 1e7,
        "bytes_dram": 1e7,
    }


def test_a_clean_run_has_none(make_run, machine, clean):
    assert codes(analyze(make_run(clean), machine)) == []
    assert codes(analyze(make_run(clean))) == []


def test_no_launches(make_run, machine):
    assert codes(analyze(make_run(), machine)) == ["no-launches"]


def test_notices_of_the_run_and_the_caller_come_first_and_once(make_run, machine, clean):
    mine = Notice("l2-not-collected", "the reader knows better why")
    run = make_run(clean | {"bytes_l2": None}, provenance=Provenance(notices=(mine, mine)))
    told = Notice("machine-chosen", "x")
    assert analyze(run, machine, notices=[told, mine]).notices == (mine, told)


class TestMissing:
    """Counters that are not there."""

    def test_paths(self, make_run, clean):
        missing = {"flop_vector_fp64": ("dadd", "dmul", "dfma")}
        run = make_run(clean | {"flop_vector_fp64": None}, provenance=Provenance(missing=missing))
        text = message(analyze(run), "vector-not-collected")
        assert "vector fp64 not counted" in text
        assert "collect dadd, dmul, dfma" in text

    def test_all_flop(self, make_run):
        analysis = analyze(make_run({"name": "k", "duration_s": 1, "bytes_dram": 1}))
        assert {"flop-unknown", "vector-not-collected", "tensor-not-collected"} <= set(
            codes(analysis)
        )
        assert "unknown, not 0" in message(analysis, "flop-unknown")

    @pytest.mark.parametrize("kind", ["range", "graph"])
    def test_work_that_ncu_does_not_count_in_ranges_is_not_asked_for(self, make_run, clean, kind):
        counters = ("dadd", "dmul", "dfma")
        reader = Notice("vector-not-collected", "Collect it with --metrics dadd,dmul,dfma")
        ncu = Provenance(
            collector="Nsight Compute", missing={"flop_vector_fp64": counters}, notices=(reader,)
        )
        whole = clean | {"kind": kind, "flop_vector_fp64": None}
        text = message(analyze(make_run(whole, provenance=ncu)), "vector-not-collected")
        assert "vector fp64 not counted" in text
        assert "dadd" not in text
        assert "--replay kernel --graphs node" in text
        # Of kernels, and of other collectors, the counters can be had.
        for row, collector in (
            (whole | {"kind": "kernel"}, "Nsight Compute"),
            (whole, "Mansard (CUPTI, inside the process)"),
        ):
            origin = msgspec.structs.replace(ncu, collector=collector)
            text = message(analyze(make_run(row, provenance=origin)), "vector-not-collected")
            assert text == reader.message

    def test_times_of_ranges_are_not_to_be_had_of_ncu(self, make_run, clean):
        untimed = clean | {"kind": "range", "duration_s": None}
        ncu = Provenance(collector="Nsight Compute")
        text = message(analyze(make_run(untimed, provenance=ncu)), "time-not-collected")
        assert "mansard profile --with ncu" in text
        assert "record the time too" not in text
        kernels = make_run(untimed | {"kind": "kernel"}, provenance=ncu)
        assert "record the time too" in message(analyze(kernels), "time-not-collected")

    def test_tensor_work_by_its_name(self, make_run, clean):
        gemm = clean | {"name": "ampere_fp16_s16816gemm_fp16_128x128"}
        uncounted = {key: None for key in clean if key.startswith("flop_tensor")}
        text = message(analyze(make_run(gemm | uncounted)), "tensor-work-unseen")
        assert "ampere_fp16_s16816gemm_fp16_128x128" in text
        assert "tensor-work-unseen" not in codes(analyze(make_run(clean | uncounted)))
        assert "tensor-work-unseen" not in codes(analyze(make_run(gemm)))

    def test_tensor_work_of_the_type_that_was_not_counted(self, make_run, clean):
        gemm = clean | {"name": "nvjet_qqtst_128x128", "flop_tensor_fp8": None}
        assert "tensor-work-unseen" in codes(analyze(make_run(clean, gemm)))
        seen = gemm | {"flop_tensor_bf16": 1e9}
        assert "tensor-work-unseen" not in codes(analyze(make_run(clean, seen)))

    @pytest.mark.parametrize("level", ["l1", "l2", "dram"])
    def test_levels(self, make_run, clean, level):
        run = make_run(clean | {f"bytes_{level}": None})
        assert codes(analyze(run)) == [f"{level}-not-collected"]
        assert "any launch" in message(analyze(run), f"{level}-not-collected")

    def test_levels_in_part(self, make_run, clean):
        run = make_run(clean, clean | {"bytes_l2": None})
        assert "1 of 2 launches" in message(analyze(run), "l2-not-collected")

    def test_shared_memory_only_where_it_has_a_roof(self, make_run, machine, clean):
        run = make_run(clean | {"bytes_shared": None})
        assert codes(analyze(run, machine)) == []
        shared = Ceiling(kind="bandwidth", value=1e12, unit="byte/s", level="shared")
        more = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, shared))
        assert codes(analyze(run, more)) == ["shared-not-collected"]

    def test_a_link_only_where_a_kernel_is_known_to_need_it(self, make_run, machine, clean):
        link = Ceiling(kind="bandwidth", value=1e11, unit="byte/s", level="link")
        linked = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, link))
        uncounted = clean | {"bytes_link": None}
        assert codes(analyze(make_run(uncounted), linked)) == []
        reduces = uncounted | {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}
        assert "link-not-collected" in codes(analyze(make_run(reduces), linked))

    def test_durations(self, make_run, clean):
        untimed = clean | {"duration_s": None}
        assert codes(analyze(make_run(untimed))) == ["time-not-collected"]
        some = analyze(make_run(untimed, clean))
        assert "1 of 2 launches" in message(some, "time-not-collected")

    def test_clocks_for_the_paper_rule(self, make_run, clean):
        run = make_run(clean | {"sm_clock_hz": None})
        paper = AnalysisOptions(time_rule="paper")
        assert codes(analyze(run, options=paper)) == ["clock-not-collected"]
        assert codes(analyze(run)) == []
        assert codes(analyze(make_run(clean), options=paper)) == []


class TestRoofs:
    """Ceilings that are missing, too low, or of another GPU."""

    def test_work_without_a_ceiling(self, make_run, machine, clean):
        run = make_run(clean | {"flop_tensor_bf16": 1e9, "bytes_shared": 5.0})
        text = message(analyze(run, machine), "no-ceiling")
        assert "'round' has no ceiling for tensor bf16, level shared" in text

    def test_above_the_roof_with_its_possible_causes(self, make_run, machine, clean):
        run = make_run(clean, clean | {"name": "fast", "duration_s": 1e-4})
        text = message(analyze(run, machine), "above-roof")
        assert text.startswith("1 of 2 launches")
        assert "(fast)" in text
        for cause in ("clock", "sparsity", "precision", "units", "measure it"):
            assert cause in text

    def test_another_gpu(self, make_run, machine, clean):
        def run_of(**facts):
            return make_run(clean, provenance=Provenance(devices=(DeviceFacts(**facts),)))

        h200 = DeviceFacts(name="NVIDIA H200", compute_capability="9.0")
        roofs = msgspec.structs.replace(machine, device=h200)
        assert codes(analyze(run_of(compute_capability="8.0"), roofs)) == ["other-machine"]
        h100 = run_of(name="NVIDIA H100 80GB HBM3", compute_capability="9.0")
        assert codes(analyze(h100, roofs)) == ["other-machine"]
        assert codes(analyze(run_of(name="H200", compute_capability="9.0"), roofs)) == []
        assert codes(analyze(run_of(compute_capability="8.0"), machine)) == []

    def test_clocks_below_those_of_every_roof(self, make_run, machine, clean):
        at = tuple(
            msgspec.structs.replace(ceiling, sm_clock_hz=clock)
            for ceiling, clock in zip(
                machine.ceilings, (1.98e9, 1.98e9, 1.6e9, 1.8e9, None, None, None), strict=True
            )
        )
        roofs = msgspec.structs.replace(machine, ceilings=at)
        assert codes(analyze(make_run(clean | {"sm_clock_hz": 1.59e9}), roofs)) == []
        slow = analyze(make_run(clean | {"sm_clock_hz": 1.3e9}), roofs)
        assert "1.30 GHz" in message(slow, "clock-mismatch")


class TestLaunches:
    """Launches that are not what they seem."""

    def test_graphs_and_ranges(self, make_run, clean):
        run = make_run(clean, clean | {"kind": "graph"}, clean | {"kind": "graph"})
        assert "2 of kind 'graph'" in message(analyze(run), "not-kernels")
        copies = make_run(clean, {"name": "c", "kind": "memcpy", "duration_s": 1e-3})
        assert codes(analyze(copies)) == []

    def test_impossible_values(self, make_run, clean):
        run = make_run(clean, clean | {"bytes_dram": -4.0}, clean | {"bytes_l1": float("nan")})
        text = message(analyze(run), "impossible-values")
        assert text.startswith("2 launches")
        assert "in bytes_dram, bytes_l1;" in text
        huge = message(analyze(make_run(clean, clean | {"bytes_l1": 1e40})), "impossible-values")
        assert "infinite or absurdly large values in bytes_l1;" in huge

    def test_tiny_kernels(self, make_run, clean):
        quick = clean | {"name": "quick", "duration_s": 1e-6}
        small = clean | {"name": "small", "bytes_dram": 1000.0}
        analysis = analyze(make_run(clean, *[quick] * 200, small))
        assert {kernel.key for kernel in analysis.kernels if kernel.tiny} == {"quick", "small"}
        assert "2 kernels (50.5 % of the time)" in message(analysis, "tiny-kernels")
        # A share of the time that changes nothing is not told.
        assert "tiny-kernels" not in codes(analyze(make_run(clean, quick)))

    def test_waiting_for_peers(self, make_run, machine, clean):
        wait = {"bytes_dram": 1e6, "flop_vector_fp32": 0.0, "bytes_l1": 0.0, "bytes_l2": 0.0}
        nccl = clean | wait | {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"}
        text = message(analyze(make_run(clean, nccl), machine), "waiting-on-peers")
        assert "ncclDevKernel_AllReduce_Sum_f32_RING_LL (50.0 % of the time)" in text
        moe = clean | wait | {"name": "mega_moe_kernel"}
        assert "waiting-on-peers" in codes(analyze(make_run(moe), machine))
        busy = nccl | {"bytes_dram": 5e7}  # 5 of its 10 ms
        assert "waiting-on-peers" not in codes(analyze(make_run(clean, busy), machine))
        brief = nccl | {"duration_s": 5e-5, "bytes_dram": 1e3}
        assert "waiting-on-peers" not in codes(analyze(make_run(brief), machine))
        other = clean | wait | {"name": "slow_kernel"}
        assert "waiting-on-peers" not in codes(analyze(make_run(other), machine))
