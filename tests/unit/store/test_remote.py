"""Runs at URLs, on a file system of fsspec that lives in memory, and how failures are told."""

import sys

import pytest

from mansard import engine, readers
from mansard.analysis import analyze
from mansard.charts.page import page_html, read_detail
from mansard.cli import main
from mansard.errors import FormatError, InputError, UsageError
from mansard.location import RemoteFile, local_path, scheme_of
from mansard.model.provenance import Provenance
from mansard.store import open_run, write_run

fsspec = pytest.importorskip("fsspec", reason="the package fsspec is not installed")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with engine.connect(threads=1) as connection:
        for rank in (10, *range(10)):
            select = (
                f"SELECT {rank} AS rank, i AS launch, 'k' AS name, i * 1e-3 AS start_s, "
                f"(1 + hash(i + {rank}) % 100 / 1e4) * 1e-4 AS duration_s FROM range(50) AS r(i)"
            )
            write_run(connection, select, Provenance(), folder / f"rank{rank}.parquet")
    return folder


@pytest.fixture
def store(job):
    memory = fsspec.filesystem("memory")
    for path in job.iterdir():
        memory.pipe(f"/bucket/run/{path.name}", path.read_bytes())
    memory.pipe("/bucket/run/notes.txt", b"x")
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def test_a_folder_at_a_url_gives_what_the_same_folder_gives_here(store, job):
    run = readers.open("memory://bucket/run/")
    assert [file.name for file in run.files] == [f"rank{n}.parquet" for n in range(11)]
    assert run.label == "memory://bucket/run/"
    found, here = analyze(run), analyze(readers.open(job))
    # Sums may be taken in another order.
    for rank, same in zip(found.fleet.ranks, here.fleet.ranks, strict=True):
        assert (rank.rank, rank.launches) == (same.rank, same.launches)
        assert rank.compute_s == pytest.approx(same.compute_s, rel=1e-12)
    assert [(k.key, k.launches) for k in found.kernels] == [
        (k.key, k.launches) for k in here.kernels
    ]
    assert [n.code for n in found.notices] == [n.code for n in here.notices]
    assert "k" in page_html(found, read_detail(run, found))


def test_one_file_at_a_url(store):
    run = readers.open("memory://bucket/run/rank3.parquet")
    assert [file.name for file in run.files] == ["rank3.parquet"]
    assert analyze(run).totals.launches == 50


def test_a_file_that_is_damaged_inside_is_named_and_left_out_there_too(store):
    whole = store.cat("/bucket/run/rank4.parquet")
    store.pipe("/bucket/run/rank4.parquet", b"PAR1" + b"\xff" * 1000 + whole[1004:])
    run = readers.open("memory://bucket/run/")
    assert len(run.files) == 11
    found = analyze(run)
    (told,) = [n for n in found.notices if n.code == "unreadable-file"]
    assert "rank4.parquet" in told.message
    assert found.totals.launches == 500


def test_a_file_that_is_cut_short_or_vanishes_is_named(store):
    store.pipe("/bucket/run/rank4.parquet", b"PAR1 cut")
    run = readers.open("memory://bucket/run/")
    assert ["rank4.parquet" in n.message for n in run.notices if n.code == "unreadable-file"] == [
        True
    ]
    store.rm("/bucket/run/rank5.parquet")
    found = analyze(run)
    assert found.totals.launches == 9 * 50


def test_the_command_takes_a_url(store, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", "memory://bucket/run/", "--json"])
    assert stop.value.code in (None, 0)
    assert '"label": "memory://bucket/run/"' in capsys.readouterr().out


@pytest.mark.parametrize("url", ["memory://bucket/none/", "memory://bucket/run/none.parquet"])
def test_where_there_is_nothing_it_is_said(store, url):
    with pytest.raises(InputError, match=r"there is no \.parquet file at memory://bucket"):
        readers.open(url)


def test_a_folder_of_other_files_is_no_run(store):
    store.pipe("/bucket/other/x.parquet", b"PAR1 no footer PAR1")
    with pytest.raises(FormatError, match=r"no file in memory://bucket/other is a run"):
        open_run("memory://bucket/other")


def test_a_scheme_that_nobody_knows_and_one_without_its_package(monkeypatch):
    with pytest.raises(UsageError, match="nosuch:// cannot be read"):
        readers.open("nosuch://bucket/run")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'mansard\[s3\]'"):
        readers.open("s3://bucket/run")


def test_without_fsspec_the_message_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(SystemExit) as stop:
        main(["report", "s3://bucket/run/"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "pip install 'mansard[s3]'" in said
    assert "doctor --explain remote-file" in said


def test_an_error_of_the_store_is_one_line(store, monkeypatch):
    def refuses(*_, **__):
        raise PermissionError("Access Denied\nmore")

    monkeypatch.setattr(type(store), "isfile", refuses)
    with pytest.raises(InputError, match=r"cannot read memory://.*PermissionError: Access Denied$"):
        readers.open("memory://bucket/run/")


def test_a_file_url_is_a_path(job, tmp_path):
    odd = tmp_path / "a b%41"
    odd.mkdir()
    (odd / "rank0.parquet").write_bytes((job / "rank0.parquet").read_bytes())
    assert local_path(odd.as_uri()) == odd
    run = readers.open(odd.as_uri())
    assert (run.files, run.label) == ((odd / "rank0.parquet",), "a b%41")


@pytest.mark.parametrize("text", ["run.parquet", "./a:b", "C:/run", "/s3://x", "a//b", "-"])
def test_what_is_no_url_is_a_path(text):
    assert scheme_of(text) is None


def test_a_remote_file_is_called_like_a_path():
    file = RemoteFile("s3://b/run/rank1.parquet")
    assert (str(file), file.name, file.absolute()) == (file.url, "rank1.parquet", file)
