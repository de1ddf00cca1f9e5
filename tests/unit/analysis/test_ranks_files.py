"""A job of many files of which some are missing, cut short or foreign: the rest is reported."""

import pytest

from mansard import readers
from mansard.analysis import analyze
from mansard.errors import FormatError
from mansard.model.provenance import Provenance


@pytest.fixture
def job(tmp_path, write_rows):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(12):
        rows = [{"rank": rank, "launch": n, "name": "gemm", "duration_s": 1e-3} for n in range(3)]
        write_rows(rows, folder / f"rank{rank}.parquet")
    return folder


def _analyzed(folder):
    run = readers.open(folder)
    return run, analyze(run)


def test_a_whole_job_is_not_partial(job):
    run, found = _analyzed(job)
    assert (len(found.fleet.ranks), run.partial, run.notices) == (12, False, ())


def test_a_missing_rank_is_named(job):
    (job / "rank5.parquet").unlink()
    run, found = _analyzed(job)
    assert run.partial
    assert [n.code for n in run.notices] == ["rank-missing"]
    assert run.notices[0].message.endswith("no file of 1 of 12 ranks: 5")
    assert len(found.fleet.ranks) == 11


def test_ranks_that_are_missing_at_the_end_are_named_where_the_job_said_how_many_it_had(
    job, write_rows
):
    rows = [{"rank": 0, "launch": 0, "name": "gemm", "duration_s": 1e-3}]
    write_rows(rows, job / "rank0.parquet", Provenance(extra={"world_size": "15"}))
    run = readers.open(job)
    assert [n.code for n in run.notices] == ["rank-missing"]
    assert run.notices[0].message.endswith("no file of 3 of 15 ranks: 12, 13, 14")


@pytest.mark.parametrize("size", ["", "2", "-3", "many", "9" * 40])
def test_a_number_of_ranks_that_cannot_be_or_is_less_says_nothing(job, write_rows, size):
    rows = [{"rank": 0, "launch": 0, "name": "gemm", "duration_s": 1e-3}]
    write_rows(rows, job / "rank0.parquet", Provenance(extra={"world_size": size}))
    codes = [n.code for n in readers.open(job).notices]
    assert codes == []


def test_a_file_cut_short_is_named_and_left_out(job):
    cut = job / "rank7.parquet"
    cut.write_bytes(cut.read_bytes()[:-100])
    run, found = _analyzed(job)
    assert run.partial
    assert "rank7.parquet" in run.notices[0].message
    assert 7 not in {rank.rank for rank in found.fleet.ranks}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello, I am no Parquet file"])
def test_a_file_that_only_claims_to_be_a_run_is_named_and_left_out(job, content):
    (job / "rank7.parquet").write_bytes(content)
    run, found = _analyzed(job)
    assert run.partial
    assert "rank7.parquet" in run.notices[0].message
    assert len(found.fleet.ranks) == 11


def test_a_foreign_file_beside_the_runs_is_named_and_takes_nothing_away(job):
    (job / "notes.txt").write_text("hello")
    run, found = _analyzed(job)
    assert not run.partial
    assert [(n.code, "notes.txt" in n.message) for n in run.notices] == [("file-skipped", True)]
    assert len(found.fleet.ranks) == 12


def test_a_foreign_file_that_was_given_by_name_is_an_error(job):
    (job / "notes.txt").write_text("hello")
    with pytest.raises(FormatError, match=r"notes\.txt"):
        readers.open(job / "rank0.parquet", job / "notes.txt")
