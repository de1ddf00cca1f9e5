"""Pages of real runs for a real browser. Without Chromium or playwright all tests skip."""

import dataclasses
import functools
import random
from pathlib import Path

import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.analysis.compare import compare
from mansard.charts.page import (
    compact,
    comparisons_page,
    data,
    others,
    page_html,
    read_detail,
)
from mansard.demo import shipped_run
from mansard.model.analysis import Analysis
from mansard.model.columns import RUN_COLUMNS
from mansard.model.comparison import Comparison
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


@dataclasses.dataclass
class Report:
    """A page on disk and what it shows: an analysis, or comparisons of two runs."""

    analysis: Analysis | tuple[Comparison, ...]
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
def step(write_page):
    run = shipped_run("h200-deeplabv3-step")
    return write_page(run, machine_for(run)[0], "step")


@pytest.fixture(scope="session")
def deepcam(write_page):
    run = shipped_run("v100-deepcam-forward")
    return write_page(run, machine_for(run)[0], "deepcam")


@pytest.fixture(scope="session")
def large(write_page, tmp_path_factory):
    """A page as large runs get it: packed numbers, compressed data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "MOST_EXACT", 3)
        patch.setattr(compact, "_READABLE", 1000)
        folder = tmp_path_factory.mktemp("large")
        write_rows([*_launches(0), *_launches(1)], folder / "large.parquet")
        return write_page(open_run(folder / "large.parquet"), round_machine(), "large")


@pytest.fixture(scope="session")
def crowded(write_page, tmp_path_factory):
    """A page of a run with more kernels than it has room for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "bounded", functools.partial(others.bounded, most=8))
        folder = tmp_path_factory.mktemp("crowded")
        write_rows(list(_launches(0)), folder / "crowded.parquet")
        return write_page(open_run(folder / "crowded.parquet"), round_machine(), "crowded")


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
def compared(tmp_path_factory):
    """The page of two runs of four steps: slower and faster, new and gone, hostile names."""
    folder = tmp_path_factory.mktemp("compared")
    runs = []
    for name, factor in (("before <b>", 1.0), ("after & more", 1.25)):
        rows = [row for step in range(4) for row in _step(step, factor)]
        write_rows(rows, folder / f"{name}.parquet")
        runs.append(open_run(folder / f"{name}.parquet"))
    pair = tuple(compare(*runs, by=by) for by in ("kernel", "family", "phase"))
    path = folder / "compared.html"
    path.write_text(comparisons_page([pair]), encoding="utf-8")
    return Report(pair, path)


def _step(step, factor):
    rng = random.Random(f"{step} {factor}")
    for number in range(60):
        name = HOSTILE[number] if number < len(HOSTILE) else f"plain_gemm_{number}"
        if number == 20:
            name = f"only_in_{factor}"
        moved = 1e6 * (number + 1)
        own = (factor, 1.0, 2 - factor)[number % 3]
        yield {
            "name": name,
            "kind": "kernel",
            "step": step,
            "launch": number,
            "phase": "forward" if number < 30 else "backward </script>",
            "duration_s": moved / 1e10 * own * rng.uniform(0.995, 1.005),
            "flop_vector_fp32": moved * (number % 4),
            "flop_tensor_bf16": moved * 40 if number == 5 else 0.0,
            "bytes_l1": moved * 3,
            "bytes_l2": moved * 2 * own,
            "bytes_dram": moved,
        }


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


@dataclasses.dataclass
class Tab:
    """An open page, what it printed, and what it asked for."""

    page: object
    said: list
    asked: list

    def js(self, expression, argument=None):
        return self.page.evaluate(expression, argument)

    def texts(self, selector):
        return [text.strip() for text in self.page.locator(selector).all_text_contents()]


@pytest.fixture(scope="session")
def one_tab(browser):
    """Opening a tab takes longer than most tests: all use this one."""
    return browser.new_page()


@pytest.fixture
def open_page(one_tab):
    """Open a report; at the end nothing may have gone wrong and nothing been fetched."""
    tab = Tab(one_tab, [], [])
    pages = []
    heard = {
        "console": lambda message: tab.said.append(message.text),
        "pageerror": lambda error: tab.said.append(str(error)),
        "dialog": lambda dialog: tab.said.append(dialog.message),
        "request": lambda request: tab.asked.append(request.url.split("#")[0]),
    }
    for event, note in heard.items():
        one_tab.on(event, note)

    def opened(report, address="", *, width=1300, height=900, color_scheme="light"):
        one_tab.goto("about:blank")
        one_tab.set_viewport_size({"width": width, "height": height})
        one_tab.emulate_media(color_scheme=color_scheme)
        pages.append(report.path.as_uri())
        one_tab.goto(report.path.as_uri() + address)
        one_tab.wait_for_selector("html[data-ready=yes]", state="attached")
        return tab

    yield opened
    for event, note in heard.items():
        one_tab.remove_listener(event, note)
    assert tab.said == []
    assert tab.asked == pages
