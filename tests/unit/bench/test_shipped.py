"""The machine that was measured and comes along, and the page that shows it.

Run this file to rewrite the table of the page.
"""

import itertools
import re
import sys
from pathlib import Path

import pytest

from mansard.bench.rows import rows_of
from mansard.store import load_machine

PAGE = Path(__file__).parents[3] / "docs" / "bench.md"
BLOCK = re.compile(r"(<!-- h200:begin[^\n]*-->\n).*?(<!-- h200:end -->)", re.DOTALL)


@pytest.fixture(scope="module")
def h200():
    return load_machine("h200-sxm")


def with_table(text):
    rows = [
        "| ceiling | how | data | value | of limit | SM clock, GHz |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows_of(load_machine("h200-sxm")):
        name = f"launch, {row.what}" if row.section == "Launch" else row.what
        name = f"{row.what} latency" if row.section == "Latency" else name
        rows.append(
            f"| {name} | {row.how} | {row.data} | {row.value} | {row.share} | {row.clock} |"
        )
    return BLOCK.sub(lambda match: match[1] + "\n".join(rows) + "\n" + match[2], text)


def share(machine, path=None, instruction=None, level=None, access=None):
    """Best share over the arms, at the clock of the slowest SM: equal work ends with that one."""
    return max(
        c.evidence.get("share_at_slowest_sm")
        or c.share_of_limit / (1 - c.evidence.get("sm_clock_spread", 0.0))
        for c in machine.ceilings
        if (c.path, c.level) == (path, level)
        and c.instruction == (instruction or c.instruction)
        and c.access == access
        and c.share_of_limit is not None
    )


def test_the_page_shows_the_machine_that_comes_along():
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, f"run: python {Path(__file__).name}"


def test_nothing_is_above_its_limit(h200):
    assert max(c.share_of_limit or 0 for c in h200.ceilings) <= 1.0


@pytest.mark.parametrize(
    ("what", "least"),
    [
        ({"path": "vector fp64"}, 0.988),
        ({"path": "vector fp32", "instruction": "fma"}, 0.988),
        ({"path": "vector fp16"}, 0.988),
        ({"path": "vector bf16"}, 0.988),
        ({"path": "vector int32"}, 0.988),
        ({"path": "tensor fp64", "instruction": "mma.sync"}, 0.998),
        ({"path": "tensor tf32", "instruction": "wgmma"}, 0.998),
        ({"path": "tensor fp16", "instruction": "wgmma"}, 0.998),
        ({"path": "tensor fp16", "instruction": "wgmma fp16-acc"}, 0.998),
        ({"path": "tensor bf16", "instruction": "wgmma"}, 0.998),
        ({"path": "tensor fp8", "instruction": "wgmma"}, 0.998),
        ({"path": "tensor int8", "instruction": "wgmma"}, 0.998),
        ({"level": "l1", "access": "read"}, 0.994),
        ({"level": "shared", "access": "read"}, 0.994),
        ({"level": "dram", "access": "read"}, 0.958),
        ({"level": "dram", "access": "write"}, 0.970),
        ({"level": "dram", "access": "copy"}, 0.890),
        ({"level": "link", "access": "read", "instruction": "NVLink"}, 0.85),
        ({"level": "link", "access": "copy", "instruction": "NVLink"}, 0.85),
    ],
)
def test_each_ceiling_is_as_near_to_its_limit_as_hand_tuned_code(h200, what, least):
    assert share(h200, **what) >= least


def test_every_ceiling_has_all_its_samples_and_every_kernel_was_checked(h200):
    for ceiling in h200.ceilings:
        if ceiling.status == "refused":
            continue
        assert len(ceiling.samples) == 20
        if ceiling.kind == "compute":
            assert "equals the CPU's" in ceiling.evidence["result"]
            if ceiling.instruction != "library":
                assert "in the loop" in ceiling.evidence["machine_code"]
                ridges = ceiling.evidence["ridge_flop_per_byte"].values()
                assert ceiling.evidence["flop_per_byte"] >= 4 * max(ridges)


def test_both_arms_are_there(h200):
    for path in ("vector fp64", "tensor bf16", "tensor fp8"):
        assert {c.arm for c in h200.ceilings if c.path == path} == {"low-toggle", "random"}


def test_the_emulated_instruction_is_refused(h200):
    emulated = [c for c in h200.ceilings if (c.path, c.instruction) == ("tensor fp8", "mma.sync")]
    assert {c.status for c in emulated} == {"refused"}


def test_levels_and_ways_stand_in_the_order_of_the_hardware(h200):
    rates = [h200.bandwidth(level).value for level in ("shared", "l1", "l2", "dram", "link")]
    assert all(near > far for near, far in itertools.pairwise(rates))
    # At equal clock: the power limit takes more from a product that also moves its operands.
    best = {
        how: max(
            c.value / c.sm_clock_hz
            for c in h200.ceilings
            if c.path == "tensor bf16" and c.instruction == how and c.value
        )
        for how in ("wgmma", "library", "mma.sync")
    }
    assert best["wgmma"] > best["library"] > best["mma.sync"]


def test_the_empirical_curve_meets_both_roofs(h200):
    curve = h200.curves["intensity vector fp64 dram"]
    place = {name: index for index, name in enumerate(curve["columns"])}
    first, last = curve["rows"][0], curve["rows"][-1]
    assert first[place["flop_per_byte"]] == 1 / 16
    assert first[place["byte_per_s"]] > 0.95 * h200.bandwidth("dram").value
    assert last[place["flop_per_s"]] > 0.95 * h200.compute("vector fp64").value


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"rewrote {PAGE.name}\n")
