"""When the GPU was busy, idle, or only communicating, from start times."""

import pytest

from mansard.analysis import analyze

LAUNCH = {"name": "k", "step": 0, "rank": 0, "device": 0}


def launch(start_s, duration_s, **more):
    return LAUNCH | {"start_s": start_s, "duration_s": duration_s} | more


def test_a_run_without_start_times_has_no_timeline(make_run):
    assert analyze(make_run({"name": "k", "duration_s": 1.0})).timeline is None


def test_one_launch_without_a_start_or_time_leaves_the_timeline_unknown(make_run):
    assert analyze(make_run(launch(0, 1), launch(None, 1))).timeline is None
    assert analyze(make_run(launch(0, 1), launch(1, None))).timeline is None


def test_gaps_are_what_no_launch_covers(make_run):
    """0-1, 3-4 and 4.5-6: gaps of 2 and 0.5 s in 6 s."""
    found = analyze(make_run(launch(3, 1), launch(0, 1), launch(4.5, 1.5, name="late"))).timeline
    assert (found.elapsed_s, found.busy_s, found.gaps) == (6.0, 3.5, 2)
    assert found.longest_gap_s == 2.0
    assert found.longest_gap_before == "k"
    assert found.collective_only_s == 0.0


def test_launches_side_by_side_are_busy_once(make_run):
    """0-10 covers 1-2 and 3-5; the next starts at 10."""
    found = analyze(make_run(launch(0, 10), launch(1, 1), launch(3, 2), launch(10, 1))).timeline
    assert (found.elapsed_s, found.busy_s, found.gaps) == (11.0, 11.0, 0)
    assert found.longest_gap_before is None


def test_time_between_steps_and_ranks_is_not_a_gap(make_run):
    rows = [
        launch(100.0 * step + 7 * rank, 1, step=step, rank=rank)
        for step in (0, 1)
        for rank in (0, 1)
    ]
    found = analyze(make_run(*rows)).timeline
    assert (found.steps, found.elapsed_s, found.busy_s, found.gaps) == (4, 4.0, 4.0, 0)


def test_only_the_part_of_a_collective_that_nothing_covers_is_exposed(make_run):
    """All-reduce 1-5 beside a kernel 0-3: alone from 3 to 5."""
    nccl = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    found = analyze(make_run(launch(0, 3), launch(1, 4, name=nccl, stream=2))).timeline
    assert found.busy_s == 5.0
    assert found.collective_only_s == 2.0


def test_the_timeline_and_the_ranks_give_one_number_for_exposed_communication(make_run):
    """Rank 0 alone for 2 s and 1 s, rank 1 for 0.5 s; a step whose sums round below zero."""
    nccl = {"name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "stream": 2}
    rows = []
    for rank, begins in ((0, (3.0, 4.0)), (1, (4.5, 9.0))):
        for step, begin in enumerate(begins):
            where = {"rank": rank, "step": step}
            rows.append(launch(0.0, begin, **where))
            rows.append(launch(1.0, 4.0, **where, **nccl))
        # 0.1 * 3 + 0.1 is not 0.4 in binary
        rows += [launch(n * 0.1, 0.1, rank=rank, step=2) for n in range(10)]
        rows.append(launch(0.0, 0.9, rank=rank, step=2, **nccl))
    found = analyze(make_run(*rows))
    assert found.timeline.collective_only_s == found.fleet.exposed_s
    assert found.fleet.exposed_s == pytest.approx(3.5)
    assert [rank.exposed_s for rank in found.fleet.ranks] == pytest.approx([3.0, 0.5])


def test_rounding_of_nanoseconds_makes_no_gaps(make_run):
    rows = [launch(n * 0.1, 0.1) for n in range(50)]  # 0.1 * 3 + 0.1 is not 0.4 in binary
    assert analyze(make_run(*rows)).timeline.gaps == 0


def test_long_runs_are_judged_by_their_first_steps(make_run):
    from mansard import engine
    from mansard.analysis.cube import Plan, build
    from mansard.analysis.launches import launches
    from mansard.analysis.options import AnalysisOptions
    from mansard.analysis.timeline import timeline

    run = make_run(*[launch(10.0 * step + n, 1, step=step) for step in range(5) for n in range(4)])
    with engine.connect(threads=1) as connection:
        found = launches(connection, run)
        build(connection, Plan(found, (), frozenset(), AnalysisOptions()))
        assert timeline(connection, found, most=9).steps == 2
        assert timeline(connection, found, most=1).steps == 1
        assert timeline(connection, found).steps == 5
