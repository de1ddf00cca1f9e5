"""Sums over launches: work, traffic, time, zero-FLOP counts, and the groups they are taken by."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mansard.analysis import AnalysisOptions, analyze
from mansard.errors import FormatError, UsageError
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Definition, Provenance
from mansard.model.run import Run
from mansard.store import open_run

VOLTA = Provenance(devices=(DeviceFacts(compute_capability="7.0"),))


def kernels(analysis):
    return {kernel.key: kernel for kernel in analysis.kernels}


class TestGroups:
    """The same launches by kernel, phase, family and rank."""

    def test_kernels_come_longest_first(self, make_run):
        run = make_run(
            {"name": "short", "duration_s": 1.0},
            {"name": "long", "duration_s": 2.0},
            {"name": "short", "duration_s": 0.5},
        )
        analysis = analyze(run)
        assert [(k.key, k.launches, k.duration_s) for k in analysis.kernels] == [
            ("long", 1, 2.0),
            ("short", 2, 1.5),
        ]
        assert analysis.totals.launches == 3
        assert analysis.totals.kernels == 2

    def test_phases_come_in_order_of_their_first_launch(self, make_run):
        run = make_run(
            {"name": "k", "phase": "zulu", "launch": 0, "duration_s": 1},
            {"name": "k", "phase": "alpha", "launch": 1, "duration_s": 9},
            {"name": "k", "phase": "zulu", "launch": 2, "duration_s": 1},
            {"name": "k", "phase": None, "launch": 3, "duration_s": 1},
        )
        assert [(p.key, p.launches) for p in analyze(run).phases] == [
            ("zulu", 2),
            ("alpha", 1),
            (None, 1),
        ]

    def test_ranks_come_in_order(self, make_run):
        run = make_run(*[{"name": "k", "rank": rank, "duration_s": 1} for rank in (10, 2, 0, 2)])
        assert [(r.key, r.launches) for r in analyze(run).ranks] == [("0", 1), ("2", 2), ("10", 1)]

    def test_families_are_sums_of_kernels(self, make_run):
        run = make_run(
            {"name": "ampere_sgemm_128x64_tn", "duration_s": 1},
            {"name": "nvjet_tst_64x8", "duration_s": 2},
            {"name": "add_kernel", "duration_s": 4},
        )
        assert [(f.key, f.kernels, f.duration_s) for f in analyze(run).families] == [
            ("elementwise", 1, 4.0),
            ("gemm", 2, 3.0),
        ]

    def test_a_kernel_knows_its_shapes_and_its_extremes(self, make_run):
        run = make_run(
            *[
                {"name": "k", "grid_x": grid, "block_x": 64, "duration_s": duration}
                for grid, duration in ((1, 3.0), (2, 1.0), (1, 2.0))
            ]
        )
        (kernel,) = analyze(run).kernels
        assert (kernel.shapes, kernel.duration_min_s, kernel.duration_max_s) == (2, 1.0, 3.0)

    def test_short_names_take_template_variants_together(self, make_run):
        names = ["void ns::k<1>(int)", "void ns::k<2>(int)"]
        run = make_run(*[{"name": name, "duration_s": 1} for name in names])
        assert len(analyze(run).kernels) == 2
        (kernel,) = analyze(run, options=AnalysisOptions(names="short")).kernels
        assert (kernel.key, kernel.launches) == ("k", 2)

    def test_a_kernel_without_a_name_is_kept(self, make_run):
        (kernel,) = analyze(make_run({"name": None, "duration_s": 1})).kernels
        assert kernel.key == kernel.short_name == "(no name)"

    def test_names_are_data_however_hostile(self, make_run):
        names = ["'; DROP TABLE cell; --", 'a"b', "<script>", "日本語", "a\nb", "x" * 5000]
        run = make_run(*[{"name": name, "phase": name, "duration_s": 1} for name in names])
        assert set(kernels(analyze(run))) == set(names)

    def test_no_launches_give_an_empty_analysis(self, make_run, machine):
        analysis = analyze(make_run(), machine)
        assert analysis.totals.launches == 0
        assert analysis.totals.duration_s is None
        assert analysis.totals.flop is None
        assert analysis.kernels == analysis.phases == analysis.families == analysis.ranks == ()

    def test_a_run_without_files_gives_an_empty_analysis(self, machine):
        assert analyze(Run((), ()), machine).totals.launches == 0

    def test_one_launch_is_its_own_total(self, make_run, machine, nothing):
        run = make_run(nothing | {"name": "k", "duration_s": 2.0, "flop_vector_fp32": 8.0})
        analysis = analyze(run, machine)
        assert analysis.totals.flop_per_s == 4.0
        assert analysis.totals.floor_s == analysis.kernels[0].floor_s


class TestWork:
    """FLOP: known, incomplete, unknown."""

    def test_flop_are_the_sum_of_the_paths(self, make_run, nothing):
        run = make_run(
            nothing
            | {"name": "k", "duration_s": 1, "flop_vector_fp32": 1, "flop_tensor_fp16": 20}
            | {"bytes_dram": 7, "bytes_l1": 42}
        )
        (kernel,) = analyze(run).kernels
        assert kernel.flop == 21
        assert kernel.flop_complete
        assert kernel.intensity["dram"] == 3.0
        assert kernel.intensity["l1"] == 0.5
        assert kernel.intensity["l2"] is None  # no byte moved

    def test_a_path_not_counted_makes_flop_a_lower_bound(self, make_run, nothing):
        run = make_run(
            nothing | {"name": "k", "flop_vector_fp64": None, "flop_vector_fp32": 3.0},
            nothing | {"name": "other", "flop_vector_fp32": 3.0},
        )
        found = kernels(analyze(run))
        assert found["k"].flop == 3.0
        assert not found["k"].flop_complete
        assert found["k"].flop_by_path["vector fp64"] is None
        assert found["other"].flop_complete

    def test_nothing_counted_is_unknown_and_not_zero(self, make_run):
        (kernel,) = analyze(make_run({"name": "k", "duration_s": 1})).kernels
        assert kernel.flop is None
        assert kernel.flop_per_s is None
        assert kernel.zero_flop_launches is None
        assert not kernel.flop_complete

    def test_zero_on_the_vector_pipe_says_nothing_of_an_uncounted_tensor_pipe(self, make_run):
        row = {"flop_vector_fp64": 0.0, "flop_vector_fp32": 0.0, "flop_vector_fp16": 0.0}
        (kernel,) = analyze(make_run(row | {"name": "gemm", "duration_s": 1})).kernels
        assert kernel.flop is None
        assert kernel.zero_flop_launches is None

    def test_paths_that_the_chip_lacks_are_not_missing(self, make_run):
        row = {"flop_vector_fp64": 0, "flop_vector_fp32": 2, "flop_vector_fp16": 0}
        row |= {"flop_tensor_fp16": 5, "name": "k", "duration_s": 1}
        assert analyze(make_run(row, provenance=VOLTA)).totals.flop_complete
        hopper = Provenance(devices=(DeviceFacts(compute_capability="9.0"),))
        assert not analyze(make_run(row, provenance=hopper)).totals.flop_complete

    def test_a_counter_table_tells_what_an_unknown_chip_lacks(self, make_run):
        row = {"flop_vector_fp32": 2, "flop_tensor_fp16": 5, "name": "k", "duration_s": 1}
        made = {name: Definition("x") for name in ("flop_vector_fp32", "flop_tensor_fp16")}
        told = Provenance(counter_table="t", definitions=made)
        assert analyze(make_run(row, provenance=told)).totals.flop_complete
        missed = Provenance(
            counter_table="t", definitions=made, missing={"flop_vector_fp64": ("dadd",)}
        )
        assert not analyze(make_run(row, provenance=missed)).totals.flop_complete

    def test_types_counted_together_stand_for_the_single_ones(self, make_run, nothing):
        row = nothing | {"name": "k", "duration_s": 1}
        together = row | dict.fromkeys(("flop_tensor_fp8", "flop_tensor_fp6", "flop_tensor_fp4"))
        assert analyze(make_run(row)).totals.flop_complete
        assert not analyze(make_run(together)).totals.flop_complete
        counted = together | {"flop_tensor_fp4_fp6_fp8": 0.0}
        assert analyze(make_run(counted)).totals.flop_complete

    def test_counts_beyond_64_bits_survive(self, make_run, nothing):
        huge = 2.0**70
        run = make_run(*[nothing | {"name": "k", "duration_s": 1, "flop_tensor_fp8": huge}] * 4)
        assert analyze(run).totals.flop == 2.0**72

    def test_a_level_known_in_part_has_no_intensity(self, make_run, nothing):
        run = make_run(
            nothing | {"name": "k", "flop_vector_fp32": 4, "bytes_dram": 2, "bytes_l1": 2},
            nothing | {"name": "k", "flop_vector_fp32": 4, "bytes_dram": None, "bytes_l1": 2},
        )
        (kernel,) = analyze(run).kernels
        assert kernel.bytes_by_level["dram"] == 2
        assert kernel.intensity["dram"] is None
        assert kernel.partial_levels == ("dram",)
        assert kernel.intensity["l1"] == 2.0


class TestZeroFlop:
    """Zero-FLOP launches, by kernel name as the paper counts, and by launch."""

    @pytest.fixture
    def run(self, make_run, nothing):
        """A kernel that casts: with FLOP on one launch of three; and a pure copy."""
        return make_run(
            nothing | {"name": "cast", "duration_s": 1.0, "bytes_dram": 100, "flop_vector_fp32": 9},
            nothing | {"name": "cast", "duration_s": 2.0, "bytes_dram": 100},
            nothing | {"name": "cast", "duration_s": 4.0, "bytes_dram": 100, "phase": "p"},
            nothing | {"name": "copy", "duration_s": 8.0, "bytes_dram": 100},
        )

    def test_by_name_a_kernel_counts_whole_within_its_phase(self, run):
        totals = analyze(run).totals
        assert (totals.zero_flop_launches, totals.zero_flop_duration_s) == (2, 12.0)

    def test_by_launch_each_counts_for_itself(self, run):
        totals = analyze(run, options=AnalysisOptions(zero_flop_by="launch")).totals
        assert (totals.zero_flop_launches, totals.zero_flop_duration_s) == (3, 14.0)

    def test_near_zero_is_some_work_below_the_intensity(self, run):
        totals = analyze(run).totals
        assert (totals.near_zero_flop_launches, totals.near_zero_flop_duration_s) == (1, 1.0)
        strict = AnalysisOptions(near_zero_intensity=0.09)
        assert analyze(run, options=strict).totals.near_zero_flop_launches == 0

    def test_short_launches_are_counted(self, make_run):
        run = make_run(*[{"name": "k", "duration_s": d} for d in (4.9e-6, 5.0e-6, 1e-3)])
        assert analyze(run).totals.short_launches == 1
        longer = AnalysisOptions(short_launch_s=1e-4)
        assert analyze(run, options=longer).totals.short_launches == 2


class TestTimeRule:
    """The authors' time of a kernel is its total cycles over its mean clock."""

    def test_the_two_rules_differ_when_the_clock_moves(self, make_run):
        run = make_run(
            {"name": "k", "duration_s": 1.0, "sm_clock_hz": 1e9},
            {"name": "k", "duration_s": 3.0, "sm_clock_hz": 2e9},
        )
        assert analyze(run).totals.duration_s == 4.0
        paper = AnalysisOptions(time_rule="paper")
        # 1e9 + 6e9 cycles over 1.5 GHz
        assert analyze(run, options=paper).totals.duration_s == pytest.approx(7 / 1.5)

    def test_without_clocks_the_paper_rule_adds_up_durations(self, make_run):
        run = make_run(
            {"name": "k", "duration_s": 1.0, "sm_clock_hz": 1e9}, {"name": "k", "duration_s": 3.0}
        )
        paper = AnalysisOptions(time_rule="paper")
        assert analyze(run, options=paper).totals.duration_s == 4.0


class TestKinds:
    """Copies, graphs and ranges are launches, but no kernels."""

    def test_copies_are_a_family_with_their_bytes_and_no_flop(self, make_run, machine, nothing):
        run = make_run(
            nothing | {"name": "k", "duration_s": 1, "flop_vector_fp32": 4.0},
            {"name": "Memcpy DtoD", "kind": "memcpy", "duration_s": 2, "bytes_dram": 1e9},
            {"name": None, "kind": "memset", "duration_s": 1, "bytes_dram": 1e9},
        )
        analysis = analyze(run, machine)
        copies = {family.key: family for family in analysis.families}["copy"]
        assert (copies.launches, copies.bytes_by_level["dram"]) == (2, 2e9)
        assert copies.flop == 0
        assert copies.bound == "dram"
        assert set(kernels(analysis)) == {"k", "Memcpy DtoD", "memset"}
        # Counters that a copy engine does not have are not missing.
        assert analysis.totals.flop_complete
        assert analysis.totals.partial_levels == ()
        assert analysis.totals.zero_flop_launches == 2

    def test_a_graph_is_a_row_of_its_own(self, make_run):
        run = make_run(
            {"name": "gemm", "kind": "kernel", "duration_s": 1},
            {"name": "gemm", "kind": "graph", "duration_s": 2},
            {"name": "step", "kind": "range", "duration_s": 4},
        )
        found = kernels(analyze(run))
        assert set(found) == {"gemm", "graph: gemm", "range: step"}
        assert found["graph: gemm"].family == "other"


class TestRanks:
    """Many files are many ranks."""

    def test_files_without_a_rank_count_in_order_of_their_names(self, tmp_path, write_rows):
        for name, launches in (("r10", 3), ("r2", 2), ("r1", 1)):
            write_rows([{"name": "k", "duration_s": 1}] * launches, tmp_path / f"{name}.parquet")
        ranks = analyze(open_run(tmp_path)).ranks
        assert [(rank.key, rank.launches) for rank in ranks] == [("0", 1), ("1", 2), ("2", 3)]

    def test_a_rank_in_the_launches_or_the_provenance_counts_first(self, tmp_path, write_rows):
        row = {"name": "k", "duration_s": 1}
        write_rows([row | {"rank": 5}], tmp_path / "a.parquet")
        write_rows([row] * 2, tmp_path / "b.parquet", Provenance(extra={"rank": "7"}))
        write_rows([], tmp_path / "c.parquet")
        ranks = analyze(open_run(tmp_path)).ranks
        assert [(rank.key, rank.launches) for rank in ranks] == [("5", 1), ("7", 2)]

    def test_one_file_without_a_rank_has_none(self, make_run):
        assert [rank.key for rank in analyze(make_run({"name": "k"})).ranks] == [None]

    def test_odd_file_names_are_taken_as_they_are(self, tmp_path, write_rows):
        folder = tmp_path / "a=1 [x] it's*?"
        folder.mkdir()
        for name in ("r[0]*.parquet", "r'1?.parquet"):
            write_rows([{"name": "k", "duration_s": 1}], folder / name)
        assert analyze(open_run(folder)).totals.launches == 2


class TestHostile:
    """Files that others wrote, or broke."""

    @pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, -math.inf, 1e37, 1.7e308])
    def test_impossible_values_are_unknown(self, make_run, machine, nothing, wrong):
        run = make_run(
            nothing | {"name": "k", "duration_s": 1.0, "bytes_dram": wrong, "flop_vector_fp32": 2},
            nothing | {"name": "k", "duration_s": wrong, "bytes_dram": 1e6},
        )
        (kernel,) = analyze(run, machine).kernels
        assert kernel.bytes_by_level["dram"] == 1e6
        assert kernel.duration_s == 1.0
        assert kernel.untimed_launches == 1
        assert kernel.launches == 2

    def test_damaged_data_are_an_error_of_the_file(self, tmp_path, write_rows):
        path = tmp_path / "run.parquet"
        write_rows([{"name": f"k{i}", "duration_s": i} for i in range(2000)], path)
        content = bytearray(path.read_bytes())
        content[100:3000] = bytes(2900)
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"run\.parquet are damaged"):
            analyze(open_run(path))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"time_rule": "best"},
            {"names": "long"},
            {"zero_flop_by": "kernel"},
            {"near_zero_intensity": -1},
            {"tolerance_above_roof": math.nan},
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, wrong):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            AnalysisOptions(**wrong)


FINITE = st.one_of(st.none(), st.floats(0, 1e12))


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["gemm", "add_kernel", "copy", None]),
                "kind": st.sampled_from([None, "kernel", "memcpy", "graph"]),
                "phase": st.sampled_from(["forward", "backward", None]),
                "rank": st.sampled_from([0, 1, None]),
                "duration_s": st.one_of(st.none(), st.floats(1e-7, 1)),
                "sm_clock_hz": st.floats(1e9, 2e9),
                "flop_vector_fp32": FINITE,
                "flop_tensor_fp16": FINITE,
                "bytes_dram": FINITE,
                "bytes_l2": FINITE,
            }
        ),
        max_size=8,
    ),
    time_rule=st.sampled_from(["launch", "paper"]),
    zero_flop_by=st.sampled_from(["name", "launch"]),
)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_totals_are_the_sum_of_phases_of_ranks_of_families_and_of_kernels(
    make_run, machine, rows, time_rule, zero_flop_by
):
    options = AnalysisOptions(time_rule=time_rule, zero_flop_by=zero_flop_by)
    analysis = analyze(make_run(*rows), machine, options=options)
    totals = analysis.totals
    assert totals.launches == len(rows)
    for groups in (analysis.phases, analysis.ranks, analysis.families, analysis.kernels):
        assert sum(group.launches for group in groups) == totals.launches
        assert sum(g.launches_above_roof for g in groups) == totals.launches_above_roof
        for value in (
            lambda g: g.duration_s,
            lambda g: g.flop,
            lambda g: g.floor_s,
            lambda g: g.bytes_by_level["dram"],
            lambda g: g.floors_s["dram"],
            lambda g: g.zero_flop_launches,
            lambda g: g.zero_flop_duration_s,
            lambda g: g.near_zero_flop_launches,
            lambda g: g.short_launches,
            lambda g: g.untimed_launches,
        ):
            known = [value(group) for group in groups if value(group) is not None]
            assert sum(known) == pytest.approx(value(totals) or 0, rel=1e-9)
