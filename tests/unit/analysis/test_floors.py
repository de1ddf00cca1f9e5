"""Time floors of launches, worked out by hand on round roofs."""

import msgspec
import pytest

from mansard.analysis import analyze
from mansard.model.machine import Ceiling


def only(analysis):
    (kernel,) = analysis.kernels
    return kernel


def with_launch_cost(machine, **costs):
    more = tuple(
        Ceiling(kind="launch", value=value, unit="s", access=access.replace("_", " "))
        for access, value in costs.items()
    )
    return msgspec.structs.replace(machine, ceilings=machine.ceilings + more)


def test_each_resource_has_the_time_that_its_roof_allows(make_run, machine, nothing):
    run = make_run(
        nothing
        | {
            "name": "k",
            "duration_s": 0.010,
            "flop_vector_fp32": 2e9,  # 2 ms at 1 TFLOP/s
            "flop_tensor_fp16": 5e9,  # 0.5 ms at 10 TFLOP/s
            "bytes_l1": 1e8,  # 1 ms at 100 GB/s
            "bytes_l2": 1e8,  # 2.5 ms at 40 GB/s
            "bytes_dram": 4e7,  # 4 ms at 10 GB/s
        }
    )
    kernel = only(analyze(run, machine))
    assert kernel.floors_s == pytest.approx(
        {"vector": 0.002, "tensor": 0.0005, "l1": 0.001, "l2": 0.0025, "dram": 0.004}
    )
    assert kernel.bound == "dram"
    assert kernel.floor_s == pytest.approx(0.004)
    assert kernel.efficiency == pytest.approx(0.4)
    assert kernel.recoverable_s == pytest.approx(0.006)


def test_precisions_of_one_pipe_share_its_time(make_run, machine, nothing):
    run = make_run(
        nothing
        | {
            "name": "k",
            "duration_s": 0.010,
            "flop_vector_fp32": 2e9,  # 2 ms
            "flop_vector_fp64": 2e9,  # and 4 ms
        }
    )
    kernel = only(analyze(run, machine))
    assert kernel.floors_s["vector"] == pytest.approx(0.006)
    assert kernel.bound == "vector"


def test_integer_products_take_the_tensor_pipe_but_are_no_flop(make_run, machine, nothing):
    run = make_run(nothing | {"name": "k", "duration_s": 0.01, "op_tensor_int8": 60e9})
    kernel = only(analyze(run, machine))
    assert kernel.floors_s["tensor"] == pytest.approx(0.003)
    assert kernel.flop == 0
    assert kernel.op_int == 60e9
    assert kernel.flop_by_path["tensor int8"] == 60e9


def test_pipes_and_levels_overlap_so_that_the_largest_counts(make_run, machine, nothing):
    run = make_run(
        nothing
        | {"name": "k", "duration_s": 0.01, "flop_vector_fp32": 3e9, "flop_tensor_fp16": 30e9}
    )
    assert only(analyze(run, machine)).floor_s == pytest.approx(0.003)


def test_floors_are_taken_per_launch_and_then_summed(make_run, machine, nothing):
    compute_bound = {"flop_vector_fp32": 4e9, "bytes_dram": 1e7}  # 4 ms against 1 ms
    memory_bound = {"flop_vector_fp32": 1e9, "bytes_dram": 6e7}  # 1 ms against 6 ms
    run = make_run(
        nothing | compute_bound | {"name": "k", "duration_s": 0.01},
        nothing | memory_bound | {"name": "k", "duration_s": 0.01},
    )
    kernel = only(analyze(run, machine))
    assert kernel.floors_s["vector"] == pytest.approx(0.005)
    assert kernel.floors_s["dram"] == pytest.approx(0.007)
    assert kernel.floor_s == pytest.approx(0.010)  # 4 + 6; of the sums it would be 7
    assert kernel.bound == "dram"


def test_a_launch_without_flop_is_bound_by_what_it_moves(make_run, machine, nothing):
    run = make_run(nothing | {"name": "copy", "duration_s": 0.002, "bytes_dram": 1e7})
    kernel = only(analyze(run, machine))
    assert kernel.bound == "dram"
    assert kernel.efficiency == pytest.approx(0.5)
    assert kernel.intensity["dram"] == 0


def test_a_launch_that_does_nothing_has_no_bound(make_run, machine, nothing):
    kernel = only(analyze(make_run(nothing | {"name": "k", "duration_s": 1e-6}), machine))
    assert kernel.bound is None
    assert kernel.floor_s == 0
    assert kernel.efficiency == 0


def test_the_cost_of_a_graph_node_is_a_floor(make_run, machine, nothing):
    run = make_run(*[nothing | {"name": "k", "duration_s": 2e-6, "bytes_dram": 1000}] * 3)
    kernel = only(analyze(run, with_launch_cost(machine, graph_node=1e-6, stream=4e-6)))
    assert kernel.floors_s["launch"] == pytest.approx(3e-6)
    assert kernel.bound == "launch"
    assert kernel.efficiency == pytest.approx(0.5)


def test_the_cost_of_a_launch_into_a_stream_is_none(make_run, machine, nothing):
    # Launches into a stream overlap with kernels that run: they are no least time of one.
    run = make_run(nothing | {"name": "k", "duration_s": 2e-6, "bytes_dram": 1000})
    assert "launch" not in only(analyze(run, with_launch_cost(machine, stream=4e-6))).floors_s


def test_a_launch_quicker_than_a_launch_costs_is_not_above_a_roof(make_run, machine, nothing):
    run = make_run(nothing | {"name": "k", "duration_s": 2e-6})
    analysis = analyze(run, with_launch_cost(machine, graph_node=3e-6))
    assert analysis.totals.launches_above_roof == 0


def test_the_highest_ceiling_of_a_path_sets_its_floor(make_run, machine, nothing):
    slower = Ceiling(kind="compute", value=5e11, unit="flop/s", path="vector fp32", instruction="x")
    refused = Ceiling(
        kind="compute", value=9e12, unit="flop/s", path="vector fp32", status="refused", reason="x"
    )
    more = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, slower, refused))
    run = make_run(nothing | {"name": "k", "duration_s": 0.01, "flop_vector_fp32": 1e9})
    assert only(analyze(run, more)).floors_s["vector"] == pytest.approx(0.001)


def test_types_counted_together_have_the_highest_of_their_roofs(make_run, machine, nothing):
    more = tuple(
        Ceiling(kind="compute", value=value, unit="flop/s", path=path)
        for path, value in (("tensor fp8", 20e12), ("tensor fp6", 20e12), ("tensor fp4", 40e12))
    )
    run = make_run(nothing | {"name": "k", "duration_s": 0.01, "flop_tensor_fp4_fp6_fp8": 40e9})
    kernel = only(analyze(run, msgspec.structs.replace(machine, ceilings=machine.ceilings + more)))
    assert kernel.floors_s["tensor"] == pytest.approx(0.001)


def test_without_a_machine_there_are_no_floors(make_run, nothing):
    kernel = only(analyze(make_run(nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1})))
    assert (kernel.floors_s, kernel.floor_s, kernel.bound) == ({}, None, None)
    assert (kernel.efficiency, kernel.recoverable_s) == (None, None)


class TestUnknown:
    """Missing is not zero: neither in a floor nor in what bounds a launch."""

    def test_work_without_a_ceiling_makes_the_floor_unknown(self, make_run, machine, nothing):
        run = make_run(
            nothing | {"name": "k", "duration_s": 1, "flop_tensor_bf16": 1e9, "bytes_dram": 1e6}
        )
        kernel = only(analyze(run, machine))
        assert kernel.floors_s["tensor"] is None
        assert kernel.bound == "unknown among dram, tensor"

    def test_no_work_without_a_ceiling_is_zero(self, make_run, machine, nothing):
        run = make_run(nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e6})
        kernel = only(analyze(run, machine))
        assert kernel.floors_s["tensor"] == 0
        assert kernel.bound == "dram"

    def test_a_level_that_was_not_counted_can_be_the_bound(self, make_run, machine, nothing):
        row = nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e6}
        row["bytes_l2"] = row["bytes_l1"] = None
        assert only(analyze(make_run(row), machine)).bound == "unknown among dram, l1, l2"

    def test_nothing_counted_leaves_every_resource_possible(self, make_run, machine):
        kernel = only(analyze(make_run({"name": "k", "duration_s": 1}), machine))
        assert kernel.bound == "unknown among vector, tensor, l1, l2, dram"
        assert kernel.floor_s is None
        assert set(kernel.floors_s.values()) == {None}

    def test_what_is_missing_on_one_launch_matters_only_if_it_took_long_enough(
        self, make_run, machine, nothing
    ):
        whole = nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e9}  # floor 0.1 s
        part = nothing | {"name": "k", "bytes_l2": None}
        short = make_run(whole, part | {"duration_s": 0.09})
        assert only(analyze(short, machine)).bound == "dram"
        long = make_run(whole, part | {"duration_s": 0.11})
        assert only(analyze(long, machine)).bound == "unknown among dram, l2"

    def test_the_largest_known_floor_stays_the_bound_if_only_it_is_incomplete(
        self, make_run, machine, nothing
    ):
        run = make_run(
            nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e9},
            nothing | {"name": "k", "duration_s": 1, "bytes_dram": None},
        )
        assert only(analyze(run, machine)).bound == "dram"

    def test_a_type_unknown_on_one_launch_may_be_what_bounds_it(self, make_run, machine, nothing):
        # As a counter table gives it: 0 where no tensor instruction ran, else unknown.
        add = nothing | {"name": "add", "duration_s": 1, "bytes_dram": 1e6}
        gemm = add | {"name": "gemm", "flop_tensor_fp16": None}
        found = {k.key: k for k in analyze(make_run(add, gemm), machine).kernels}
        assert found["add"].bound == "dram"
        assert found["gemm"].bound == "unknown among dram, tensor"
        assert found["gemm"].flop is None
        assert found["gemm"].zero_flop_launches is None

    @pytest.mark.parametrize("column", ["flop_tensor_fp8", "op_tensor_int4"])
    def test_a_type_without_a_roof_or_use_is_not_suspected(
        self, make_run, machine, nothing, column
    ):
        int4 = Ceiling(kind="compute", value=1e12, unit="flop/s", path="tensor int4")
        roofs = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, int4))
        add = nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e6}
        assert only(analyze(make_run(add, add | {column: None}), roofs)).bound == "dram"

    def test_a_type_counted_nowhere_is_taken_as_unused(self, make_run, machine, nothing):
        row = nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e6, "flop_vector_fp64": None}
        kernel = only(analyze(make_run(row), machine))
        assert (kernel.bound, kernel.flop, kernel.flop_complete) == ("dram", 0, False)

    def test_a_level_without_a_roof_is_no_resource(self, make_run, machine, nothing):
        run = make_run(
            nothing | {"name": "k", "duration_s": 1, "bytes_dram": 1e6, "bytes_shared": 1e9}
        )
        kernel = only(analyze(run, machine))
        assert "shared" not in kernel.floors_s
        assert kernel.bound == "dram"

    def test_floors_leave_out_launches_without_a_time(self, make_run, machine, nothing):
        run = make_run(
            nothing | {"name": "k", "duration_s": 0.2, "bytes_dram": 1e9},  # floor 0.1 s
            nothing | {"name": "k", "duration_s": None, "bytes_dram": 1e9, "flop_vector_fp32": 5},
        )
        kernel = only(analyze(run, machine))
        assert kernel.efficiency == pytest.approx(0.5)
        assert kernel.untimed_launches == 1
        assert kernel.flop == 5
        assert kernel.flop_per_s is None


class TestAboveRoof:
    """Faster than possible is a finding, launch by launch."""

    def test_counts_launches_beyond_the_tolerance(self, make_run, machine, nothing):
        rows = [
            nothing | {"name": "k", "duration_s": duration, "bytes_dram": 1e7}  # floor 1 ms
            for duration in (0.0005, 0.00097, 0.00099, 0.002)
        ]
        # 1 ms / 0.97 ms is 3.1 % above the roof, 1 ms / 0.99 ms 1.0 %.
        assert only(analyze(make_run(*rows), machine)).launches_above_roof == 2

    def test_a_fast_launch_is_not_hidden_by_slow_ones(self, make_run, machine, nothing):
        run = make_run(
            nothing | {"name": "k", "duration_s": 0.0001, "bytes_dram": 1e7},
            nothing | {"name": "k", "duration_s": 0.1, "bytes_dram": 1e7},
        )
        kernel = only(analyze(run, machine))
        assert kernel.launches_above_roof == 1
        assert kernel.recoverable_s == pytest.approx(0.0981)


def test_a_copy_to_the_host_does_not_take_the_link_between_gpus(make_run, machine, nothing):
    links = [
        Ceiling(kind="bandwidth", level="link", instruction=name, value=value, unit="byte/s")
        for name, value in (("PCIe 5.0 x16", 1e9), ("NVLink", 10e9))
    ]
    linked = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, *links))
    copies = [
        nothing | {"kind": "memcpy", "name": name, "duration_s": 10.0, "bytes_link": 1e9}
        for name in ("memcpy HtoD", "memcpy PtoP")
    ]
    found = {kernel.key: kernel for kernel in analyze(make_run(*copies), linked).kernels}
    assert found["memcpy HtoD"].floors_s["link"] == 1.0
    assert found["memcpy PtoP"].floors_s["link"] == 0.1


def test_a_pipe_without_a_roof_has_no_floor_of_zero(make_run, machine, nothing):
    # The machine knows the roof of L2 alone: what held the work is unknown.
    only_l2 = msgspec.structs.replace(
        machine, ceilings=tuple(c for c in machine.ceilings if c.level == "l2")
    )
    work = nothing | {"name": "k", "duration_s": 1.0, "flop_tensor_fp16": 1e12}
    idle = nothing | {"name": "copy", "duration_s": 1.0}
    found = analyze(make_run(work, idle), only_l2).totals
    assert found.floors_s.get("tensor") is None
    assert (found.floor_s, found.efficiency) == (None, None)


def test_a_link_that_only_a_copy_took_leaves_kernels_their_bound(make_run, machine, nothing):
    link = Ceiling(kind="bandwidth", level="link", instruction="PCIe", value=1e9, unit="byte/s")
    linked = msgspec.structs.replace(machine, ceilings=(*machine.ceilings, link))
    work = nothing | {"name": "k", "duration_s": 1.0, "bytes_dram": 1e9, "bytes_link": None}
    copy = nothing | {"kind": "memcpy", "name": "memcpy DtoH", "duration_s": 1.0, "bytes_link": 4.0}
    kernels = {each.key: each for each in analyze(make_run(work, copy), linked).kernels}
    assert kernels["k"].bound == "dram"
    assert kernels["memcpy DtoH"].floors_s["link"] == 4e-9
