"""What a hostile or unlucky user does to the command line: one sentence, a code, nothing lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
CSV = DATA / "ncu_csv" / "raw-base-units.csv"
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "PYTHONWARNINGS": "error"}


def shell(command, **environment):
    """Run a line of the shell in which ``mansard`` is the program."""
    program = f'mansard() {{ "{sys.executable}" -m mansard "$@"; }}; set -o pipefail; '
    return subprocess.run(
        ["bash", "-c", program + command],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
        env={**ENVIRONMENT, **environment},
    )


def sentence(done):
    """The one line that a failed command says."""
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert [line for line in lines if not line.startswith("         more:")] == lines[:1]
    assert lines[0].startswith("mansard: ")
    return lines[0]


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.parquet"
    assert shell(f"mansard import {CSV} -o {path}").returncode == 0
    return path


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.csv"
    path.write_bytes(CSV.read_bytes())
    return path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["machines", "machines h200-sxm --json"])
def test_a_full_disk_behind_standard_output_is_said(command):
    assert "No space left" in sentence(shell(f"mansard {command} > /dev/full"))


@pytest.mark.parametrize("command", ["machines", "machines h200-sxm --json"])
def test_a_closed_standard_output_is_said(command):
    sentence(shell(f"mansard {command} >&-"))


def test_a_closed_standard_error_disturbs_nothing():
    done = shell("mansard machines 2>&-")
    assert done.returncode == 0
    assert b"h200-sxm" in done.stdout


def test_a_reader_that_goes_away_is_no_error():
    done = shell("mansard machines h200-sxm --json | true")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("columns", ["0", "", "1000000000", "1000"])
def test_a_terminal_of_impossible_width_shows_tables(run_file, columns):
    # COLUMNS=0 gave tables without a character, a billion did not end.
    assert b"h200-sxm" in shell("mansard machines", COLUMNS=columns).stdout
    done = shell(f"mansard report {run_file}", COLUMNS=columns)
    assert done.returncode == 0
    assert len(done.stdout) < 10_000_000


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
        {"HOME": "/proc", "TERM": "dumb", "TMPDIR": "/nonexistent"},
    ],
    ids=["C", "latin-1", "no home"],
)
def test_a_report_comes_in_any_environment(run_file, environment):
    done = shell(f"mansard report {run_file}", **environment)
    assert done.returncode == 0
    assert b"NVIDIA H200" in done.stdout


def test_a_name_that_the_encoding_lacks_is_told_all_the_same():
    done = shell("mansard report '漢字.csv'", PYTHONIOENCODING="ascii:strict")
    assert "does not exist" in sentence(done)


def test_an_empty_name_is_not_the_present_folder():
    # mansard report "$UNSET" read whatever lay around.
    assert "empty name" in sentence(shell("mansard report ''"))
    assert "empty name" in sentence(shell("mansard import '' -o x.parquet"))


@pytest.mark.parametrize("command", ["report", "report -m"])
def test_a_name_of_five_thousand_letters_is_one_sentence(command, run_file):
    name = "n" * 5000
    arguments = f"{command} {name}" if command != "report -m" else f"report {run_file} -m {name}"
    done = shell(f"mansard {arguments}")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert len(done.stderr) < 2500


def test_an_endless_input_that_is_nothing_of_ours_is_not_waited_for():
    assert "is neither a run" in sentence(shell("{ yes || true; } | mansard report -"))


@pytest.mark.parametrize(
    ("redirection", "said"), [("< /dev/null", "is empty"), ("<&-", "is closed")]
)
def test_standard_input_without_content_is_called_by_its_name(redirection, said):
    told = sentence(shell(f"mansard report - {redirection}"))
    assert f"standard input {said}" in told


def test_a_named_pipe_is_read_as_standard_input_is(page, run_file, tmp_path):
    # It was opened twice, and hung the second time.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content in (page, run_file):
        done = shell(f"cat {content} > {pipe} & mansard report {pipe}")
        assert done.returncode == 0
        assert b"622 us on the GPU in 6 launches" in done.stdout


def test_a_run_comes_through_a_pipe_and_goes_into_one(page, tmp_path):
    copy = tmp_path / "copy.parquet"
    done = shell(f"mansard import {page} -o - > {copy}; cat {copy} | mansard report -")
    assert done.returncode == 0
    assert b"622 us on the GPU in 6 launches" in done.stdout


@pytest.mark.parametrize("command", ["import", "report"])
def test_an_output_never_replaces_what_it_is_made_from(command, page):
    before = page.read_bytes()
    assert "would replace what it is made from" in sentence(
        shell(f"cd {page.parent}; mansard {command} {page} -o page.csv")
    )
    assert "would replace what it is made from" in sentence(
        shell(f"mansard {command} {page.parent} -o {page}")
    )
    assert page.read_bytes() == before


def test_a_report_in_the_folder_that_it_is_made_from_can_be_made_again(page):
    for _ in range(2):
        done = shell(f"mansard report {page.parent} -o {page.parent}/report.json")
        assert done.returncode == 0


def test_one_file_given_twice_is_not_counted_twice(page):
    assert "is given twice" in sentence(shell(f"mansard report {page} {page}"))


def test_a_format_that_does_not_exist_is_said_before_the_work():
    told = sentence(shell("mansard report no-such-file -o x.unknown"))
    assert "the name must end in" in told


@pytest.mark.parametrize("output", ["{folder}/no/such/x.{suffix}", "n" * 300])
@pytest.mark.parametrize(("command", "suffix"), [("import", "parquet"), ("report", "json")])
def test_an_output_that_cannot_be_written_is_said(command, suffix, output, page):
    target = output.format(folder=page.parent, suffix=suffix)
    target = target if output.startswith("{") else f"{target}.{suffix}"
    told = sentence(shell(f"mansard {command} {page} -o {target}"))
    assert "cannot" in told
    assert ".part" not in told


def test_a_link_stays_a_link_and_what_was_private_stays_private(run_file, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("mine")
    target.chmod(0o600)
    link.symlink_to(target)
    assert shell(f"mansard report {run_file} -o {link}").returncode == 0
    assert link.is_symlink()
    assert target.read_text().startswith("{")
    assert target.stat().st_mode & 0o777 == 0o600


def test_many_processes_may_write_one_file(page, tmp_path):
    output = tmp_path / "out" / "run.parquet"
    output.parent.mkdir()
    line = " & ".join([f"mansard import {page} -o {output}"] * 3)
    shell(f"{line} & wait")
    assert shell(f"mansard report {output}").returncode == 0
    assert list(output.parent.iterdir()) == [output]


def test_links_that_point_to_each_other_are_a_file_that_is_not_there(tmp_path):
    (tmp_path / "x.csv").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "x.csv")
    sentence(shell(f"mansard report {tmp_path / 'x.csv'}"))
    sentence(shell(f"mansard report {CSV} -o {tmp_path / 'x.csv'}"))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_a_command_and_leaves_nothing_behind(number, code, tmp_path):
    scratch, pipe = tmp_path / "scratch", tmp_path / "pipe"
    scratch.mkdir()
    os.mkfifo(pipe)
    # The pipe gives the start of a page and then nothing: the command waits inside its work.
    process = subprocess.Popen(
        [sys.executable, "-m", "mansard", "import", str(pipe), "-o", str(tmp_path / "x.parquet")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "TMPDIR": str(scratch)},
    )
    with pipe.open("wb") as writer:
        writer.write(CSV.read_bytes())
        writer.flush()
        deadline = time.monotonic() + 20
        while not list(scratch.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(scratch.iterdir())
        time.sleep(0.3)
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
    assert process.returncode == code
    assert told == b"mansard: interrupted\n"
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "x.parquet").exists()
