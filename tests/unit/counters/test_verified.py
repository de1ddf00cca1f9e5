"""What the tables call verified stands in the record of the run that verified it."""

import json
from pathlib import Path

import pytest

from mansard.counters.table import load_table

RECORD = Path(__file__).parents[3] / "docs" / "validation" / "validate-h200.json"
COMMAND = "`mansard validate`"


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def verified():
    """Formula of each column that the table says this run verified."""
    return {
        column: each.formula.text
        for column, ways in load_table("gh100").quantities.items()
        for each in ways
        if any(COMMAND in where for where in each.verified_on)
    }


def verdict(record, column):
    return next(each for each in record["verdicts"] if each["quantity"] == column)


def test_the_page_says_the_time_and_the_findings_of_the_record(record):
    page = (RECORD.parents[1] / "validate.md").read_text(encoding="utf-8")
    assert f"It takes {record['provenance']['duration_s']:.0f} s on an H200." in page
    assert f"{record['findings']['holds']} findings hold and none deviates" in page


def test_every_definition_that_is_called_verified_was_compared_as_it_stands(record, verified):
    assert verified
    for column, formula in verified.items():
        found = verdict(record, column)
        assert found["formula"] == formula, column
        assert len(found["holds"]) >= 2, column


def test_every_definition_that_held_is_called_verified(record, verified):
    held = {each["quantity"] for each in record["verdicts"] if each["holds"]}
    assert held == {*verified}


def test_work_is_called_exact_and_bytes_within_their_tolerance(record, verified):
    for column in verified:
        exact = column.startswith(("flop", "op"))
        assert verdict(record, column)["tolerance"] == (0 if exact else 0.03), column
        (where,) = (
            text
            for each in load_table("gh100").quantities[column]
            for text in each.verified_on
            if COMMAND in text
        )
        assert where.endswith("exactly" if exact else "within 3 %")


def test_a_deviation_in_the_record_is_explained_in_it(record):
    assert not record["deviates"] or all(
        each["case"] in record["note"] for each in record["deviates"]
    )


def test_the_record_says_on_what_it_was_made(record):
    assert record["device"]["name"] == "NVIDIA H200"
    assert {"driver_version", "cupti_version", "created"} <= {*record["provenance"]}
