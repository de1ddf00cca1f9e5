"""A real browser, and pages of real runs for it. Without Chromium or playwright all tests skip."""

import dataclasses
import os
import random
import shutil
from pathlib import Path

import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.charts.page import page_html, read_detail
from mansard.demo import shipped_run
from mansard.model.analysis import Analysis
from mansard.model.columns import RUN_COLUMNS
from mansard.model.machine import Ceiling, Machine
from mansard.model.provenance import Definition, Provenance
from mansard.store import open_run, write_run
from mansard.store.choose_machine import machine_for

HOSTILE = (
    '<script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">',
    "</script><script>document.title='owned'</script>",
    "quote \" apostrophe ' & amp &lt; \\ backslash \u2028 line \u2029 paragraph",
    "line one\nline two\r\n\ttab \x1b[31m red \u202e reversed",
    "=HYPERLINK(1), comma",
    "äöü 漢字 🙂 kernel",
    "k" * 600 + "<end>",
)


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    named = os.environ.get("MANSARD_BROWSER")
    return named or next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = _chromium()
    if path is None:
        pytest.skip("no Chromium on PATH (name one in MANSARD_BROWSER)")
    with playwright.sync_playwright() as driver:
        # A container has no user namespace for Chromium's own sandbox.
        opened = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@dataclasses.dataclass
class Report:
    """A page on disk and the analysis that it shows."""

    analysis: Analysis
    path: Path


@pytest.fixture(scope="session")
def write_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def write(run, machine, name):
        analysis = analyze(run, machine)
        path = folder / f"{name}.html"
        path.write_text(page_html(analysis, read_detail(run, analysis)), encoding="utf-8")
        return Report(analysis, path)

    return write


@pytest.fixture(scope="session")
def zoo(write_page):
    run = shipped_run("h200-zoo")
    return write_page(run, machine_for(run)[0], "zoo")


@pytest.fixture(scope="session")
def deepcam(write_page):
    run = shipped_run("v100-deepcam-forward")
    return write_page(run, machine_for(run)[0], "deepcam")


def round_machine() -> Machine:
    compute = {"vector fp32": 1e12, "tensor bf16": 1e13}
    bandwidth = {"l1": 1e11, "l2": 4e10, "dram": 1e10}
    return Machine(
        name="round",
        basis="measured",
        ceilings=(
            *(Ceiling(kind="compute", path=p, value=v, unit="flop/s") for p, v in compute.items()),
            *(
                Ceiling(kind="bandwidth", level=level, value=value, unit="byte/s")
                for level, value in bandwidth.items()
            ),
            Ceiling(kind="launch", access="graph node", value=1e-6, unit="s"),
            Ceiling(kind="launch", access="stream", value=3e-6, unit="s"),
        ),
    )


def write_rows(rows, path):
    types = {column.name: column.sql_type for column in RUN_COLUMNS}
    names = list(dict.fromkeys(name for row in rows for name in row))
    listed = ", ".join(f"unnest(${n}::{types[c]}[]) AS {c}" for n, c in enumerate(names, start=1))
    origin = Provenance(
        collector="CUPTI <b>",
        sources=("a & b.csv",),
        definitions={"bytes_dram": Definition(formula="dram__bytes.sum", meaning="<i>bytes</i>")},
    )
    with engine.connect(threads=1) as connection:
        connection.execute(
            f"CREATE TABLE rows AS SELECT {listed}", [[row.get(c) for row in rows] for c in names]
        )
        write_run(connection, "SELECT * FROM rows", origin, path)


@pytest.fixture(scope="session")
def ranks_report(write_page, tmp_path_factory):
    """Two ranks, two phases, two streams, start times, operators, hostile names and values."""
    folder = tmp_path_factory.mktemp("ranks") / "run & <b>name"
    folder.mkdir()
    for rank in (0, 1):
        write_rows(list(_launches(rank)), folder / f"rank{rank}.parquet")
    return write_page(open_run(folder), round_machine(), "ranks")


def _launches(rank):
    rng = random.Random(rank)
    now = 0.0
    for launch in range(240):
        number = launch % 12
        hostile = HOSTILE[number] if number < len(HOSTILE) else f"plain_kernel_{number}"
        moved = 1e5 * (number + 1) * rng.uniform(0.9, 1.1)
        duration = (moved / 1e10 + 1e-6) * rng.uniform(1.1, 3) * (1.2 if rank else 1)
        now += rng.uniform(0, 2e-6) if launch % 40 else 1e-4
        yield {
            "name": hostile,
            "kind": "kernel",
            "rank": rank,
            "step": 0,
            "launch": launch,
            "stream": 7 + launch % 2,
            "phase": "forward" if launch < 120 else "backward </script>",
            "op": f"aten::op{number} <b>" if number % 2 else None,
            "module": "model.layer" if number % 3 else None,
            "start_s": now,
            "duration_s": duration,
            "flop_vector_fp32": moved * number if number % 4 else 0.0,
            "flop_tensor_bf16": moved * 40 if number == 5 else 0.0,
            "bytes_l1": moved * 3,
            "bytes_l2": moved * 2 if number != 8 else None,
            "bytes_dram": moved,
        }
        now += duration
