"""``mansard.profile`` over a fake GPU: the program goes on whatever happens to the collection."""

import contextlib
import subprocess
import sys

import duckdb
import pytest

from mansard.collect import phase, profile, profile_callable, session
from mansard.counters.table import table_for
from mansard.errors import CollectError, DeviceError, PermissionDeniedError, UsageError
from mansard.model.device import DeviceFacts

COUNTERS = ("gpu__time_duration.sum", "dram__bytes.sum")


@pytest.fixture
def machine(gpu, make_kernels, monkeypatch):
    """A fake H200 in the place of CUPTI; the iteration is the number of steps begun."""
    fake = gpu(make_kernels("gemm", "add"), counters=COUNTERS)
    fake.versions = {"cupti": "13.0", "cuda": "13.0"}
    fake.facts = lambda device: DeviceFacts(name="NVIDIA H200", chip="GH100")
    fake.table = lambda device: table_for(chip="GH100")
    monkeypatch.setattr(session, "CuptiInstruments", lambda columns: fake)
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)  # another test may have loaded it
    return fake


def names(path):
    return duckdb.sql(f"SELECT name, bytes_dram FROM read_parquet('{path}')").fetchall()


def test_a_loop_is_recorded_and_then_left_alone(machine, tmp_path, capsys):
    path = tmp_path / "run.parquet"
    done = []
    with profile(path, warmup=1) as taken:
        for _ in range(20):
            with taken.step():
                done.append(taken.done)
    assert len(done) == 20
    assert done.index(True) == 4  # warm-up, trace and two passes
    assert names(path) == [("gemm", 4.0), ("add", 3.0)]
    assert taken.failure is None
    assert machine.closed
    assert "2 kernels, 4 iterations" in capsys.readouterr().err


def test_operators_are_named_where_pytorch_is_loaded(machine, tmp_path, monkeypatch):
    class Namer:
        obstacle = None

        def __init__(self, torch, clock):
            self.torch = torch

        def start(self):
            assert self.torch == "PyTorch"

        def stop(self):
            pass

        def name(self, launches):
            return (("aten::mm", "fc"), ("aten::add", "norm"))

    monkeypatch.setitem(sys.modules, "torch", "PyTorch")
    monkeypatch.setattr(session, "TorchNamer", Namer)
    monkeypatch.setattr(session, "listen_to_torch", contextlib.nullcontext)
    path = tmp_path / "run.parquet"
    with profile(path, warmup=0) as taken:
        while not taken.done:
            with taken.step():
                pass
    found = duckdb.sql(f"SELECT op, module FROM read_parquet('{path}')").fetchall()
    assert found == [("aten::mm", "fc"), ("aten::add", "norm")]


def test_the_last_profile_takes_the_library_out_once_the_run_is_written(machine, tmp_path):
    path = tmp_path / "run.parquet"
    with profile(path, warmup=0, last=True) as taken:
        while not taken.done:
            with taken.step():
                pass
        assert path.exists()
        assert machine.log[-1] == "detach"
    assert machine.log.count("detach") == 1


def test_a_profile_that_another_may_follow_leaves_the_library_in_place(machine, tmp_path):
    with profile(tmp_path / "run.parquet", warmup=0) as taken:
        while not taken.done:
            with taken.step():
                pass
    assert "detach" not in machine.log


def test_in_a_job_of_several_ranks_the_library_stays(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with profile(tmp_path / "run.parquet", warmup=0, last=True) as taken:
        while not taken.done:
            with taken.step():
                pass
    assert "detach" not in machine.log
    # The trace begins at another time on each rank: its first iteration is dropped.
    assert machine.log.count("trace") == 2


def test_a_last_profile_that_is_cut_short_takes_the_library_out_too(machine, tmp_path):
    with profile(tmp_path / "run.parquet", warmup=0, last=True) as taken, taken.step():
        pass
    assert machine.log[-1] == "detach"


def test_the_run_is_written_as_soon_as_all_is_collected(machine, tmp_path):
    path = tmp_path / "run.parquet"
    with profile(path, warmup=0) as taken:
        while not taken.done:
            with taken.step():
                pass
        assert path.exists()
        assert taken.run is not None


def test_an_error_of_the_program_passes_and_what_was_recorded_stays(machine, tmp_path):
    path = tmp_path / "run.parquet"

    def program():
        with profile(path, warmup=0) as taken:
            for number in range(9):
                with taken.step():
                    if number == 1:
                        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program()
    assert names(path) == [("gemm", None), ("add", None)]
    assert all(counting.closed for counting in machine.countings)


def test_ctrl_c_hands_the_counters_back_too(machine, tmp_path):
    def program():
        with profile(tmp_path / "run.parquet", warmup=0) as taken:
            for number in range(9):
                with taken.step():
                    if number == 1:
                        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program()
    assert all(counting.closed for counting in machine.countings)
    assert machine.closed


def test_a_refusal_of_the_driver_does_not_stop_the_program(machine, tmp_path, capsys):
    def refuse(*_):
        raise PermissionDeniedError("no counters for you", slug="permission")

    machine.count_kernels = refuse
    steps = 0
    with profile(tmp_path / "run.parquet", warmup=0) as taken:
        for _ in range(6):
            with taken.step():
                steps += 1
    assert steps == 6
    assert isinstance(taken.failure, PermissionDeniedError)
    assert taken.run is not None
    assert taken.run.partial
    assert "the collection stopped: no counters for you" in capsys.readouterr().err


def test_a_fault_of_ours_does_not_stop_the_program_but_shows_itself(machine, tmp_path, capsys):
    machine.usable = lambda devices: 1 / 0
    with profile(tmp_path / "run.parquet", warmup=0) as taken:
        for _ in range(4):
            with taken.step():
                pass
    assert isinstance(taken.failure, CollectError)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_too_few_steps_are_told(machine, tmp_path, capsys):
    with profile(tmp_path / "run.parquet", warmup=5) as taken, taken.step():
        pass
    assert taken.run is None
    assert "nothing was recorded: 1 iterations ended, all of them warm-up" in str(taken.failure)
    assert not (tmp_path / "run.parquet").exists()
    assert "nothing was recorded" in capsys.readouterr().err


def test_steps_do_not_nest(machine, tmp_path):
    with profile(tmp_path / "run.parquet") as taken:
        taken.begin_step()
        with pytest.raises(UsageError, match="inside another step"):
            taken.begin_step()
        taken.end_step()
        with pytest.raises(UsageError, match="had not begun"):
            taken.end_step()


def test_phases_of_the_program_are_in_the_run(machine, tmp_path):
    path = tmp_path / "run.parquet"
    # The fake's clock starts where its kernels are launched, and counts its readings.
    machine.clock = 990_000
    with profile(path, warmup=0, level="trace") as taken:
        while not taken.done:
            with taken.step(), phase("mine"):
                machine.clock = 1_100_000
    found = duckdb.sql(f"SELECT DISTINCT phase FROM read_parquet('{path}')").fetchall()
    assert found == [("mine",)]


def test_a_function_is_called_as_often_as_the_passes_need(machine, tmp_path):
    called = []
    run = profile_callable(called.append, 7, path=tmp_path / "run.parquet", steps=2, warmup=1)
    assert called == [7] * (1 + 2 * (1 + 2))
    assert len(names(run.files[0])) == 4


def test_a_function_whose_profile_fails_raises(machine, tmp_path):
    machine.program.launches = lambda number: ()
    with pytest.raises(CollectError, match="launched no kernel"):
        profile_callable(lambda: None, path=tmp_path / "run.parquet")


@pytest.mark.parametrize(
    "wrong", [{"level": "all"}, {"phases": "mine"}, {"steps": 0}, {"warmup": -1}]
)
def test_values_that_do_not_exist_are_refused_before_anything_starts(wrong, tmp_path):
    with pytest.raises(UsageError):
        profile(tmp_path / "run.parquet", **wrong)


def test_without_a_gpu_the_profile_does_not_begin(tmp_path, monkeypatch):
    def no_driver(_columns):
        raise DeviceError("no NVIDIA driver was found")

    monkeypatch.setattr(session, "CuptiInstruments", no_driver)
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        profile(tmp_path / "run.parquet")


def test_each_rank_writes_its_own_file(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with profile(tmp_path / "run.parquet", warmup=0, level="trace") as taken:
        while not taken.done:
            with taken.step():
                pass
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["rank1.parquet"]


def test_an_output_that_cannot_be_written_leaves_the_program_alone(machine, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    with profile(tmp_path / "file" / "run.parquet", warmup=0, level="trace") as taken:
        for _ in range(3):
            with taken.step():
                pass
    assert taken.failure is not None
    assert "in the way" in (tmp_path / "file").read_text()
    assert "collection stopped" in capsys.readouterr().err


def test_importing_and_naming_phases_loads_nothing_heavy():
    code = (
        "import sys; from mansard.collect import phase\n"
        "with phase('x'): pass\n"
        "print([m for m in ('duckdb', 'torch', 'jax', 'matplotlib', 'cuda') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
