"""Counters in groups of one pass, and when a run of the program for each pays."""

import pytest

from mansard.collect.ncu import passes
from mansard.collect.ncu.passes import groups_for, integer_counters, one_pass_groups, runs_pay
from mansard.counters.table import table_for
from mansard.errors import DeviceError

HOPPER = table_for(chip="GH100")


def by_room(rooms):
    """Passes where counters of one letter share a room of that size."""

    def count(counters):
        letters = {counter[0] for counter in counters}
        needed = [-(-sum(c[0] == letter for c in counters) // rooms[letter]) for letter in letters]
        return max(needed)

    return count


def test_each_counter_joins_the_first_group_with_which_it_fits_one_pass():
    groups, homeless = one_pass_groups(
        ("a1", "a2", "a3", "b1", "b2"), (), by_room({"a": 2, "b": 1})
    )
    assert groups == [("a1", "a2", "b1"), ("a3", "b2")]
    assert homeless == ()


def test_a_counter_of_little_use_opens_no_group():
    groups, homeless = one_pass_groups(
        ("b1", "a1", "a2", "b2"), ("b1", "b2"), by_room({"a": 1, "b": 1})
    )
    assert groups == [("a1", "b1"), ("a2", "b2")]
    groups, homeless = one_pass_groups(("a1", "a2"), ("a2",), by_room({"a": 1}))
    assert (groups, homeless) == ([("a1",)], ("a2",))


def test_counters_of_integer_work_alone_are_known():
    found = integer_counters(HOPPER)
    assert any("int8" in counter for counter in found)
    assert not any("bf16" in counter or "dram" in counter for counter in found)


def test_without_cupti_nothing_is_known(monkeypatch):
    def fail():
        raise DeviceError("no CUPTI")

    monkeypatch.setattr(passes, "load_cupti", fail)
    assert groups_for(HOPPER, ("dram__bytes.sum",)) is None


@pytest.mark.parametrize(
    ("groups", "launches", "program_s", "pay"),
    [
        # Two more runs of 8.5 + 1.4 s against 250 launches of 0.1 s less.
        (3, 250, 8.5, True),
        # A program of a minute.
        (3, 250, 60.0, False),
        # A few launches.
        (3, 7, 0.2, False),
        (1, 1, 1000.0, True),
    ],
)
def test_a_run_for_each_group_pays_where_the_program_is_short(groups, launches, program_s, pay):
    assert runs_pay(groups, launches, program_s) is pay
