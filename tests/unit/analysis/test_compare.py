"""Two runs side by side: matching, means, noise, verdicts, and unlike conditions."""

import dataclasses
import math

import numpy as np
import pytest

from mansard.analysis.compare import compare, comparisons
from mansard.analysis.noise import Part as NoisePart
from mansard.analysis.noise import half_interval, student
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.parts import Part
from mansard.errors import UsageError
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Definition, Provenance
from mansard.model.run import Run


@pytest.fixture
def runs(tmp_path, write_rows):
    """Make runs of one file each out of launches."""

    def make(*sides, provenances=None):
        made = []
        for number, rows in enumerate(sides):
            origin = provenances[number] if provenances else Provenance()
            path = tmp_path / f"{'ab'[number]}.parquet"
            write_rows(rows, path, origin)
            made.append(Run(files=(path,), provenance=(origin,), label=path.stem))
        return made

    return make


def steps(*times, name="k", **more):
    """One launch a step."""
    return [{"name": name, "step": n, "duration_s": time} | more for n, time in enumerate(times)]


def time(comparison):
    return comparison.totals.changes["gpu_time"]


class TestStudent:
    """The interval, against published values."""

    def test_quantiles_are_those_of_the_tables(self):
        assert student(1) == 63.657
        assert student(4) == 4.604
        assert student(30) == 2.750
        # Never less than the exact value (2.697, 2.576 here).
        assert student(45.9) == 2.704
        assert student(1e9) == 2.617
        assert student(0.5) == math.inf

    def test_welch(self):
        """Three and three repeats with variances 2 and 2: s = sqrt(4/3), 4 degrees of freedom."""
        parts = [NoisePart(2 / 3, 2), NoisePart(2 / 3, 2)]
        assert half_interval(parts) == pytest.approx(4.604 * math.sqrt(4 / 3))

    def test_satterthwaite(self):
        """One side without spread leaves the other's degrees of freedom."""
        assert half_interval([NoisePart(1.0, 2), NoisePart(0.0, 50)]) == pytest.approx(9.925)

    def test_nothing_varies(self):
        assert half_interval([NoisePart(0.0, 2), NoisePart(0.0, 2)]) == 0.0


class TestMeans:
    """Values for each rank and step."""

    def test_runs_of_different_lengths(self, runs):
        a, b = runs(steps(1, 1, 1, 1), steps(2, 2, 2))
        found = compare(a, b)
        assert (time(found).a, time(found).b, time(found).relative) == (1.0, 2.0, 1.0)
        assert (found.repeats_a, found.repeats_b) == (4, 3)
        assert found.totals.changes["launches"].verdict == "same"

    def test_ranks_count_as_repeats(self, runs):
        rows = [{"name": "k", "rank": rank, "step": 0, "duration_s": 2.0} for rank in range(3)]
        a, b = runs(rows, rows)
        assert compare(a, b).repeats_a == 3
        assert time(compare(a, b)).a == 2.0

    def test_everything_that_moves(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0, "flop_vector_fp32": 100.0}
        a, b = runs(
            [row | {"bytes_dram": 8.0, "bytes_l2": 10.0}],
            [row | {"bytes_dram": 4.0, "bytes_l2": 10.0, "flop_vector_fp32": 150.0}] * 2,
        )
        changes = compare(a, b).totals.changes
        assert changes["flop"].relative == pytest.approx(2.0)
        assert changes["bytes_dram"].relative == 0.0
        assert changes["bytes_l2"].relative == 1.0
        assert (changes["launches"].a, changes["launches"].b) == (1, 2)

    def test_unknown_is_not_zero(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0}
        a, b = runs([row], [row | {"bytes_l2": None}])
        changes = compare(a, b).totals.changes
        assert changes["bytes_l2"].b is None
        assert changes["bytes_l2"].relative is None
        assert changes["bytes_l2"].verdict == "unknown"
        assert changes["step_time"].verdict == "unknown"

    def test_bytes_or_times_known_of_some_launches_only_are_unknown(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0, "bytes_l2": 5.0}
        a, b = runs([row, row], [row, row | {"bytes_l2": None, "duration_s": None}])
        changes = compare(a, b).totals.changes
        assert (changes["bytes_l2"].b, changes["gpu_time"].b) == (None, None)

    def test_zero_flop_launches(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0}
        a, b = runs([row, row | {"name": "m", "flop_vector_fp32": 1.0}], [row])
        changes = compare(a, b).totals.changes
        assert changes["zero_flop_launches"].relative == 0.0
        assert changes["launches"].relative == -0.5

    def test_the_time_of_a_step_is_from_first_start_to_last_end(self, runs):
        def step(n, gap):
            base = {"name": "k", "step": n, "duration_s": 1.0}
            return [base | {"start_s": 10.0 * n}, base | {"start_s": 10.0 * n + 1 + gap}]

        a, b = runs([*step(0, 1), *step(1, 1)], [*step(0, 2), *step(1, 4)])
        found = compare(a, b).totals.changes["step_time"]
        assert (found.a, found.b) == (3.0, 5.0)
        assert found.verdict == "noise unknown"


class TestNoise:
    """What is a change and what is not."""

    def test_a_change_beyond_the_spread(self, runs):
        a, b = runs(steps(1.00, 1.01, 0.99), steps(1.20, 1.21, 1.19))
        found = time(compare(a, b))
        assert found.verdict == "changed"
        assert (found.repeats, found.repeats_a, found.repeats_b) == ("steps and ranks", 3, 3)
        # variance 1e-4 on both sides: 4.604 x sqrt(2e-4 / 3)
        assert found.noise == pytest.approx(4.604 * math.sqrt(2e-4 / 3), rel=1e-9)

    def test_a_change_within_the_spread(self, runs):
        a, b = runs(steps(1.0, 1.2, 0.8), steps(1.1, 1.3, 0.9))
        assert time(compare(a, b)).verdict == "within noise"

    def test_two_repeats_claim_nothing(self, runs):
        a, b = runs(steps(1.0, 1.0), steps(2.0, 2.0, 2.0))
        found = compare(a, b)
        assert time(found).verdict == "noise unknown"
        assert time(found).noise is None
        (notice,) = [n for n in found.notices if n.code == "no-repeats"]
        assert "no repeats: noise unknown" in notice.message

    def test_less_than_one_percent_is_never_a_change(self, runs):
        a, b = runs(steps(1.0, 1.0, 1.0), steps(1.009, 1.009, 1.009))
        assert time(compare(a, b)).verdict == "within noise"

    def test_counts_need_no_repeats(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0, "flop_vector_fp32": 1e12}
        a, b = runs([row], [row | {"flop_vector_fp32": 1e12 + 8}])
        assert compare(a, b).totals.changes["flop"].verdict == "changed"

    def test_counts_that_change_from_step_to_step_do(self, runs, nothing):
        rows = [
            nothing | {"name": "k", "step": n, "duration_s": 1.0, "flop_vector_fp32": flop}
            for n, flop in enumerate((1e6, 2e6, 3e6))
        ]
        more = [row | {"flop_vector_fp32": row["flop_vector_fp32"] * 1.1} for row in rows]
        assert compare(*runs(rows, more)).totals.changes["flop"].verdict == "within noise"

    def test_the_order_of_additions_is_no_change(self, runs, nothing):
        rows = [
            nothing | {"name": "k", "flop_vector_fp32": 1e15 / 3, "duration_s": 1} for _ in "abc"
        ]
        whole = [
            rows[0] | {"flop_vector_fp32": 1e15},
            *[r | {"flop_vector_fp32": 0.0} for r in rows[1:]],
        ]
        assert compare(*runs(rows, whole)).totals.changes["flop"].verdict == "same"

    def test_a_clock_that_differs_explains_as_much_time(self, runs):
        a, b = runs(
            steps(1.0, 1.0, 1.0, sm_clock_hz=1.5e9), steps(1.04, 1.04, 1.04, sm_clock_hz=1.41e9)
        )
        found = compare(a, b)
        assert time(found).verdict == "within noise"
        (notice,) = [n for n in found.notices if n.code == "clocks-differ"]
        assert "1.50 GHz, then 1.41 GHz" in notice.message
        c, d = runs(
            steps(1.0, 1.0, 1.0, sm_clock_hz=1.5e9), steps(1.07, 1.07, 1.07, sm_clock_hz=1.41e9)
        )
        assert time(compare(c, d)).verdict == "changed"

    def test_a_step_without_the_kernel_counts_as_zero(self, runs):
        """3 s in one of three steps: 1 s a step, variance 3, and no claim."""
        rare = [*steps(1, 1, 1, name="k"), {"name": "rare", "step": 1, "duration_s": 3.0}]
        more = [*steps(1, 1, 1, name="k"), {"name": "rare", "step": 1, "duration_s": 6.0}]
        row = next(r for r in compare(*runs(rare, more)).rows if r.key == "rare")
        change = row.changes["gpu_time"]
        assert (change.a, change.b) == (1.0, 2.0)
        # variance 3 over 3 and 12 over 3; freedom (1 + 4)^2 / (1 / 2 + 16 / 2) = 2.9
        assert change.noise == pytest.approx(9.925 * math.sqrt(5))
        assert change.verdict == "within noise"

    def test_launches_of_one_shape_stand_in_within_one_step(self, runs):
        def one_step(*times):
            return [{"name": "k", "grid_x": 1, "duration_s": t} for t in times]

        found = compare(*runs(one_step(1.0, 1.01, 0.99), one_step(1.5, 1.51, 1.49)))
        change = found.rows[0].changes["gpu_time"]
        assert (change.verdict, change.repeats) == ("changed", "launches")
        assert (change.repeats_a, change.repeats_b) == (3, 3)
        # each side: 3 launches of variance 1e-4, over the 3 s of the first run
        assert change.noise == pytest.approx(4.604 * math.sqrt(6e-4) / 3)
        # but not for the whole step, whose drift nobody saw
        assert time(found).verdict == "noise unknown"

    def test_launches_of_different_shapes_do_not(self, runs):
        rows = [{"name": "k", "grid_x": n, "duration_s": 1.0} for n in (1, 1, 1, 2)]
        found = compare(*runs(rows, rows))
        assert found.rows[0].changes["gpu_time"].repeats == ""


class TestMatching:
    """Which kernels belong together."""

    def matched(self, a, b):
        return [(r.matched_by, r.names_a, r.names_b) for r in compare(a, b).rows]

    def test_by_name_then_short_name_then_shape(self, runs):
        a, b = runs(
            [
                {"name": "same", "duration_s": 1.0},
                {"name": "void add<float>(int)", "duration_s": 1.0},
                {"name": "ampere_sgemm_128x64_tn", "grid_x": 7, "duration_s": 1.0},
                {"name": "gone", "duration_s": 1.0},
            ],
            [
                {"name": "same", "duration_s": 5.0},
                {"name": "void add<half>(int)", "duration_s": 4.0},
                {"name": "sm80_xmma_gemm_f16", "grid_x": 7, "duration_s": 3.0},
                {"name": "new", "duration_s": 0.5},
            ],
        )
        assert self.matched(a, b) == [
            ("name", ("same",), ("same",)),
            ("short name", ("void add<float>(int)",), ("void add<half>(int)",)),
            ("family and shape", ("ampere_sgemm_128x64_tn",), ("sm80_xmma_gemm_f16",)),
            ("only a", ("gone",), ()),
            ("only b", (), ("new",)),
        ]

    def test_kernels_that_share_a_short_name_are_taken_together(self, runs):
        a, b = runs(
            [{"name": f"void add<{t}>(int)", "duration_s": 1.0} for t in ("float", "int")],
            [{"name": "void add<half>(int)", "duration_s": 1.5}],
        )
        (row,) = compare(a, b).rows
        assert len(row.names_a) == 2
        assert row.changes["gpu_time"].a == 2.0
        assert row.moved_s == -0.5

    def test_other_shapes_or_families_are_no_match(self, runs):
        a, b = runs(
            [{"name": "ampere_sgemm_128x64_tn", "grid_x": 7, "duration_s": 1.0}],
            [
                {"name": "sm80_xmma_gemm_f16", "grid_x": 8, "duration_s": 3.0},
                {"name": "gelu_kernel", "grid_x": 7, "duration_s": 3.0},
            ],
        )
        assert {by for by, *_ in self.matched(a, b)} == {"only a", "only b"}

    def test_without_shapes_none_is_matched_by_them(self, runs):
        a, b = runs(
            [{"name": "ampere_sgemm_128x64_tn", "duration_s": 1.0}],
            [{"name": "sm80_xmma_gemm_f16", "duration_s": 3.0}],
        )
        assert {by for by, *_ in self.matched(a, b)} == {"only a", "only b"}

    def test_what_came_or_went_is_a_fact(self, runs):
        a, b = runs([{"name": "k", "duration_s": 1.0}], [{"name": "m", "duration_s": 1.0}])
        gone, new = sorted(compare(a, b).rows, key=lambda row: row.matched_by)
        assert gone.changes["gpu_time"].relative == -1.0
        assert new.changes["gpu_time"].relative == math.inf
        assert gone.changes["launches"].verdict == new.changes["gpu_time"].verdict == "changed"

    def test_rows_add_up_to_the_totals(self, runs):
        a, b = runs(steps(1, 2, 3, name="x") + steps(1, 1, 1, name="y"), steps(2, 2, 2, name="x"))
        for by in ("kernel", "family", "phase"):
            found = compare(a, b, by=by)
            assert math.fsum(row.moved_s for row in found.rows) == pytest.approx(
                time(found).b - time(found).a
            )

    def test_phases_match_without_regard_to_case(self, runs):
        a, b = runs(
            [{"name": "k", "phase": "Forward", "duration_s": 1.0}],
            [{"name": "m", "phase": "forward", "duration_s": 2.0}],
        )
        (row,) = compare(a, b, by="phase").rows
        assert (row.key, row.changes["gpu_time"].relative) == ("Forward", 1.0)

    def test_families_of_different_programs(self, runs):
        a, b = runs(
            [{"name": "ampere_sgemm_128x64_tn", "duration_s": 1.0}] * 3,
            [{"name": "volta_sgemm_32x32", "duration_s": 2.0}],
        )
        (row,) = compare(a, b, by="family").rows
        assert (row.key, row.moved_s) == ("gemm", -1.0)

    def test_copies_and_nameless_kernels_keep_their_noise(self, runs):
        rows = [
            {"name": name, "kind": kind, "step": n, "duration_s": 1.0 + 0.01 * n}
            for n in range(3)
            for name, kind in (("", "memcpy"), ("", "kernel"), ("g", "graph"))
        ]
        found = compare(*runs(rows, rows))
        assert all(row.changes["gpu_time"].noise is not None for row in found.rows)
        assert len(found.rows) == 3


class TestParts:
    """Phases and ranks of one run."""

    def test_two_phases(self, runs):
        (run,) = runs(
            [
                {"name": "k", "phase": "forward", "duration_s": 1.0},
                {"name": "k", "phase": "backward", "duration_s": 2.0},
            ]
        )
        found = compare(Part(run, phase="forward"), Part(run, phase="backward"))
        assert time(found).relative == 1.0
        assert (found.label_a, found.label_b) == ("a [forward]", "a [backward]")

    def test_two_ranks(self, runs):
        (run,) = runs([{"name": "k", "rank": rank, "duration_s": 1.0 + rank} for rank in (0, 1)])
        found = compare(Part(run, rank=0), Part(run, rank=1))
        assert (time(found).a, time(found).b) == (1.0, 2.0)

    def test_a_phase_that_is_not_there_is_told_with_those_that_are(self, runs):
        (run,) = runs([{"name": "k", "phase": "forward", "duration_s": 1.0}])
        with pytest.raises(UsageError, match="no launches to compare; its phases are forward"):
            compare(Part(run, phase="backwards"), Part(run, phase="forward"))

    def test_an_empty_run(self, runs):
        a, b = runs([], steps(1))
        with pytest.raises(UsageError, match="a holds no launches"):
            compare(a, b)


class TestUnlike:
    """Conditions that must agree."""

    @pytest.mark.parametrize(
        ("one", "other", "told"),
        [
            (
                {"clock_control": "base"},
                {"clock_control": "none"},
                "clock control: base against none",
            ),
            ({"cache_control": "all"}, {"cache_control": "none"}, "cache control"),
            ({"counter_table": "gh100"}, {"counter_table": "ga100"}, "counter table"),
            (
                {"devices": (DeviceFacts(name="NVIDIA H200"),)},
                {"devices": (DeviceFacts(name="NVIDIA H100"),)},
                "GPU: NVIDIA H200 against NVIDIA H100",
            ),
        ],
    )
    def test_they_are_refused_unless_allowed_and_then_told(self, runs, one, other, told):
        a, b = runs(steps(1), steps(1), provenances=(Provenance(**one), Provenance(**other)))
        with pytest.raises(UsageError, match=told) as refused:
            compare(a, b)
        assert "--allow-unlike" in str(refused.value)
        allowed = compare(a, b, allow_unlike=True)
        assert len(allowed.unlike) == 1
        assert any(notice.code == "unlike-runs" for notice in allowed.notices)

    def test_not_recorded_is_no_difference(self, runs):
        a, b = runs(
            steps(1), steps(1), provenances=(Provenance(clock_control="base"), Provenance())
        )
        assert compare(a, b).unlike == ()

    def test_other_formulas_for_a_column_are_told(self, runs):
        def origin(formula):
            return Provenance(definitions={"flop_vector_fp16": Definition(formula)})

        a, b = runs(steps(1), steps(1), provenances=(origin("2 * x"), origin("1 * x")))
        (notice,) = [n for n in compare(a, b).notices if n.code == "other-definitions"]
        assert "flop_vector_fp16" in notice.message
        c, d = runs(steps(1), steps(1), provenances=(origin("2 * x"), origin("2 *\n  x")))
        assert not [n for n in compare(c, d).notices if n.code == "other-definitions"]

    def test_paths_counted_on_one_side_only_are_told(self, runs, nothing):
        row = nothing | {"name": "k", "duration_s": 1.0, "flop_vector_fp32": 1.0}
        a, b = runs([row], [row | {"flop_vector_fp64": None}])
        (notice,) = [n for n in compare(a, b).notices if n.code == "flop-not-alike"]
        assert "counted in b" in notice.message

    def test_rows_that_do_not_exist(self, runs):
        a, b = runs(steps(1), steps(1))
        with pytest.raises(UsageError, match="no rows by 'rank'"):
            compare(a, b, by="rank")
        with pytest.raises(UsageError, match="names"):
            compare(a, b, options=AnalysisOptions(names="short"))


def test_a_run_is_the_same_as_itself(runs, nothing):
    rows = [nothing | r | {"flop_vector_fp32": 3.0, "bytes_dram": 7.0} for r in steps(1, 1.5, 2)]
    found = compare(*runs(rows, rows))
    for row in (found.totals, *found.rows):
        verdicts = {change.verdict for change in row.changes.values() if change.a is not None}
        assert verdicts == {"same"}


def test_values_are_frozen(runs):
    found = compare(*runs(steps(1), steps(1)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.by = "phase"


@pytest.mark.parametrize("by", ["kernel", "family", "phase"])
def test_every_kind_of_row_has_its_noise(runs, by):
    rows = [
        {"name": name, "phase": phase, "step": n, "duration_s": 1.0 + 0.1 * n}
        for n in range(3)
        for name, phase in (("ampere_sgemm_128x64_tn", "forward"), ("gelu_kernel", None))
    ]
    found = compare(*runs(rows, rows), by=by)
    assert len(found.rows) == 2
    # each side: variance 0.01 over 3; 4 degrees of freedom; over the mean of 1.1
    half = 4.604 * math.sqrt(0.02 / 3) / 1.1
    for row in found.rows:
        assert row.changes["gpu_time"].noise == pytest.approx(half)


def test_chance_makes_hardly_any_changes_and_real_ones_are_found(runs):
    """400 kernels of 5 steps and 5 % noise: at 99 % about 4 false alarms; 20 % more is seen."""
    random = np.random.default_rng(20200905)
    names = [f"k{n}" for n in range(400)]

    def made(factor):
        return [
            {"name": name, "step": step, "duration_s": factor * random.normal(1.0, 0.05)}
            for step in range(5)
            for name in names
        ]

    def changed(factor):
        found = compare(*runs(made(1.0), made(factor)))
        return sum(row.changes["gpu_time"].verdict == "changed" for row in found.rows)

    assert changed(1.0) <= 12
    assert changed(1.2) >= 350


STEP = [{"name": "k", "step": 0, "start_s": start, "duration_s": 0.1} for start in (0.0, 0.9)]


def stating(*texts, **more):
    """Origins that state what a step takes without a trace."""
    return [Provenance(extra=({"step_host_s": text} if text else {}) | more) for text in texts]


def test_short_launches_are_unknown_where_a_time_is(runs):
    known = {"name": "k", "duration_s": 1e-6}
    short = compare(*runs([known, known], [known, {"name": "k"}])).totals.changes["short_launches"]
    assert (short.a, short.b, short.verdict) == (2.0, None, "unknown")


class TestSteps:
    """What a step takes: traced, and left alone."""

    def test_the_step_without_a_trace_is_compared_beside_the_traced_one(self, runs):
        found = compare(*runs(STEP, STEP, provenances=stating("0.5", "0.25")))
        alone = found.totals.changes["step_time_untraced"]
        assert (alone.a, alone.b, alone.relative) == (0.5, 0.25, -0.5)
        assert alone.verdict == "noise unknown"
        assert found.totals.changes["step_time"].verdict == "same"
        assert "step-traced" not in {notice.code for notice in found.notices}

    def test_a_run_that_does_not_say_leaves_it_unknown_and_that_is_told(self, runs):
        found = compare(*runs(STEP, STEP, provenances=stating("0.5", "")))
        assert found.totals.changes["step_time_untraced"].verdict == "unknown"
        (said,) = [each.message for each in found.notices if each.code == "step-traced"]
        assert "left alone, a step of a takes 500 ms, and b does not say" in said

    def test_where_neither_run_says_there_is_nothing_to_tell(self, runs):
        found = compare(*runs(STEP, STEP))
        assert found.totals.changes["step_time_untraced"].relative is None
        assert "step-traced" not in {notice.code for notice in found.notices}

    @pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "soon"])
    def test_a_time_that_cannot_be_is_none(self, runs, text):
        found = compare(*runs(STEP, STEP, provenances=stating("0.5", text)))
        assert found.totals.changes["step_time_untraced"].b is None

    def test_of_a_phase_nobody_knows_it(self, runs):
        rows = [row | {"phase": "forward"} for row in STEP]
        a, b = runs(rows, rows, provenances=stating("0.5", "0.25"))
        found = compare(Part(a, phase="forward"), Part(b, phase="forward"))
        assert found.totals.changes["step_time_untraced"].a is None

    def test_files_are_its_repeats(self, tmp_path, write_rows):
        """0.9, 1.0, 1.1 s against 1.9, 2.0, 2.1 s: variances 0.01, 4 degrees of freedom."""
        sides = []
        for side, middle in (("a", 1.0), ("b", 2.0)):
            origins = stating(*(f"{middle + off:.1f}" for off in (-0.1, 0, 0.1)))
            paths = [tmp_path / f"{side}{n}.parquet" for n in range(3)]
            for rank, (path, origin) in enumerate(zip(paths, origins, strict=True)):
                write_rows([row | {"rank": rank} for row in STEP], path, origin)
            sides.append(Run(files=tuple(paths), provenance=tuple(origins), label=side))
        alone = compare(*sides).totals.changes["step_time_untraced"]
        assert (alone.a, alone.b) == (pytest.approx(1.0), pytest.approx(2.0))
        assert (alone.repeats, alone.repeats_a, alone.repeats_b) == ("files", 3, 3)
        assert alone.noise == pytest.approx(4.604 * math.sqrt(0.02 / 3))
        assert alone.verdict == "changed"

    def test_a_rank_has_that_of_its_own_file(self, tmp_path, write_rows):
        origins = [*stating("0.5", rank="0"), *stating("0.75", rank="1")]
        paths = [tmp_path / f"rank{rank}.parquet" for rank in (0, 1)]
        for rank, (path, origin) in enumerate(zip(paths, origins, strict=True)):
            write_rows([row | {"rank": rank} for row in STEP], path, origin)
        run = Run(files=tuple(paths), provenance=tuple(origins), label="run")
        alone = compare(Part(run, rank=0), Part(run, rank=1)).totals.changes["step_time_untraced"]
        assert (alone.a, alone.b) == (0.5, 0.75)


class TestNetwork:
    """Rows by what the framework called."""

    ROWS = (
        {"name": "gemm", "op": "mm", "module": "blocks.0.mix", "duration_s": 1.0},
        {"name": "gemm", "op": "mm", "module": "blocks.1.mix", "duration_s": 2.0},
        {"name": "add", "op": "add", "module": "blocks.1.mix", "duration_s": 0.5},
        {"name": "adam", "op": "adam", "module": None, "duration_s": 0.25},
    )

    def moved(self, runs, by):
        """The second run takes twice as long in blocks.1.mix, and 0.125 s more in adam."""
        faster = [
            self.ROWS[0],
            *(row | {"duration_s": 2 * row["duration_s"]} for row in self.ROWS[1:3]),
        ]
        found = compare(*runs(self.ROWS, [*faster, self.ROWS[3] | {"duration_s": 0.375}]), by=by)
        assert found.by == by
        return [(row.key, row.matched_by, row.moved_s) for row in found.rows]

    def test_modules(self, runs):
        assert self.moved(runs, "module") == [
            ("blocks.1.mix", "name", 2.5),
            (None, "name", 0.125),
            ("blocks.0.mix", "name", 0.0),
        ]

    def test_layers_take_modules_that_are_built_alike_together(self, runs):
        assert self.moved(runs, "layer") == [("blocks.*.mix", "name", 2.5), (None, "name", 0.125)]

    def test_operators(self, runs):
        assert self.moved(runs, "operator") == [
            ("mm", "name", 2.0),
            ("add", "name", 0.5),
            ("adam", "name", 0.125),
        ]

    def test_what_only_one_network_has_is_new_or_gone(self, runs):
        other = [row | {"module": "head"} for row in self.ROWS[:1]]
        found = compare(*runs(self.ROWS[:1], other), by="module")
        assert {(row.key, row.matched_by) for row in found.rows} == {
            ("blocks.0.mix", "only a"),
            ("head", "only b"),
        }

    @pytest.mark.parametrize("by", ["module", "layer", "operator"])
    def test_steps_are_their_repeats(self, runs, by):
        """Both kernels of each step: sums 1.1, 1.0, 1.2 s on each side; 4 degrees of freedom."""
        rows = [
            {"name": name, "op": "mm", "module": "fc", "step": step, "duration_s": each / 2}
            for step, each in enumerate((1.1, 1.0, 1.2))
            for name in ("gemm", "add")
        ]
        (row,) = compare(*runs(rows, rows), by=by).rows
        half = 4.604 * math.sqrt(0.02 / 3) / 1.1
        assert row.changes["gpu_time"].noise == pytest.approx(half)

    @pytest.mark.parametrize("by", ["module", "layer", "operator"])
    def test_the_run_that_names_none_is_told(self, runs, by):
        plain = [{"name": "gemm", "duration_s": 1.0}]
        with pytest.raises(UsageError, match=f"^b names no {by}s: record the program"):
            compare(*runs(self.ROWS, plain), by=by)

    def test_of_two_that_name_none_both_are_told(self, runs):
        plain = [{"name": "gemm", "duration_s": 1.0}]
        with pytest.raises(UsageError, match=r"^a names no layers: .*; b names no layers: "):
            compare(*runs(plain, plain), by="layer")

    def test_all_that_both_runs_name_at_once(self, runs):
        found = comparisons(*runs(self.ROWS, self.ROWS), by="layer")
        assert [each.by for each in found] == [
            "layer", "kernel", "family", "phase", "module", "operator",
        ]  # fmt: skip
        plain = [{"name": "gemm", "duration_s": 1.0}]
        found = comparisons(*runs(self.ROWS, plain))
        assert [each.by for each in found] == ["kernel", "family", "phase"]

    def test_each_of_all_is_as_if_compared_alone(self, runs):
        a, b = runs([row | {"step": n} for n in range(3) for row in self.ROWS], self.ROWS)
        for each in comparisons(a, b):
            assert each == compare(a, b, by=each.by)
