"""The shipped counter tables as data: consistent, without double counting, and on their page."""

import csv
import itertools
from pathlib import Path

import pytest

from mansard.counters.page import counters_page
from mansard.counters.table import tables

ROOT = Path(__file__).parents[2]
AUTHORS = ROOT / "../shared/data/paper"


def test_no_formula_adds_a_total_and_its_part():
    for table in tables():
        for alternatives in table.quantities.values():
            for each in alternatives:
                bases = [counter.split(".")[0] for counter in each.formula.counters]
                for one, other in itertools.permutations(bases, 2):
                    assert not other.startswith(f"{one}_"), (table.name, each.formula.text)


def test_no_two_tensor_paths_of_a_chip_count_the_same_counter():
    for table in tables():
        users: dict[str, set[str]] = {}
        for column, alternatives in table.quantities.items():
            if "tensor" in column:
                for counter in {c for each in alternatives for c in each.formula.counters}:
                    users.setdefault(counter, set()).add(column)
        assert {counter: c for counter, c in users.items() if len(c) > 1} == {}


def test_no_way_to_make_a_column_stands_twice():
    for table in tables():
        for column, alternatives in table.quantities.items():
            texts = [(each.formula.text, each.half_weights) for each in alternatives]
            assert len(texts) == len(set(texts)), (table.name, column)


def test_512_operations_per_tensor_instruction_hold_for_volta_alone():
    users = {
        table.name
        for table in tables()
        for alternatives in table.quantities.values()
        for each in alternatives
        if any("inst_executed_pipe" in counter for counter in each.formula.counters)
    }
    assert users == {"paper-volta"}


def test_a_chip_stands_in_one_table():
    chips = [chip for table in tables() for chip in table.chips]
    assert len(chips) == len(set(chips))
    assert all(chip == chip.upper() for chip in chips)


def test_meanings_and_notices_are_sentences():
    for table in tables():
        for alternatives in table.quantities.values():
            for each in alternatives:
                assert each.meaning.strip()
                assert not each.meaning.endswith(".")
                if each.notice is not None:
                    assert each.notice.message.endswith(".")
        assert all(notice.message.endswith(".") for notice in table.unavailable.values())


def test_the_page_is_current():
    page = (ROOT / "docs/counters.md").read_text(encoding="utf-8")
    assert page == counters_page(), "run: python -m mansard.counters > docs/counters.md"


@pytest.mark.skipif(
    not AUTHORS.is_dir(), reason="the authors' own tables are not beside the project"
)
def test_the_paper_table_reproduces_every_kernel_of_the_authors():
    table = next(each for each in tables() if each.name == "paper-volta")
    best = {
        column: table.alternatives(column, table.half_weights)[0].formula
        for column in table.quantities
    }
    compared = 0
    for path in sorted(AUTHORS.glob("*/authors-table.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                values = {name: float(v) for name, v in row.items() if "__" in name and "." in name}
                vector = best["flop_vector_fp32"].evaluate(values)
                vector += best["flop_vector_fp16"].evaluate(values)
                tensor = best["flop_tensor_fp16"].evaluate(values)
                assert vector == float(row["CC FLOPs"])
                assert tensor == float(row["TC FLOPs"])
                for title, column in (
                    ("L1", "bytes_l1"),
                    ("L2", "bytes_l2"),
                    ("HBM", "bytes_dram"),
                ):
                    moved = best[column].evaluate(values)
                    if moved:
                        intensity = (vector + tensor) / moved
                        assert intensity == pytest.approx(float(row[f"AI {title}"]), rel=1e-12)
                seconds = best["duration_s"].evaluate(values) * float(row["Count"])
                assert seconds == pytest.approx(float(row["Time"]), rel=1e-12)
                compared += 1
    assert compared == 102
