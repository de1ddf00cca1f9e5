"""Files that are damaged, foreign or made to do harm: read for what they are worth, or refused."""

import gzip
import io
import json
import sys

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mansard
from mansard import readers
from mansard.cli import main
from mansard.engine import connect
from mansard.errors import FormatError, InputError, MachineError, MansardError
from mansard.readers import ImportOptions
from mansard.store import load_machine

pytestmark = pytest.mark.slow

HEAD = (
    '"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","{}"\n"","","","","","","{}"\n'
)
ROW = '"{}","7","{}","(128, 1, 1)","(264, 1, 1)","9.0","{}"\n'


def page(*values, name="k", metric="gpu__time_duration.sum", unit="ns"):
    rows = (ROW.format(number, name, value) for number, value in enumerate(values))
    return HEAD.format(metric, unit) + "".join(rows)


@pytest.fixture
def run_file(tmp_path):
    """A run of two launches; a function that writes it again with other columns or metadata."""
    source, path = tmp_path / "page.csv", tmp_path / "run.parquet"
    source.write_text(page("1000", "2000"))
    readers.import_files([source], path)

    def changed(*, metadata=None, **columns):
        table = pq.read_table(path)
        known = dict(table.schema.metadata)
        for name, values in columns.items():
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        if metadata is not None:
            known[b"mansard"] = json.dumps(json.loads(known[b"mansard"]) | metadata).encode()
        pq.write_table(table.replace_schema_metadata(known), path)
        return path

    return changed


def test_a_version_of_thousands_of_digits_is_no_version(run_file, tmp_path):
    # Python refuses to make a number of it.
    path = run_file(metadata={"format": "mansard-run/" + "9" * 5000})
    with pytest.raises(FormatError, match="says that its format is"):
        mansard.open(path)
    file = tmp_path / "machine.json"
    fields = msgspec.to_builtins(load_machine("h200-sxm"))
    file.write_text(json.dumps(fields | {"schema": "mansard-machine/" + "9" * 5000}))
    with pytest.raises(MachineError, match="its schema is"):
        load_machine(file)


@pytest.mark.parametrize("start", [float("nan"), float("inf"), float("-inf")])
def test_a_start_that_is_no_time_is_unknown(run_file, start):
    analysis = mansard.analyze(mansard.open(run_file(start_s=[start, 1.0])), None)
    assert analysis.totals.launches == 2
    assert analysis.totals.duration_s == pytest.approx(3e-6)


@pytest.mark.parametrize("column", ["duration_s", "bytes_dram"])
def test_a_value_that_is_no_number_is_unknown_though_the_statistics_of_the_file_hide_it(
    run_file, column
):
    # Least and largest of such a file are 1, and the engine left the check out.
    analysis = mansard.analyze(mansard.open(run_file(**{column: [float("nan"), 1.0]})), None)
    told = [notice.message for notice in analysis.notices if notice.code == "impossible-values"]
    assert len(told) == 1
    assert "1 launch" in told[0]
    assert column in told[0]
    known = analysis.totals.duration_s if column == "duration_s" else 1.0
    assert known in (1.0, None)


def test_starts_far_apart_are_read(run_file):
    analysis = mansard.analyze(mansard.open(run_file(start_s=[-1e300, 1e300])), None)
    assert analysis.totals.launches == 2


def test_empty_lines_without_end_do_not_take_long(tmp_path):
    # 30 kB of a gzip bomb took more than a minute, line by line.
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.GzipFile(bomb, "wb", mtime=0) as file:
        file.write(page("1000").encode())
        for _ in range(24):
            file.write(b"\n" * (1 << 20))
    assert mansard.open(bomb).all_notices
    assert mansard.analyze(mansard.open(bomb), None).totals.launches == 1


def test_a_bomb_is_cut_and_said_and_what_came_before_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr("mansard.readers.ncu_csv.lines._LEAST_BYTES", 1 << 20)
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.GzipFile(bomb, "wb", mtime=0) as file:
        file.write(page("1000").encode())
        for _ in range(24):
            file.write(b"\n" * (1 << 20))
    run = mansard.open(bomb)
    assert [notice.code for notice in run.all_notices if notice.partial] == ["file-cut-short"]
    assert mansard.analyze(run, None).totals.launches == 1


@pytest.mark.parametrize("value", ["1" * 400, "1e400", "-1", "-inf", "nan", "0x10", "abc", ""])
def test_a_value_that_no_time_can_be_is_unknown(tmp_path, value):
    source = tmp_path / "page.csv"
    source.write_text(page("1000", value))
    totals = mansard.analyze(mansard.open(source), None).totals
    assert (totals.launches, totals.untimed_launches) == (2, 1)


def test_a_count_beyond_64_bits_is_kept(tmp_path):
    source = tmp_path / "page.csv"
    source.write_text(page(str(2**63), str(2**64), metric="dram__bytes.sum", unit="byte"))
    assert mansard.analyze(mansard.open(source), None).totals.bytes_by_level["dram"] == 2**63 * 3


@pytest.mark.parametrize(
    "name",
    ["\x1b[31mred", "[bold]markup[/]", "\u202ertl", "tab\tname", "\x07bell", "n" * 1_000_000],
    ids=["escape", "markup", "right to left", "tab", "bell", "long"],
)
def test_no_name_reaches_the_terminal_as_anything_but_text(tmp_path, capsys, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    source = tmp_path / "page.csv"
    source.write_text(page("1000", name=name))
    with pytest.raises(SystemExit):
        main(["report", str(source), "--machine", "h200-sxm"])
    shown = capsys.readouterr().out
    assert "in 1 launch" in shown
    assert [c for c in shown if c in "\u202e\u202c\x7f\x9b" or (c < " " and c != "\n")] == []
    assert max(map(len, shown.splitlines())) <= 80


def test_a_message_holds_no_control_characters(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["report", "no\x1b[31m\u202efile"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert "does not exist" in told
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_a_foreign_parquet_file_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"name": ["k" * 10_000_000], "x": [1]}), path)
    with pytest.raises(FormatError, match="was not written by Mansard"):
        mansard.open(path)


def test_memory_that_does_not_suffice_is_no_damaged_file():
    with connect(memory_limit="1MB", threads=1) as connection:
        with (
            pytest.raises(MansardError, match="there is not enough memory") as caught,
            connect(memory_limit="8MB", threads=1) as small,
        ):
            small.execute("CREATE TABLE t AS SELECT list(range) AS l FROM range(10000000)")
        assert not isinstance(caught.value, InputError)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_ctrl_c_inside_the_engine_is_ctrl_c():
    # The engine makes a RuntimeError of it, which had a traceback.
    with pytest.raises(KeyboardInterrupt), connect(threads=1):
        raise RuntimeError("Query interrupted")


def test_an_error_of_the_program_under_profile_keeps_its_traceback(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text("open('/no/such/file')\n")

    def profile(arguments):
        import runpy

        runpy.run_path(str(script))

    monkeypatch.setattr("mansard.cli._run", profile)
    with pytest.raises(FileNotFoundError):
        main([])


def test_an_error_of_the_system_is_one_sentence(monkeypatch, capsys):
    def fails(arguments):
        raise OSError(28, "No space left on device", "x" * 5000)

    monkeypatch.setattr("mansard.cli._run", fails)
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.endswith(": No space left on device\n")
    assert len(told) < 300


def test_no_room_for_temporary_files_names_the_folder_and_not_the_input(tmp_path, monkeypatch):
    source = tmp_path / "page.csv"
    source.write_text(page("1000"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mansard.readers.ncu_csv.read.find_rows", full)
    with pytest.raises(InputError, match="TMPDIR") as caught:
        mansard.open(source)
    assert caught.value.slug == "disk-full"


def test_standard_input_that_is_closed_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        mansard.open("-")


def test_the_provenance_names_standard_input(tmp_path, monkeypatch):
    content = page("1000").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    run = readers.import_files(["-"], tmp_path / "x.parquet", options=ImportOptions())
    assert run.provenance[0].sources == ("standard input",)
