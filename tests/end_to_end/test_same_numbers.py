"""One run, one set of numbers: terminal, JSON, CSV and page say the same.

JSON, CSV and the page's data are compared digit by digit. What people read is rounded, so it is
read back here, with rules of this file, and compared at the precision that is printed.
"""

import base64
import csv
import dataclasses
import functools
import json
import math
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from mansard.demo import shipped_run

pytestmark = pytest.mark.slow

RUNS = ("h200-deeplabv3-step", "v100-deepcam-forward")

#: Columns of the terminal's table, and what they are in the JSON.
COLUMNS = {
    "launches": lambda group: group["launches"],
    "time": lambda group: group["duration_s"],
    "FLOP/s": lambda group: group["flop_per_s"],
    "shared": lambda group: group["intensity"].get("shared"),
    "L1": lambda group: group["intensity"]["l1"],
    "L2": lambda group: group["intensity"]["l2"],
    "DRAM": lambda group: group["intensity"]["dram"],
    "recov.": lambda group: group["recoverable_s"],
}
HEADS = ("main path", "launches", "time", "share", "FLOP/s", "shared", "L1", "L2", "DRAM", "link")
HEADS += ("bound", "eff.", "recov.")
#: The page has what a reader looks for first beside the time.
ON_THE_PAGE = ("launches", "time", "eff.", "recov.", "bound", "share", "FLOP/s")
ON_THE_PAGE += ("shared", "L1", "L2", "DRAM", "link")
PREFIXES = dict(zip("EPTGMkmun", (1e18, 1e15, 1e12, 1e9, 1e6, 1e3, 1e-3, 1e-6, 1e-9), strict=True))


@dataclasses.dataclass
class Told:
    """What the command says of a run, in every form."""

    terminal: str
    json: dict
    csv: list
    json_by_phase: dict
    csv_by_phase: list
    page: Path


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """One command writes JSON, CSV and page, so that they are of one analysis."""
    folder = tmp_path_factory.mktemp("same")
    environment = os.environ | {"COLUMNS": "220", "NO_COLOR": "1", "TERM": "dumb"}

    @functools.cache
    def tell(name):
        run = str(shipped_run(name).files[0])
        command = [sys.executable, "-m", "mansard", "report", run, "--top", "100000"]

        def output(*more):
            done = subprocess.run(
                [*command, *map(str, more)],
                capture_output=True,
                check=True,
                env=environment,
                timeout=120,
            )
            return done.stdout.decode()

        page, kernels, phases = (folder / f"{name}{end}" for end in (".html", ".csv", "-phase.csv"))
        return Told(
            terminal=output(),
            json=json.loads(output("--json", "-o", page, "-o", kernels)),
            csv=rows_of(kernels),
            json_by_phase=json.loads(output("--json", "--by", "phase", "-o", phases)),
            csv_by_phase=rows_of(phases),
            page=page,
        )

    return tell


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_back(text):
    """A printed number and half of its last digit; None for a dash."""
    if text == "-":
        return None
    found = re.fullmatch(r"~?([\d.]+(?:e[+-]\d+)?) ?([EPTGMkmun]?)(?:s|B|B/s|FLOP|FLOP/s|)", text)
    assert found, text
    digits, prefix = found.groups()
    mantissa, _, power = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    scale = PREFIXES.get(prefix, 1.0) * 10.0 ** int(power or 0)
    return float(mantissa) * scale, 0.5 * 10.0**-decimals * scale


def assert_printed(text, value):
    shown = read_back(text)
    if shown is None or value is None:
        assert shown is None, text
        assert value is None, text
        return
    number, half = shown
    # `3` stands for 3.00 as well: zeros at the end of an intensity are not printed.
    assert math.isclose(number, value, rel_tol=1e-9, abs_tol=half * 1.0001), (text, value)


def lines_of(terminal, title):
    """The rows of a table, each as its cells by head."""
    lines = terminal.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{title} (levels"))
    header = lines[at + 1]
    ends, at_letter = {}, 0
    for head in HEADS:
        found = re.compile(rf"(?<= ){re.escape(head)}(?= |$)").search(header, at_letter)
        if found:
            ends[head] = at_letter = found.end()
    rows = []
    for line in lines[at + 2 :]:
        if not line.strip():
            break
        cells, begin = {}, ends["main path"] - len("tensor bf16")
        name = line[:begin].split(maxsplit=1)[1].strip()
        for head, end in ends.items():
            cells[head], begin = line[begin:end].strip(), end
        rows.append((name, cells))
    return rows


@pytest.mark.parametrize(
    ("name", "title", "groups"),
    [
        *((name, "Kernels", "kernels") for name in RUNS),
        # The other run has none.
        ("h200-deeplabv3-step", "Phases", "phases"),
    ],
)
def test_every_row_of_the_terminal_is_that_of_the_json(name, title, groups, told):
    found = told(name)
    listed = found.json[groups]
    rows = lines_of(found.terminal, title)
    assert len(rows) == len(listed)
    time_s = found.json["totals"]["duration_s"]
    for (_, cells), group in zip(rows, listed, strict=True):
        for head, value_of in COLUMNS.items():
            # Above its roof the recoverable time is in doubt and not printed.
            if head in cells and not (head == "recov." and cells["eff."] == "> roof"):
                assert_printed(cells[head], value_of(group))
        share = cells["share"].removeprefix("<").removesuffix(" %")
        assert abs(float(share) / 100 - group["duration_s"] / time_s) <= 0.00101
        if cells["eff."] not in ("> roof", "-"):
            shown = float(cells["eff."].removeprefix("~").removesuffix("%").strip(" <"))
            assert abs(shown / 100 - group["efficiency"]) <= 0.00101
        if cells["bound"] != "?":
            assert cells["bound"].lower() == (group["bound"] or "-")


@pytest.mark.parametrize("name", RUNS)
def test_the_totals_of_the_terminal_are_those_of_the_json(name, told):
    found = told(name)
    totals, text = found.json["totals"], " ".join(found.terminal.split())
    spent = re.search(r"time (\S+ \S+) on the GPU in (\d+) launches? of (\d+) kernel", text)
    assert_printed(spent[1], totals["duration_s"])
    assert (int(spent[2]), int(spent[3])) == (totals["launches"], totals["kernels"])
    work = re.search(r"work (?:at least )?(\S+ \S+), (\S+ \S+?)[, ]", text)
    assert_printed(work[1], totals["flop"])
    assert_printed(work[2], totals["flop_per_s"])
    traffic = re.search(r"traffic (.*?) no FLOP", text)[1]
    for part in traffic.split(", "):
        level, shown = part.split(" ", 1)
        assert_printed(shown, totals[f"bytes_{level.lower()}"])
    for part in re.search(r"floors (.*?); bound", text)[1].split(", "):
        resource, shown = part.split(" ", 1)
        assert_printed(shown, totals["floors_s"][resource.lower()])
    floor = re.search(r"\(floor (\S+ \S+)\), recoverable (\S+ \S+)", text)
    assert_printed(floor[1], totals["floor_s"])
    assert_printed(floor[2], totals["recoverable_s"])


def cell(value):
    """What the CSV writes for a value of the JSON."""
    return "" if value is None else str(value)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("by", ["kernel", "phase"])
def test_every_cell_of_the_csv_is_that_of_the_json(name, by, told):
    found = told(name)
    if by == "kernel":
        rows, listed = found.csv, found.json["kernels"]
    else:
        rows, listed = found.csv_by_phase, found.json_by_phase["phases"]
    assert len(rows) == len(listed)
    for row, group in zip(rows, listed, strict=True):
        for key in ("launches", "duration_s", "flop", "floor_s", "recoverable_s", "flop_per_s"):
            assert row[key] == cell(group[key]), key
        for level, intensity in group["intensity"].items():
            key = f"intensity_{level}_flop_per_byte"
            if key in row:
                assert row[key] == cell(intensity)
        for resource, floor in group["floors_s"].items():
            assert row[f"floor_{resource}_s"] == cell(floor)


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_of_the_csv_add_up_to_the_totals(name, told):
    found = told(name)
    totals = found.json["totals"]
    for rows in (found.csv, found.csv_by_phase):
        for key in ("launches", "duration_s", "flop", "floor_s"):
            summed = math.fsum(float(row[key]) for row in rows if row[key])
            assert summed == pytest.approx(totals[key], rel=1e-9), key
    # Recoverable time of the whole is above the sum of the floors, not a sum of rows.
    above = totals["duration_s"] - totals["floor_s"]
    assert totals["recoverable_s"] == pytest.approx(max(0.0, above))


def payload(page):
    encoding, text = re.search(
        r'id="data" data-encoding="(\w+)">(.*?)</script>', page.read_text(encoding="utf-8")
    ).groups()
    return json.loads(zlib.decompress(base64.b64decode(text)) if encoding == "deflate" else text)


def column(table, name):
    """One column of a table of the page, value by value."""
    if name in table["same"]:
        return [table["same"][name]] * table["rows"]
    assert name not in table["packed"], "runs of this size keep every digit"
    values = table["columns"][name]
    words = table["words"].get(name)
    return [words[value] for value in values] if words else values


@pytest.mark.parametrize("name", RUNS)
def test_the_data_of_the_page_are_those_of_the_json(name, told):
    found, data = told(name).json, payload(told(name).page)
    for key in ("totals", "phases", "families", "ranks", "machine"):
        assert data["report"][key] == found[key], key
    kernels, table = found["kernels"], data["kernels"]
    assert data["names"][::2] == [kernel["name"] for kernel in kernels]
    for key in ("launches", "duration_s", "flop", "floor_s"):
        assert column(table, key) == [kernel[key] for kernel in kernels], key
    flop = column(table, "flop")
    for level in kernels[0]["intensity"]:
        moved = column(table, f"bytes.{level}")
        partial = column(table, "partial_levels")
        divided = [
            f / b if f is not None and b and level not in p.split() else None
            for f, b, p in zip(flop, moved, partial, strict=True)
        ]
        assert divided == [kernel["intensity"][level] for kernel in kernels], level


@pytest.mark.parametrize("name", RUNS)
def test_the_table_of_the_page_reads_as_the_terminal(name, told, browser):
    tab = browser.new_page()
    try:
        tab.goto(told(name).page.as_uri())
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        while tab.locator("#more").is_visible():
            tab.click("#more")
        shown = tab.evaluate(
            """[...document.querySelectorAll('#table tbody tr')].map(
              (row) => [...row.cells].slice(3).map((cell) => cell.textContent))"""
        )
    finally:
        tab.close()
    rows = lines_of(told(name).terminal, "Kernels")
    order = sorted(rows[0][1].keys() - {"main path"}, key=ON_THE_PAGE.index)
    assert shown == [[cells[head] for head in order] for _, cells in rows]
