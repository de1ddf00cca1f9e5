"""A run in S3: a real client against a server that speaks S3 on this machine."""

import socket

import pytest

from mansard import engine, readers
from mansard.analysis import analyze
from mansard.cli import main
from mansard.errors import InputError
from mansard.model.provenance import Provenance
from mansard.store import write_run

pytest.importorskip("s3fs", reason="the extra 's3' is not installed")
server = pytest.importorskip("moto.server", reason="no S3 server: moto[server] is not installed")
# What the client and the server leave open or use that is old is not ours.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::FutureWarning",
)

RANKS, LAUNCHES = 9, 3000


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with engine.connect(threads=1) as connection:
        for rank in range(RANKS):
            slow = 1.5 if rank == 3 else 1
            select = (
                f"SELECT {rank} AS rank, i AS launch, 'k' || i % 5 AS name, i * 1e-3 AS start_s, "
                f"(1 + hash(i + {rank}) % 1000 / 1e5) * 1e-4 * {slow} AS duration_s, "
                f"1e6 + hash(i) % 1000 AS bytes_dram FROM range({LAUNCHES}) AS r(i)"
            )
            write_run(connection, select, Provenance(), folder / f"rank{rank}.parquet")
    return folder


@pytest.fixture(scope="module")
def bucket(job):
    import s3fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    running.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        store = s3fs.S3FileSystem()
        store.mkdir("training-runs")
        for path in job.iterdir():
            store.put(str(path), f"training-runs/july/{path.name}")
        yield store
    running.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_folder_in_s3_gives_what_the_same_folder_gives_here(bucket, job):
    run = readers.open("s3://training-runs/july/")
    assert [str(file) for file in run.files] == [
        f"s3://training-runs/july/rank{n}.parquet" for n in range(RANKS)
    ]
    found, here = analyze(run), analyze(readers.open(job))
    assert [straggler.rank for straggler in found.fleet.stragglers] == [3]
    assert found.totals.launches == here.totals.launches == RANKS * LAUNCHES
    for rank, same in zip(found.fleet.ranks, here.fleet.ranks, strict=True):
        assert rank.compute_s == pytest.approx(same.compute_s, rel=1e-12)


def test_the_command_writes_a_page_of_a_run_in_s3(bucket, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["report", "s3://training-runs/july", "-o", str(tmp_path / "page.html")])
    assert stop.value.code in (None, 0)
    assert "s3://training-runs/july" in (tmp_path / "page.html").read_text()


def test_a_damaged_object_is_named_and_left_out(bucket):
    whole = bucket.cat("training-runs/july/rank4.parquet")
    for rank in range(3):
        content = bucket.cat(f"training-runs/july/rank{rank}.parquet")
        bucket.pipe(f"training-runs/hurt/rank{rank}.parquet", content)
    bucket.pipe("training-runs/hurt/rank3.parquet", b"PAR1" + b"\xff" * 999 + whole[1003:])
    found = analyze(readers.open("s3://training-runs/hurt/"))
    (told,) = [n.message for n in found.notices if n.code == "unreadable-file"]
    assert "s3://training-runs/hurt/rank3.parquet" in told
    assert found.totals.launches == 3 * LAUNCHES


@pytest.mark.parametrize("url", ["s3://training-runs/none/", "s3://no-such-bucket/run/"])
def test_what_is_not_there_is_said_in_one_line(bucket, url):
    with pytest.raises(InputError, match=url):
        readers.open(url)
