"""``mansard compare`` from the command line: formats, exit codes, refusals."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mansard import engine
from mansard.cli.compare import compare
from mansard.errors import InputError, UsageError
from mansard.model.provenance import Provenance
from mansard.store import write_run

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "src" / "mansard" / "demo"
ZOO, PAPER = DEMO / "h200-zoo.parquet", DEMO / "v100-deepcam-forward.parquet"
MACHINE = ROOT / "src" / "mansard" / "machines" / "v100-paper.json"


@pytest.fixture
def run():
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("compare")(compare)
    app.callback()(lambda: None)

    def call(*arguments):
        return CliRunner().invoke(app, ["compare", *map(str, arguments)])

    return call


def test_a_run_with_itself(run):
    done = run(ZOO, ZOO)
    assert done.exit_code == 0
    assert "GPU time 1.95 ms -> 1.95 ms, = (the same)" in done.stdout


def test_a_broken_limit_is_exit_code_1_and_told(run):
    done = run("--phase-of", ZOO, "gemm_bf16", "gemm_fp32", "--fail-if", "gpu_time > +3%")
    assert done.exit_code == 1
    assert "failed: gpu_time changed by +1262.2 % (noise unknown): gpu_time > +3%" in done.stderr


def test_a_limit_that_holds_is_exit_code_0(run):
    assert run(ZOO, ZOO, "--fail-if", "gpu_time > +3%", "--fail-if", "launches > 0%").exit_code == 0


def test_limits_are_read_before_any_run(run):
    done = run("no-such-file", "neither", "--fail-if", "nonsense")
    assert isinstance(done.exception, UsageError)
    assert "is no limit" in str(done.exception)


def test_unlike_runs_are_refused_and_compared_on_request(run):
    refused = run(ZOO, PAPER)
    assert isinstance(refused.exception, UsageError)
    assert "counter table: gh100 against paper-volta" in str(refused.exception)
    allowed = run(ZOO, PAPER, "--allow-unlike", "--by", "family")
    assert allowed.exit_code == 0
    assert "UNLIKE" in allowed.stdout


def test_every_further_run_is_compared_with_the_first(run):
    found = json.loads(run(ZOO, ZOO, ZOO, "--json").stdout)
    assert [one["schema"] for one in found] == ["mansard-comparison/1"] * 2


def test_ranks_of_one_run(run, tmp_path):
    for rank in (0, 1):
        shutil.copy(ZOO, tmp_path / f"rank{rank}.parquet")
    found = json.loads(run("--rank-of", tmp_path, 0, 1, "--json").stdout)
    assert found["totals"]["gpu_time"]["verdict"] == "same"
    assert isinstance(run("--rank-of", tmp_path, 0, "one").exception, UsageError)


def test_files_are_written_in_the_format_of_their_suffix(run, tmp_path):
    markdown, other = tmp_path / "c.md", tmp_path / "c.json"
    done = run(ZOO, ZOO, "-o", markdown, "-o", other)
    assert done.stdout == ""
    assert markdown.read_text(encoding="utf-8").startswith("### `h200-zoo.parquet` →")
    assert json.loads(other.read_text())["by"] == "kernel"
    assert isinstance(run(ZOO, ZOO, "-o", tmp_path / "c.xlsx").exception, UsageError)


def test_a_page_holds_kernels_families_and_phases(run, tmp_path):
    page = tmp_path / "diff.html"
    done = run("--phase-of", ZOO, "gemm_bf16", "gemm_fp32", "--by", "family", "-o", page)
    assert done.exit_code == 0
    assert done.stderr == f"wrote {page}\n"
    data = re.search(r'data-encoding="json">(.*?)</script>', page.read_text(encoding="utf-8"))[1]
    (pair,) = json.loads(data)["pairs"]
    assert list(pair) == ["family", "kernel", "phase"]


def test_a_page_of_several_runs_has_a_part_for_each(run, tmp_path):
    page = tmp_path / "diff.html"
    assert run(ZOO, ZOO, ZOO, "-o", page).exit_code == 0
    assert page.read_text(encoding="utf-8").count('<article class="pair"') == 2


@pytest.mark.parametrize(
    ("name", "start"), [("c.png", b"\x89PNG"), ("c.svg", b"<?xml"), ("c.pdf", b"%PDF")]
)
def test_a_picture_of_two_runs(run, tmp_path, name, start):
    target = tmp_path / name
    assert run("--phase-of", ZOO, "gemm_bf16", "gemm_fp32", "-o", target).exit_code == 0
    assert target.read_bytes().startswith(start)


def test_a_picture_of_three_runs_is_refused_before_anything_is_read(run, tmp_path):
    done = run("no-such", "neither", "nor-this", "-o", tmp_path / "c.png")
    assert isinstance(done.exception, UsageError)
    assert "write a page" in str(done.exception)


def test_a_target_that_would_replace_a_run_is_refused(run, tmp_path):
    own = tmp_path / "run.json"
    shutil.copy(ZOO, own)
    done = run(own, ZOO, "-o", own)
    assert isinstance(done.exception, UsageError)
    assert own.read_bytes() == ZOO.read_bytes()


def test_machines_side_by_side_as_page_and_picture(run, tmp_path):
    page, picture = tmp_path / "m.html", tmp_path / "m.png"
    other = MACHINE.with_name("h200-sxm.json")
    done = run(MACHINE, other, "-o", page, "-o", picture)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "<h1>v100-paper and h200-sxm</h1>" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert isinstance(run(MACHINE, other, "-o", tmp_path / "m.md").exception, UsageError)


def test_machine_files_go_to_their_own_table(run):
    done = run(MACHINE, MACHINE)
    assert done.exit_code == 0
    assert "ratio" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((), UsageError, "at least two runs"),
        ((ZOO,), UsageError, "at least two runs"),
        (("--phase-of", ZOO, "add"), UsageError, "at least two names"),
        (("--phase-of", ZOO, "--rank-of", ZOO, "a", "b"), UsageError, "not both"),
        (("--phase-of", ZOO, "add", "nothing"), UsageError, "its phases are gemm_fp64"),
        ((ZOO, "no-such-run"), InputError, "does not exist"),
    ],
)
def test_what_cannot_be_compared_is_told(run, arguments, error, said):
    done = run(*arguments)
    assert isinstance(done.exception, error)
    assert said in str(done.exception)


def test_runs_of_one_name_are_called_by_their_folders(run, tmp_path):
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        shutil.copy(ZOO, tmp_path / name / "run.parquet")
    files = [tmp_path / name / "run.parquet" for name in ("before", "after")]
    assert run(*files).stdout.startswith("before/run.parquet -> after/run.parquet\n")
    assert run(files[0], files[0]).stdout.startswith("run.parquet -> run.parquet\n")


@pytest.mark.parametrize("by", ["module", "layer", "operator"])
def test_rows_that_the_runs_do_not_name_are_refused_with_the_run(run, by):
    error = run(ZOO, ZOO, "--by", by).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"h200-zoo.parquet names no {by}s: record")


class TestNetwork:
    """A network whose modules are named."""

    @pytest.fixture
    def network(self, tmp_path):
        path = tmp_path / "network.parquet"
        rows = "('gemm', 'mm', 'blocks.0.mix', 0.5), ('adam', 'adam', NULL, 0.25)"
        with engine.connect(threads=1) as connection:
            select = f"SELECT * FROM (VALUES {rows}) AS t(name, op, module, duration_s)"
            write_run(connection, select, Provenance(), path)
        return path

    @pytest.mark.parametrize(
        ("by", "keys"),
        [
            ("module", {"blocks.0.mix", None}),
            ("layer", {"blocks.*.mix", None}),
            ("operator", {"mm", "adam"}),
        ],
    )
    def test_rows(self, run, network, by, keys):
        found = json.loads(run(network, network, "--by", by, "--json").stdout)
        assert found["by"] == by
        assert {row["key"] for row in found["rows"]} == keys

    def test_the_page_has_all_kinds_of_rows_that_both_name(self, run, network, tmp_path):
        run(network, network, "--by", "layer", "-o", tmp_path / "c.html")
        text = (tmp_path / "c.html").read_text()
        assert "<h3>Layers, by difference in time</h3>" in text
        assert "<h3>Modules, by" not in text  # many: they stand in the table alone
        page = page_data(text)
        assert list(page["pairs"][0]) == [
            "layer", "kernel", "family", "phase", "module", "operator",
        ]  # fmt: skip
        run(network, ZOO, "--allow-unlike", "-o", tmp_path / "c.html")
        page = page_data((tmp_path / "c.html").read_text())
        assert list(page["pairs"][0]) == ["kernel", "family", "phase"]


def page_data(text):
    """What the script of a page reads."""
    content = re.search(r'<script[^>]*type="application/[^"]*"[^>]*>([^<]*)</script>', text)[1]
    try:
        return json.loads(content)
    except json.JSONDecodeError:
        return json.loads(gzip.decompress(base64.b64decode(content)))
