"""A machine as rows of text."""

from mansard.bench.rows import footnotes, rows_of
from mansard.model.machine import Ceiling, Machine


def rows(*ceilings):
    return rows_of(Machine(name="m", basis="measured", ceilings=ceilings))


def test_a_compute_ceiling_shows_rate_share_and_clock():
    (row,) = rows(
        Ceiling(
            kind="compute",
            value=1.07e15,
            unit="flop/s",
            path="tensor bf16",
            instruction="wgmma",
            arm="low-toggle",
            sm_clock_hz=1.98e9,
            share_of_limit=0.9988,
        )
    )
    assert (row.section, row.what, row.how, row.data) == (
        "Compute",
        "tensor bf16",
        "wgmma",
        "zeros",
    )
    assert (row.value, row.share, row.clock) == ("1.07 PFLOP/s", "99.9 %", "1.98")


def test_integer_paths_count_operations():
    (row,) = rows(Ceiling(kind="compute", value=2e15, unit="flop/s", path="tensor int8"))
    assert row.value == "2.00 POP/s"


def test_compute_comes_first_and_launches_last():
    found = rows(
        Ceiling(kind="launch", value=1e-6, unit="s", access="stream"),
        Ceiling(kind="bandwidth", value=1e12, unit="byte/s", level="l2", access="read"),
        Ceiling(kind="compute", value=1e12, unit="flop/s", path="vector fp64"),
    )
    assert [row.section for row in found] == ["Compute", "Bandwidth", "Launch"]
    assert [row.what for row in found] == ["vector fp64", "l2 read", "stream"]


def test_a_refused_ceiling_says_so_and_has_no_number():
    (row,) = rows(
        Ceiling(
            kind="compute",
            value=None,
            unit="flop/s",
            status="refused",
            path="tensor fp8",
            reason="emulated",
        )
    )
    assert (row.value, row.share, row.reason) == ("refused", "", "emulated")


def tensor(instruction, share, arm="low-toggle", path="tensor bf16", reason=None):
    return Ceiling(
        kind="compute", unit="flop/s", value=share * 1e15, limit_at_clock=1e15, path=path,
        share_of_limit=share, instruction=instruction, arm=arm, reason=reason,
    )  # fmt: skip


def test_an_instruction_that_leaves_room_in_a_pipe_that_another_fills_says_so():
    found = rows(
        tensor("mma.sync", 0.666), tensor("mma.sync fp16-acc", 0.66, reason="held"),
        tensor("wgmma", 0.999), tensor("library", 0.8),
    )  # fmt: skip
    told = "the limit is that of the tensor pipe: wgmma reaches it here, mma.sync does not"
    assert [row.reason for row in found] == [told, f"{told}; held", None, None]


def test_where_nothing_fills_the_pipe_no_instruction_is_blamed():
    found = rows(
        tensor("mma.sync", 0.666), tensor("library", 0.99), tensor("wgmma", 0.999, arm="random"),
        tensor("wgmma", 0.999, path="tensor fp16"),
    )  # fmt: skip
    assert [row.reason for row in found] == [None] * 4


def test_an_instruction_without_letters_is_no_fault():
    assert rows(tensor(" ", 0.5), tensor("wgmma", 0.99))[0].reason.endswith(
        "wgmma reaches it here, another instruction does not"
    )


def test_a_reason_that_many_share_is_one_footnote():
    made = [
        Ceiling(kind="compute", value=1.0, unit="flop/s", path=path, reason=reason)
        for path, reason in (("a", "x"), ("b", "y"), ("c", "x"))
    ]
    assert footnotes(rows(*made)) == {"x": 1, "y": 2}
