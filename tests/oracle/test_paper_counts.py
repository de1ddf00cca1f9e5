"""The raw recordings of the study's authors, against the tables that they made of them.

Twelve runs per configuration, one metric each (V100, DeepCAM; data of arXiv 2009.05257). The
tables give, per kernel name, the number of launches and the sum of each counter.
"""

import csv
from pathlib import Path

import pytest

from mansard.engine import connect
from mansard.readers.metric_folder import is_metric_folder, read_metric_folder

PAPER = Path(__file__).parents[1] / "data" / "paper"
# Launches, kernel names, and whether two runs of the program launch in the same order.
CONFIGURATIONS = {
    "pytorch-O1-adam-forward": (797, 45, True),
    "pytorch-O1-fusedlamb-optimizer": (35, 5, True),
    "tensorflow-amp-forward": (556, 52, False),
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_sums_of_every_counter_of_every_kernel_equal_the_authors_table(configuration):
    launches, kernels, same_order = CONFIGURATIONS[configuration]
    files = sorted((PAPER / configuration).glob("*"))
    with (PAPER / configuration / "authors-table.csv").open(newline="") as text:
        authors = {row["Kernel Name"]: row for row in csv.DictReader(text)}
    assert is_metric_folder(files)
    with connect(threads=1) as engine:
        capture = read_metric_folder(files, engine, "launches")
        assert len(capture.counters) == 12
        sums = ", ".join(f'sum("counter.{counter}")' for counter in capture.counters)
        rows = engine.execute(
            f"SELECT name, count(*), {sums} FROM launches GROUP BY name"
        ).fetchall()
        unknown = " OR ".join(f'"counter.{counter}" IS NULL' for counter in capture.counters)
        assert engine.execute(f"SELECT count(*) FROM launches WHERE {unknown}").fetchone() == (0,)
    (skipped,) = capture.provenance.notices
    assert "authors-table.csv" in skipped.message
    assert capture.provenance.lost_launches == 0
    assert capture.provenance.join.startswith("by launch order") == same_order
    assert len(authors) == kernels
    assert {name for name, *_ in rows} == set(authors)
    assert sum(count for _, count, *_ in rows) == launches
    for name, count, *values in rows:
        row = authors[name]
        assert count == int(row["Count"])
        for counter, value in zip(capture.counters, values, strict=True):
            # Counts are whole numbers and must be equal; cycles and clocks are sums of decimals.
            exact = "cycles" not in counter
            expected = float(row[counter])
            assert value == (expected if exact else pytest.approx(expected, rel=1e-12)), counter
