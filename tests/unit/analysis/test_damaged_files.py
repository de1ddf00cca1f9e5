"""Files of a job that are whole at their end and damaged inside, or gone: named, left out, rest kept.

The damage is made at places that Parquet's own footer names, and in all its kinds: pages that do
not decompress, headers that are none, values that were changed, columns of another type.
"""

import os
import shutil
import tempfile
from pathlib import Path

import duckdb
import pytest

from mansard import engine, readers
from mansard.analysis import analyze
from mansard.analysis.compare import compare
from mansard.analysis.whole_files import on_whole_files, without_damaged
from mansard.cli import main
from mansard.errors import FormatError, InputError
from mansard.model.provenance import Provenance
from mansard.store import write_run

pytestmark = pytest.mark.slow

RANKS, LAUNCHES = 6, 400
LAUNCHED = (
    "SELECT {rank} AS rank, i AS launch, 'gemm' || (i % 7) AS name, 'forward' AS phase, "
    # Full mantissas: zstd stores them as they are, so that changed bytes change values.
    "1e-3 * (1 + (hash(i + 1000 * {rank}) % 100000000) / 1e10) AS duration_s, "
    "1e6 * (1 + (hash(i) % 100000000) / 3e9) AS bytes_dram FROM range({count}) AS r(i)"
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    with engine.connect(threads=1) as connection:
        for rank in range(RANKS):
            select = LAUNCHED.format(rank=rank, count=LAUNCHES)
            write_run(connection, select, Provenance(), folder / f"rank{rank}.parquet")
    return folder


@pytest.fixture
def job(sound, tmp_path):
    return Path(shutil.copytree(sound, tmp_path / "job"))


def chunk(path, column):
    """First byte and length of the pages of a column, as the footer says."""
    first, length = duckdb.sql(
        "SELECT coalesce(dictionary_page_offset, data_page_offset), total_compressed_size "
        f"FROM parquet_metadata('{path}') WHERE path_in_schema = '{column}'"
    ).fetchall()[0]
    return first, length


def rewrite(path, select, options="COMPRESSION zstd"):
    """Write a run file again as a query over ``launched`` gives it."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE launched AS FROM '{path}'")
        connection.execute(
            f"COPY ({select}) TO '{path}' (FORMAT parquet, {options}, "
            'KV_METADATA {mansard: \'{"format": "mansard-run/1"}\'})'
        )


def overwrite(path, at, content):
    data = bytearray(path.read_bytes())
    assert len(content) <= len(data) - at
    data[at : at + len(content)] = content
    path.write_bytes(data)


def left_out(analysis):
    return [n.message for n in analysis.notices if n.code == "unreadable-file" and n.partial]


def assert_only_rank_4_is_left_out(found):
    (message,) = left_out(found)
    assert "rank4.parquet" in message
    assert {rank.rank for rank in found.fleet.ranks} == set(range(RANKS)) - {4}
    assert found.totals.launches == (RANKS - 1) * LAUNCHES
    assert len(found.run.files) == len(found.provenance) == RANKS - 1
    assert found.run.partial


def test_a_sound_job_is_read_once_and_loses_nothing(job):
    calls = []
    run = readers.open(job)
    assert on_whole_files(run, lambda whole: calls.append(whole) or 7) == 7
    assert calls == [run]
    found = analyze(run)
    assert (left_out(found), found.run, found.totals.launches) == ([], run, RANKS * LAUNCHES)


def test_pages_that_do_not_decompress(job):
    first, length = chunk(job / "rank4.parquet", "name")
    overwrite(job / "rank4.parquet", first + 24, b"\xff" * (length - 24))
    run = readers.open(job)
    assert not run.partial  # nothing is seen from outside
    assert_only_rank_4_is_left_out(analyze(run))


@pytest.mark.parametrize("header", [b"\0" * 16, b"\xff" * 16, b"\x15\xfe\xff\xff\xff\x0f" * 2])
def test_a_page_header_that_is_none_or_states_an_absurd_length(job, header):
    first, _ = chunk(job / "rank4.parquet", "duration_s")
    overwrite(job / "rank4.parquet", first, header)
    assert_only_rank_4_is_left_out(analyze(readers.open(job)))


def test_a_wrong_codec(job):
    path = job / "rank4.parquet"
    data = path.read_bytes()
    # In the footer a codec is field 4 of a column's metadata: 0x15, then zigzag 12 for zstd (6).
    body = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert b"\x15\x0c\x16" in data[body:]
    path.write_bytes(data[:body] + data[body:].replace(b"\x15\x0c\x16", b"\x15\x04\x16"))  # gzip
    assert_only_rank_4_is_left_out(analyze(readers.open(job)))


@pytest.mark.parametrize(("byte", "sums"), [(0x7F, "inf"), (0x3E, "less"), (0xBF, "less")])
def test_values_that_were_changed_where_nothing_else_shows_it(job, byte, sums):
    path = job / "rank4.parquet"
    rewrite(path, "SELECT * FROM launched", "COMPRESSION uncompressed")
    first, length = chunk(path, "duration_s")
    # Sign and exponents, whether values are stored one by one or their bytes apart.
    overwrite(path, first + length - 100, bytes([byte]) * 100)
    with duckdb.connect() as connection:  # DuckDB itself reads on
        total = connection.execute(f"SELECT sum(duration_s) FROM '{path}'").fetchall()[0][0]
    assert total > 1e300 if sums == "inf" else total < 0.4  # 400 launches took 1 ms and more
    found = analyze(readers.open(job))
    assert_only_rank_4_is_left_out(found)
    assert "duration_s is from" in left_out(found)[0]


@pytest.mark.parametrize("value", ["'slow'", "{'a': 1}", "[1.0]", "true", "now()", "'a'::BLOB"])
def test_a_column_of_another_type(job, value):
    path = job / "rank4.parquet"
    rewrite(path, f"SELECT * REPLACE ({value} AS duration_s) FROM launched")
    found = analyze(readers.open(job))
    assert_only_rank_4_is_left_out(found)
    assert "duration_s holds" in left_out(found)[0]


@pytest.mark.parametrize("value", ["7", "1.5", "true", "now()", "{'a': 1}", "['x']"])
@pytest.mark.parametrize("column", ["name", "phase", "module"])
def test_a_column_of_text_that_holds_something_else(job, column, value):
    """Beside texts of other files DuckDB would make it a text."""
    path = job / "rank4.parquet"
    rewrite(path, f"SELECT * REPLACE ({value} AS {column}) FROM launched")
    found = analyze(readers.open(job))
    assert_only_rank_4_is_left_out(found)
    assert f"{column} holds" in left_out(found)[0]
    with pytest.raises(
        FormatError, match=rf"rank4\.parquet are not those of a run: {column} holds"
    ):
        analyze(readers.open(path))


def test_a_column_of_text_without_any_value_is_no_damage(job):
    rewrite(job / "rank4.parquet", "SELECT * REPLACE (NULL AS phase) FROM launched")
    found = analyze(readers.open(job))
    assert (left_out(found), found.totals.launches) == ([], RANKS * LAUNCHES)


def test_a_comparison_leaves_a_damaged_file_out_as_a_report_does(job, sound):
    rewrite(job / "rank4.parquet", "SELECT * REPLACE (7 AS phase) FROM launched")
    found = compare(readers.open(sound), readers.open(job))
    (told,) = [n for n in found.notices if n.code == "unreadable-file"]
    assert "rank4.parquet" in told.message
    assert told.partial
    assert (found.repeats_a, found.repeats_b) == (RANKS, RANKS - 1)


@pytest.mark.parametrize("name", [b"bytes_dra\xca", b"\xca\xcates_dram", b"\0ytes_dram"])
def test_a_column_whose_name_is_no_text(job, name):
    path = job / "rank4.parquet"
    content = path.read_bytes()
    assert b"bytes_dram" in content
    path.write_bytes(content.replace(b"bytes_dram", name))
    found = analyze(readers.open(job))
    assert len(left_out(found)) <= 1
    assert found.totals.launches in {(RANKS - 1) * LAUNCHES, RANKS * LAUNCHES}


def test_numbers_of_another_width_are_no_damage(job):
    path = job / "rank4.parquet"
    # Half of the roundings go beyond the largest value as it is written in the footer.
    other = "(duration_s * 2)::FLOAT AS duration_s, rank::BIGINT AS rank"
    rewrite(path, f"SELECT * REPLACE ({other}) FROM launched")
    found = analyze(readers.open(job))
    assert (left_out(found), found.totals.launches) == ([], RANKS * LAUNCHES)


def test_a_file_that_vanishes_after_opening(job):
    run = readers.open(job)
    (job / "rank4.parquet").unlink()
    assert_only_rank_4_is_left_out(analyze(run))


def test_a_file_that_vanishes_while_damage_is_looked_for(job):
    run = readers.open(job)
    calls = []

    def fails_twice(whole):
        calls.append(len(whole.files))
        if len(calls) == 1:
            (job / "rank4.parquet").unlink()
            raise FormatError("first")
        if len(calls) == 2:
            (job / "rank5.parquet").unlink()
            raise FormatError("second")
        return whole

    rest = on_whole_files(run, fails_twice)
    assert calls == [RANKS, RANKS - 1, RANKS - 2]
    assert [n.code for n in rest.notices] == ["unreadable-file"] * 2


def test_several_damaged_files_are_all_named(job):
    for rank in (0, 4, 5):
        first, _ = chunk(job / f"rank{rank}.parquet", "duration_s")
        overwrite(job / f"rank{rank}.parquet", first, b"\xff" * 16)
    found = analyze(readers.open(job))
    told = left_out(found)
    assert ["rank0." in told[0], "rank4." in told[1], "rank5." in told[2]] == [True] * 3
    assert found.totals.launches == 3 * LAUNCHES


def test_a_job_of_which_nothing_is_whole_is_an_error(job):
    for path in job.iterdir():
        first, _ = chunk(path, "duration_s")
        overwrite(path, first, b"\xff" * 16)
    with pytest.raises(FormatError, match="damaged"):
        analyze(readers.open(job))


def test_a_single_damaged_file_is_an_error(job):
    path = job / "rank4.parquet"
    first, _ = chunk(path, "duration_s")
    overwrite(path, first, b"\xff" * 16)
    with pytest.raises(FormatError, match="damaged"):
        analyze(readers.open(path))


def test_an_error_that_no_file_explains_stays(job):
    def fails(_):
        raise FormatError("disk full")

    with pytest.raises(FormatError, match="disk full"):
        on_whole_files(readers.open(job), fails)
    assert without_damaged(readers.open(job)).notices == ()


@pytest.mark.parametrize("option", ["-o{out}/page.html", "--json", "--by=rank"])
def test_the_report_of_a_damaged_job_is_made_and_the_exit_code_says_partial(
    job, tmp_path, option, capsys
):
    first, _ = chunk(job / "rank4.parquet", "duration_s")
    overwrite(job / "rank4.parquet", first, b"\xff" * 16)
    with pytest.raises(SystemExit) as stop:
        main(["report", str(job), option.format(out=tmp_path)])
    assert stop.value.code == 3
    page = tmp_path / "page.html"
    text = page.read_text() if page.exists() else capsys.readouterr().out
    assert "unreadable-file" in text


class TestNoFilesAtAll:
    """Entries of the folder that are called like a run and are none."""

    def opened_without_rank_4(self, job):
        run = readers.open(job)
        (told,) = [n for n in run.notices if "rank4.parquet" in n.message]
        assert (told.code, told.partial) == ("unreadable-file", True)
        assert len(analyze(run).fleet.ranks) == RANKS - 1
        return told.message

    def test_a_folder(self, job):
        (job / "rank4.parquet").unlink()
        (job / "rank4.parquet").mkdir()
        assert "not a regular file" in self.opened_without_rank_4(job)

    def test_a_pipe_that_nobody_writes_to(self, job):
        (job / "rank4.parquet").unlink()
        os.mkfifo(job / "rank4.parquet")
        assert "not a regular file" in self.opened_without_rank_4(job)

    def test_a_link_to_itself(self, job):
        (job / "rank4.parquet").unlink()
        (job / "rank4.parquet").symlink_to(job / "rank4.parquet")
        self.opened_without_rank_4(job)

    def test_a_link_to_nothing(self, job):
        (job / "rank4.parquet").unlink()
        (job / "rank4.parquet").symlink_to(job / "gone")
        assert "there is no file" in self.opened_without_rank_4(job)

    def test_an_empty_file(self, job):
        (job / "rank4.parquet").write_bytes(b"")
        self.opened_without_rank_4(job)

    def test_a_run_of_a_version_to_come(self, job):
        path = job / "rank4.parquet"
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT 1 AS launch) TO '{path}' "
                '(FORMAT parquet, KV_METADATA {mansard: \'{"format": "mansard-run/99"}\'})'
            )
        assert "newer Mansard" in self.opened_without_rank_4(job)

    def test_parquet_of_others(self, job):
        duckdb.sql("SELECT 1 AS x").write_parquet(str(job / "rank4.parquet"))
        assert "not written by Mansard" in self.opened_without_rank_4(job)

    def test_a_folder_that_links_to_itself_is_no_input(self, tmp_path):
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        with pytest.raises(InputError):
            readers.open(tmp_path / "loop")


def test_a_file_that_may_not_be_read_is_named_and_left_out():
    # Root reads everything: as root, ask as nobody, for whom a temporary folder of pytest is shut.
    with tempfile.TemporaryDirectory(prefix="mansard-test-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        with engine.connect(threads=1) as connection:
            for rank in range(3):
                select = LAUNCHED.format(rank=rank, count=3)
                write_run(connection, select, Provenance(), folder / f"rank{rank}.parquet")
        opened = readers.open(folder)
        analyze(opened)  # all that is imported late is there now
        (folder / "rank1.parquet").chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            run = readers.open(folder)
            found = analyze(opened)
        finally:
            os.seteuid(user)
    assert [n.message.endswith("rank1.parquet: Permission denied") for n in run.notices] == [True]
    assert run.partial
    assert "rank1.parquet" in left_out(found)[0]
    assert found.totals.launches == 6
