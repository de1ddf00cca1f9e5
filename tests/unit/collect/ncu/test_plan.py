"""Which launches are counted; groups are worked out by hand, totals from a recorded step."""

import csv
import gzip
from math import log

import pytest
from ncu_makers import DATA, in_order

from mansard.collect.ncu.options import Selection
from mansard.collect.ncu.plan import plan_all, plan_by_number, plan_by_time


def launches(*times_us, **changes):
    return in_order(*({"duration_us": time, **changes} for time in times_us))


def groups(plan):
    return sorted(sorted(group) for group in plan.groups)


def test_a_kernel_and_shape_that_takes_two_times_is_counted_twice():
    plan = plan_by_time(launches(100, 300, 101, 310, 305, 99), Selection(sample=1))
    assert groups(plan) == [[0, 2, 5], [1, 3, 4]]
    # The middles of 99, 100, 101 and of 300, 305, 310.
    assert plan.picked == {0, 4}


def test_times_within_fifteen_percent_of_the_shortest_are_alike():
    plan = plan_by_time(launches(100, 114, 116, 133, 134), Selection(sample=1))
    assert groups(plan) == [[0, 1], [2, 3], [4]]


def test_short_launches_may_differ_by_a_microsecond():
    plan = plan_by_time(launches(2.0, 2.9, 3.0, 3.1), Selection(sample=1))
    assert groups(plan) == [[0, 1, 2], [3]]


def test_a_larger_sample_cuts_a_group_into_even_parts():
    plan = plan_by_time(launches(*range(100, 110)), Selection(sample=2))
    assert plan.picked == {2, 7}
    assert plan_by_time(launches(5, 5), Selection(sample=9)).picked == {0, 1}


def test_kernels_shapes_and_shared_memory_are_apart():
    made = in_order(
        {"symbol": "a"},
        {"symbol": "b"},
        {"symbol": "a", "shape": (8, 1, 1, 128, 1, 1)},
        {"symbol": "a", "shared_bytes": 64},
        {"symbol": "a", "process": 78},
        {"symbol": "a"},
        {"kind": "memcpy", "symbol": "", "shape": None, "shared_bytes": None},
    )
    plan = plan_by_time(made, Selection(sample=1))
    assert groups(plan) == [[0, 5], [1], [2], [3], [4]]


def symbol(launch):
    return launch.symbol


def test_ncu_alone_takes_the_same_numbers_of_all_kernels():
    made = in_order(
        {"symbol": "a", "duration_us": 100},
        {"symbol": "a", "duration_us": 101},
        {"symbol": "a", "duration_us": 300},
        {"symbol": "b", "duration_us": 10},
        {"symbol": "b", "duration_us": 10},
        {"symbol": "b", "duration_us": 10},
    )
    plan, numbers = plan_by_number(made, Selection(sample=1), symbol)
    # The first of each, and the third for the longer one of a.
    assert numbers == (1, 3)
    assert plan.picked == {0, 2, 3, 5}
    assert groups(plan) == [[0, 1], [2], [3, 4, 5]]


def test_groups_of_little_time_are_worth_no_number():
    made = launches(1000, 1000, 1000, 5)
    plan, numbers = plan_by_number(made, Selection(sample=1), symbol)
    assert numbers == (1,)
    assert plan.picked == {0}


def test_of_two_numbers_the_one_that_counts_fewer_launches_is_taken():
    # Numbers 2 and 4 both reach the longer launches of a; b has two launches.
    made = in_order(
        *({"symbol": "a", "duration_us": time} for time in (10, 90, 10, 90)),
        *({"symbol": "b"} for _ in range(2)),
    )
    assert plan_by_number(made, Selection(sample=1), symbol)[1] == (1, 4)


def test_instances_of_a_template_share_their_numbers_where_ncu_knows_the_function_alone():
    made = in_order({"symbol": "f<1>"}, {"symbol": "f<2>"}, {"symbol": "f<2>"})
    assert plan_by_number(made, Selection(sample=1), symbol)[0].picked == {0, 1}
    plan, numbers = plan_by_number(made, Selection(sample=1), lambda launch: "f")
    assert (plan.picked, numbers) == ({0, 1}, (1, 2))


def test_collectives_take_no_part_in_the_numbers():
    made = in_order(
        {"symbol": "nccl", "name": "ncclAllReduce", "duration_us": 900},
        {"symbol": "nccl", "name": "ncclAllReduce", "duration_us": 9},
        {"symbol": "a"},
    )
    plan, numbers = plan_by_number(made, Selection(sample=1), symbol)
    assert (plan.picked, numbers) == ({2}, (1,))


def test_a_full_run_counts_every_kernel():
    assert plan_all(launches(1, 2, 3)).picked == {0, 1, 2}


def test_collectives_are_left_out_unless_they_are_asked_for():
    made = in_order({"symbol": "ncclDevKernel_AllReduce", "name": "ncclDevKernel_AllReduce"}, {})
    assert plan_by_time(made, Selection(sample=1)).picked == {1}
    assert plan_by_time(made, Selection(sample=1, collectives=True)).picked == {0, 1}
    named = Selection(sample=1, kernel_name="ncclDevKernel_AllReduce")
    assert plan_by_time(made, named).picked == {0, 1}


@pytest.fixture(scope="module")
def step():
    """A recorded step: its launches, and of each FLOP and the bytes of L1, L2 and DRAM."""
    with gzip.open(DATA / "ncu_plan" / "step.csv.gz", "rt") as file:
        rows = [[int(value) for value in row] for row in list(csv.reader(file))[1:]]
    made = in_order(*({"symbol": str(row[0]), "duration_us": row[1] / 1000} for row in rows))
    return made, [row[2:] for row in rows]


def errors(step, picked):
    """Totals made of the picked launches, over the true ones, less 1."""
    made, values = step
    times = [launch.end_ns - launch.start_ns for launch in made]
    near = {}
    for at in sorted(picked):
        near.setdefault(made[at].symbol, []).append(at)
    source = [
        at
        if at in picked
        else min(near[made[at].symbol], key=lambda other, at=at: abs(log(times[at] / times[other])))
        for at in range(len(made))
    ]
    return [
        sum(values[at][column] for at in source) / sum(row[column] for row in values) - 1
        for column in range(4)
    ]


def test_a_step_is_known_from_a_quarter_of_its_launches_chosen_by_time(step):
    picked = plan_by_time(step[0], Selection(sample=1)).picked
    assert len(picked) == 315
    flop, l1, l2, dram = errors(step, picked)
    assert abs(flop) < 0.001
    assert max(abs(l1), abs(l2)) < 0.0025
    assert abs(dram) < 0.01


def test_a_step_is_known_from_half_of_its_launches_chosen_by_number(step):
    plan, numbers = plan_by_number(step[0], Selection(sample=1), symbol)
    assert numbers == (1, 2, 4, 7, 8, 21, 22, 26)
    assert len(plan.picked) == 606
    flop, l1, l2, dram = errors(step, plan.picked)
    assert max(map(abs, (flop, l1, l2, dram))) < 0.01


def test_the_first_launch_of_each_kernel_and_shape_does_not_tell_the_step(step):
    first = {}
    for at, launch in enumerate(step[0]):
        first.setdefault(launch.symbol, at)
    flop, *_, dram = errors(step, {*first.values()})
    assert flop > 0.05
    assert dram > 0.5
