"""Ranks side by side, on launches small enough to work out by hand."""

import dataclasses

import numpy as np
import pytest

from mansard.analysis import analyze, robust
from mansard.analysis.parts import Part
from mansard.model.fleet import RankTime

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def _launch(rank, number, *, name="gemm", duration_s=1e-3, **more):
    return {"rank": rank, "launch": number, "name": name, "duration_s": duration_s, **more}


def _ranks(count, change=None, **each):
    """Ranks that run one kernel twice; ``change`` gives what differs for a rank."""
    rows = []
    for rank in range(count):
        # A little spread, in hundredths of a percent, the same on every run of the test.
        usual = {"duration_s": 1e-3 * (1 + 1e-4 * (rank % 5)), **each}
        rows += [_launch(rank, n, **{**usual, **(change or {}).get(rank, {})}) for n in range(2)]
    return rows


def test_one_rank_is_no_fleet(make_run):
    assert analyze(make_run(_launch(0, 0))).fleet is None
    assert analyze(make_run(_launch(None, 0), _launch(0, 1))).fleet is None


def test_the_spread_is_of_the_compute_time_without_collectives(make_run):
    rows = [_launch(r, 0, duration_s=d) for r, d in enumerate((1e-3, 2e-3, 6e-3))]
    rows += [_launch(r, 1, name=REDUCE, duration_s=1.0) for r in range(3)]
    found = analyze(make_run(*rows)).fleet
    assert (found.compute.least, found.compute.median, found.compute.most) == (1e-3, 2e-3, 6e-3)
    assert [rank.ratio for rank in found.ranks] == pytest.approx([0.5, 1.0, 3.0])
    assert found.ranks[0].collective_s == pytest.approx(1.0)


def test_seven_ranks_are_too_few_to_call_one_slow_and_the_report_says_so(make_run):
    found = analyze(make_run(*_ranks(7, {3: {"duration_s": 2e-3}}))).fleet
    assert found.stragglers == ()
    assert "7 ranks are too few" in found.unjudged


def test_a_slow_rank_is_found_with_its_excess_and_kernel(make_run):
    found = analyze(make_run(*_ranks(16, {3: {"duration_s": 1.5e-3}}))).fleet
    (slow,) = found.stragglers
    assert slow.rank == 3
    assert slow.cause == "slower"
    # Two launches of 1.5 ms; the median rank takes 2 x 1.0002 ms.
    assert slow.excess_s == pytest.approx(3e-3 - 2.0004e-3)
    assert [kernel.key for kernel in slow.kernels] == ["gemm"]
    assert slow.kernels[0].ratio == pytest.approx(1.5 / 1.0002)


def test_a_fast_rank_is_no_straggler(make_run):
    found = analyze(make_run(*_ranks(16, {3: {"duration_s": 0.5e-3}}))).fleet
    assert found.stragglers == ()
    assert found.unjudged is None


def test_a_rank_with_more_launches_has_more_work(make_run):
    rows = [*_ranks(16), _launch(5, 2), _launch(5, 3)]
    (slow,) = analyze(make_run(*rows)).fleet.stragglers
    assert (slow.rank, slow.cause) == (5, "more work")
    assert slow.counts["launches"] == 2


def test_a_rank_that_counts_more_flop_has_more_work(make_run):
    rows = _ranks(16, {5: {"duration_s": 2e-3, "flop_vector_fp32": 2e6}}, flop_vector_fp32=1e6)
    (slow,) = analyze(make_run(*rows)).fleet.stragglers
    assert slow.cause == "more work"
    assert slow.counts["flop"] == pytest.approx(2)


def test_a_rank_at_a_lower_clock_is_told_apart(make_run):
    change = {5: {"duration_s": 1.25e-3, "sm_clock_hz": 1.2e9}}
    (slow,) = analyze(make_run(*_ranks(16, change, sm_clock_hz=1.5e9))).fleet.stragglers
    assert slow.cause == "lower clock"
    assert slow.counts["sm_clock_hz"] == pytest.approx(0.8)


def test_a_rank_whose_memory_is_slow_is_slower_at_dram(make_run, machine, nothing):
    rows = []
    for rank in range(16):
        usual = 1 + 1e-4 * (rank % 5)
        # 1e9 FLOP take 1 ms at 1 TFLOP/s; 20 MB take 2 ms at 10 GB/s.
        compute = {**nothing, "flop_vector_fp32": 1e9}
        memory = {**nothing, "bytes_dram": 20e6}
        slower = 1.4 if rank == 9 else 1.0
        rows += [
            _launch(rank, 0, name="gemm", duration_s=2e-3 * usual, **compute),
            _launch(rank, 1, name="copy_it", duration_s=3e-3 * usual * slower, **memory),
        ]
    (slow,) = analyze(make_run(*rows), machine).fleet.stragglers
    assert (slow.rank, slow.cause) == (9, "slower at dram")
    assert slow.by_bound["dram"] == pytest.approx(1.4, rel=1e-3)
    assert slow.by_bound["vector"] == pytest.approx(1.0, rel=1e-3)
    assert (slow.kernels[0].key, slow.kernels[0].bound) == ("copy_it", "dram")


def test_a_rank_slower_at_everything_is_not_blamed_on_its_main_resource(make_run, machine, nothing):
    rows = []
    for rank in range(16):
        usual = (1 + 1e-4 * (rank % 5)) * (1.4 if rank == 9 else 1.0)
        rows += [
            _launch(rank, 0, duration_s=2e-3 * usual, **{**nothing, "flop_vector_fp32": 1e9}),
            _launch(
                rank, 1, name="copy_it", duration_s=9e-3 * usual, **{**nothing, "bytes_dram": 20e6}
            ),
        ]
    (slow,) = analyze(make_run(*rows), machine).fleet.stragglers
    assert slow.cause == "slower"


def test_without_a_machine_the_fleet_says_that_no_level_can_be_named(make_run):
    found = analyze(make_run(*_ranks(16, {3: {"duration_s": 1.5e-3}}))).fleet
    assert found.stragglers[0].by_bound == {}
    assert any("needs a machine" in gap for gap in found.gaps)


def test_a_slow_node_is_named_when_hosts_are_known(make_run):
    slow = {rank: {"duration_s": 1.2e-3} for rank in (6, 7)}
    rows = [{**row, "host": f"node{row['rank'] // 2}"} for row in _ranks(32, slow)]
    nodes = analyze(make_run(*rows)).fleet.nodes
    assert [node.host for node in nodes if node.slow] == ["node3"]
    assert (nodes[0].ranks, nodes[0].stragglers) == (2, 2)


def test_without_hosts_there_are_no_nodes_and_the_fleet_says_so(make_run):
    found = analyze(make_run(*_ranks(16))).fleet
    assert found.nodes == ()
    assert any("host" in gap for gap in found.gaps)


def test_imbalance_is_the_slowest_rank_over_the_mean(make_run):
    times = {"forward": (1e-3, 1e-3, 4e-3), "backward": (2e-3, 2e-3, 2e-3)}
    rows = [
        _launch(rank, place, phase=phase, duration_s=duration_s)
        for place, (phase, each) in enumerate(times.items())
        for rank, duration_s in enumerate(each)
    ]
    forward, backward = analyze(make_run(*rows)).fleet.phases
    assert (forward.phase, forward.slowest, forward.mean_s) == ("forward", 2, pytest.approx(2e-3))
    assert forward.share == pytest.approx(1.0)  # 4 ms over a mean of 2 ms
    assert backward.share == pytest.approx(0.0)


def test_moving_is_the_least_time_of_a_call_and_the_rest_is_waiting(make_run):
    # First call: the data take 1 ms, rank 1 waits 2 ms. Second: 2 ms, rank 0 waits 1 ms.
    times = {0: (1e-3, 3e-3), 1: (3e-3, 2e-3)}
    rows = [
        _launch(rank, n, name=REDUCE, duration_s=duration_s)
        for rank, each in times.items()
        for n, duration_s in enumerate(each)
    ]
    found = analyze(make_run(*rows)).fleet
    (reduce,) = found.collectives
    assert (reduce.calls, reduce.ranks, reduce.unmatched_s) == (2, 2, 0)
    assert reduce.moving_s == pytest.approx(2 * 1e-3 + 2 * 2e-3)
    assert reduce.waiting_s == pytest.approx(2e-3 + 1e-3)
    assert [rank.last_share for rank in found.ranks] == [0.5, 0.5]


def test_calls_are_matched_within_their_step_in_launch_order(make_run):
    rows = [
        _launch(rank, n, step=step, name=REDUCE, duration_s=(step + 1) * 1e-3)
        for rank in range(2)
        for n, step in enumerate((0, 1, 1))
    ]
    (reduce,) = analyze(make_run(*rows)).fleet.collectives
    assert reduce.calls == 3
    assert reduce.waiting_s == pytest.approx(0, abs=1e-12)


def test_a_call_that_a_rank_did_not_record_is_not_matched(make_run):
    rows = [_launch(rank, 0, name=REDUCE, duration_s=1e-3) for rank in range(3)]
    rows += [_launch(rank, 1, name=REDUCE, duration_s=5e-3) for rank in range(2)]
    (reduce,) = analyze(make_run(*rows)).fleet.collectives
    assert reduce.calls == 1
    assert reduce.unmatched_s == pytest.approx(10e-3)


def test_exposed_communication_leaves_out_what_computing_covers(make_run):
    rows = []
    for rank in range(2):
        rows += [
            _launch(rank, 0, stream=7, start_s=0.0, duration_s=4.0),
            # From 3 to 6: one second under the first kernel, half a second under the next.
            _launch(rank, 1, stream=13, name=REDUCE, start_s=3.0, duration_s=3.0),
            _launch(rank, 2, stream=7, start_s=5.5, duration_s=1.0),
        ]
    found = analyze(make_run(*rows)).fleet
    assert [rank.exposed_s for rank in found.ranks] == pytest.approx([1.5, 1.5])
    assert found.exposed_s == pytest.approx(3.0)


def test_without_start_times_exposed_communication_is_unknown_and_said(make_run):
    rows = [_launch(rank, 0, name=REDUCE) for rank in range(2)]
    found = analyze(make_run(*rows)).fleet
    assert found.exposed_s is None
    assert any("start_s" in gap for gap in found.gaps)


def test_a_run_without_collectives_says_so(make_run):
    found = analyze(make_run(*_ranks(8))).fleet
    assert found.collectives == ()
    assert found.ranks[0].last_share is None
    assert any("no collectives" in gap for gap in found.gaps)


def test_a_part_of_a_run_has_its_own_fleet(make_run):
    rows = [_launch(r, n, phase="ab"[n]) for r in range(9) for n in range(2)]
    whole = make_run(*rows)
    assert analyze(Part(whole, phase="a")).fleet.ranks[0].launches == 1
    assert analyze(Part(whole, rank=3)).fleet is None


def _alarms(ranks, seed, slow=None):
    """Ranks that the rule calls slow, among ranks with log-normal noise."""
    noise = np.random.default_rng(seed)
    compute = 0.5 * np.exp(0.01 * noise.normal(size=ranks))
    if slow is not None:
        compute[slow] *= 1.15
    among = robust.spread(list(compute))
    return [rank for rank in range(ranks) if robust.stands_out(compute[rank], among)]


@pytest.mark.parametrize("ranks", [8, 64, 512, 4096])
def test_no_false_alarm_in_100_clean_fleets(ranks):
    assert [alarm for seed in range(100) for alarm in _alarms(ranks, seed)] == []


@pytest.mark.parametrize("ranks", [32, 512, 4096])
def test_a_rank_that_is_15_percent_slower_is_found_in_every_fleet(ranks):
    assert all(_alarms(ranks, seed, slow=seed) == [seed] for seed in range(20))


def test_fleet_values_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RankTime(
            rank=0,
            host=None,
            launches=1,
            duration_s=1,
            compute_s=1,
            collective_s=0,
            ratio=None,
            score=None,
        ).rank = 1
