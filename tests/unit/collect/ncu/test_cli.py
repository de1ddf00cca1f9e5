"""``mansard profile --with ncu`` from the command line."""

import io
import sys

import pytest
import typer
from ncu_makers import DATA
from typer.testing import CliRunner

from mansard.cli.profile import CONTEXT, ProfileCommand, profile
from mansard.cli.progress_ncu import described
from mansard.collect.ncu.count import Progress
from mansard.collect.ncu.log import Step
from mansard.errors import PermissionDeniedError

PROGRAM = [sys.executable, "-S", "-E", "-c", "print('hello')"]


@pytest.fixture(scope="module")
def app():
    application = typer.Typer(pretty_exceptions_enable=False)
    application.callback()(lambda: None)
    application.command("profile", cls=ProfileCommand, context_settings=CONTEXT)(profile)
    return application


@pytest.fixture
def run(app):
    def invoke(*arguments):
        return CliRunner().invoke(app, ["profile", *map(str, arguments)])

    return invoke


def test_a_program_is_profiled_and_the_run_is_named(fake_ncu, tmp_path, run):
    output = tmp_path / "a run.parquet"
    result = run("--with", "ncu", "--chip", "9.0", "-o", output, "--", *PROGRAM)
    assert result.exit_code == 0, result.output
    assert f"wrote {output} (count" in result.stderr
    assert output.exists()


def test_the_collector_may_be_named_after_other_options(fake_ncu, tmp_path, run, seen):
    result = run(
        "-o", tmp_path / "r.parquet", "--with=ncu", "--chip=9.0", "--launch-count", "3", *PROGRAM
    )
    assert result.exit_code == 0, result.output
    assert seen()[seen().index("--launch-count") + 1] == "3"


def test_options_of_the_program_are_its_own(fake_ncu, tmp_path, run, seen):
    program = [sys.executable, "-c", "pass", "--with", "ncu", "--sample", "x", "-o"]
    result = run("--with", "ncu", "--chip", "9.0", "-o", tmp_path / "r.parquet", *program)
    assert result.exit_code == 0, result.output
    assert seen()[-len(program) :] == program


def test_without_the_option_the_other_collector_has_the_program(run):
    result = run("missing.py", "--with", "ncu")
    assert result.exit_code != 0
    assert "missing.py" in str(result.exception) or "no NVIDIA driver" in str(result.exception)


def test_the_exit_code_of_the_program_is_kept(fake_ncu, tmp_path, run):
    program = [sys.executable, "-S", "-E", "-c", "raise SystemExit(42)"]
    result = run("--with", "ncu", "--chip", "9.0", "-o", tmp_path / "r.parquet", "--", *program)
    assert result.exit_code == 42
    assert "ncu-program-failed" in result.stderr
    assert (tmp_path / "r.parquet").exists()


def test_a_partial_run_has_a_code_of_its_own(fake_ncu, tmp_path, run, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "crash")
    monkeypatch.setenv("FAKE_NCU_REPORT", str(DATA / "ncu_rep" / "zoo.ncu-rep.gz"))
    result = run("--with", "ncu", "--chip", "9.0", "-o", tmp_path / "r.parquet", "--", *PROGRAM)
    assert result.exit_code == 3
    assert "report-cut" in result.stderr


def test_errors_are_ours_and_no_tracebacks(fake_ncu, tmp_path, run, monkeypatch):
    monkeypatch.setenv("FAKE_NCU", "permission")
    result = run("--with", "ncu", "--chip", "9.0", "-o", tmp_path / "r.parquet", "--", *PROGRAM)
    assert isinstance(result.exception, PermissionDeniedError)


def test_each_collector_has_its_own_help(run):
    inside = run("--help").output
    assert "--warmup" in inside
    assert "--with" in inside
    assert "--sample" not in inside
    ncu = run("--with", "ncu", "--help").output
    assert "--sample" in ncu
    assert "--warmup" not in ncu


def test_a_misspelt_option_is_an_error(fake_ncu, run):
    result = run("--with", "ncu", "--sampel", "3", "--", *PROGRAM)
    assert result.exit_code == 2
    assert "--sampel" in result.output


def test_progress_names_kernel_and_pass():
    step = Step(kernels=3, name="gemm", passes=4, share=0.5)
    assert described(Progress(stage="count", step=step, expected=10)) == "counting gemm, pass 3/4"
    assert described(Progress(stage="trace")) == "tracing without counters"
    long = Step(name="x" * 60)
    assert len(described(Progress(stage="count", step=long))) < 50


def test_progress_is_shown_on_a_terminal_with_what_is_left(monkeypatch):
    from mansard.cli import progress_ncu

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    with progress_ncu.shown() as watch:
        watch(Progress(stage="count", step=Step(kernels=3, name="[bold]k"), expected=10))
    text = out.getvalue()
    assert "counting [bold]k" in text
    assert "3/10" in text
