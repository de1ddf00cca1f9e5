"""Folders of runs over time, with known truth."""

import json

import pytest
from rich.console import Console

from mansard import engine
from mansard.cli import main
from mansard.errors import InputError
from mansard.history import history, history_dict, history_view
from mansard.model.columns import RUN_COLUMNS
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Provenance
from mansard.store import write_run

TYPES = {column.name: column.sql_type for column in RUN_COLUMNS}


@pytest.fixture(scope="module")
def connection():
    with engine.connect(threads=1) as found:
        yield found


@pytest.fixture
def night(tmp_path, connection):
    """Write the run of a night: times by (kernel, phase), for some ranks and steps."""
    folder = tmp_path / "nights"
    folder.mkdir()

    def write(number, times, *, gpu="H200", commit=None, steps=1, name=None):
        values = ", ".join(
            f"({step}, '{kernel}', '{phase}', {duration_s!r})"
            for step in range(steps)
            for (kernel, phase), duration_s in times.items()
        )
        select = (
            "SELECT 0 AS rank, step, name, phase, duration_s FROM (VALUES "
            f"{values}) AS v(step, name, phase, duration_s)"
        )
        origin = Provenance(
            created=f"2026-03-{number + 1:02d}T03:00:00+00:00",
            devices=(DeviceFacts(name=gpu),),
            extra={"commit": commit or f"{number:040d}"[::-1]},
        )
        path = folder / f"{name or f'night{number}'}.parquet"
        write_run(connection, select, origin, path)
        return path

    write.folder = folder
    return write


def _times(gemm, norm=2e-3):
    return {("gemm", "forward"): gemm, ("norm", "backward"): norm}


def _wobble(number):
    return 1 + 0.002 * (number % 3)


def test_a_slower_kernel_is_found_with_night_and_commit(night):
    for number in range(20):
        slower = 1.3 if number >= 12 else 1.0
        night(number, _times(1e-3 * _wobble(number) * slower), commit=f"c{number}")
    found = history(night.folder)
    assert [(t.of, t.key) for t in found.slower] == [
        ("total", None), ("phase", "forward"), ("kernel", "gemm"),
    ]  # fmt: skip
    kernel = next(t for t in found.trends if t.key == "gemm")
    (change,) = kernel.changes
    assert found.nights[change.at].commit == "c12"
    assert change.ratio == pytest.approx(1.3, rel=0.01)


def test_runs_are_ordered_by_time_and_not_by_name(night):
    for number in range(3):
        night(number, _times(1e-3), name=f"z{9 - number}")
    assert [n.label for n in history(night.folder).nights] == [
        "z9.parquet", "z8.parquet", "z7.parquet",
    ]  # fmt: skip


def test_what_became_slower_and_was_repaired_is_a_change_but_not_slower_now(night):
    for number in range(24):
        slower = 1.3 if 8 <= number < 16 else 1.0
        night(number, _times(1e-3 * _wobble(number) * slower))
    found = history(night.folder)
    kernel = next(t for t in found.trends if t.key == "gemm")
    assert [change.at for change in kernel.changes] == [8, 16]
    assert found.slower == ()


def test_times_are_of_one_step_however_many_were_recorded(night):
    night(0, _times(1e-3, 2e-3), steps=1)
    night(1, _times(1e-3, 2e-3), steps=5)
    first, second = history(night.folder).nights
    assert first.total_s == second.total_s == pytest.approx(3e-3)
    assert second.kernels_s == pytest.approx({"gemm": 1e-3, "norm": 2e-3})
    assert second.steps == 5


def test_a_folder_of_ranks_is_one_run(night, tmp_path):
    path = night(0, _times(1e-3))
    job = night.folder / "job"
    job.mkdir()
    path.rename(job / "rank0.parquet")
    night(1, _times(1e-3))
    assert [n.label for n in history(night.folder).nights] == ["job", "night1.parquet"]


def test_runs_on_another_gpu_are_left_out_and_said(night):
    for number in range(3):
        night(number, _times(1e-3))
    night(3, _times(9e-3), gpu="A100")
    found = history(night.folder)
    assert len(found.nights) == 3
    assert "other-gpu" in [n.code for n in found.notices]


def test_a_damaged_run_is_named_and_the_rest_is_reported(night, capsys):
    for number in range(3):
        night(number, _times(1e-3))
    cut = night(3, _times(1e-3))
    cut.write_bytes(cut.read_bytes()[:200])
    found = history(night.folder)
    assert found.partial
    assert "night3.parquet" in found.notices[0].message
    with pytest.raises(SystemExit) as stop:
        main(["history", str(night.folder)])
    assert stop.value.code == 3
    assert "unreadable-file" in capsys.readouterr().out


def test_of_a_run_of_ranks_only_the_rank_that_is_damaged_inside_is_left_out(night):
    job = night.folder / "job"
    job.mkdir()
    for rank in range(3):
        night(0, _times(1e-3)).rename(job / f"rank{rank}.parquet")
    content = (job / "rank1.parquet").read_bytes()
    (job / "rank1.parquet").write_bytes(b"PAR1" + b"\xff" * 200 + content[204:])
    found = history(night.folder)
    assert [n.label for n in found.nights] == ["job"]
    assert found.partial
    assert "rank1.parquet" in found.notices[0].message


def test_few_runs_are_shown_and_not_judged(night):
    for number in range(4):
        night(number, _times(1e-3 * (1 + number)))
    found = history(night.folder)
    assert [trend.changes for trend in found.trends] == [()] * len(found.trends)
    assert "few-runs" in [n.code for n in found.notices]


def test_an_empty_folder_and_a_file_are_refused_with_a_reason(tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        history(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        history(tmp_path / "nothing")


def test_the_command_returns_1_where_something_is_slower(night, capsys):
    for number in range(20):
        night(number, _times(1e-3 * _wobble(number) * (1.3 if number >= 12 else 1)))
    with pytest.raises(SystemExit) as stop:
        main(["history", str(night.folder), "--json"])
    assert stop.value.code == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "mansard-history/1"
    assert len(told["runs"]) == 20
    assert [t["slower"] for t in told["trends"] if t["key"] == "gemm"] == [True]
    with pytest.raises(SystemExit) as stop:
        main(["history", str(night.folder)])
    assert stop.value.code == 1


def test_the_command_returns_0_where_nothing_changed(night, capsys):
    for number in range(10):
        night(number, _times(1e-3 * _wobble(number)))
    with pytest.raises(SystemExit) as stop:
        main(["history", str(night.folder)])
    assert stop.value.code == 0
    assert "none beyond the noise" in capsys.readouterr().out


def test_the_table_fits_80_columns_and_escapes_names(night):
    for number in range(10):
        night(number, {("a[red]\x1b[31mkernel" + "x" * 300, "p\nq"): 1e-3 * (1 + (number >= 5))})
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(history_view(history(night.folder)))
    console.file.close()
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "[red]" in text


def test_json_holds_no_number_that_json_does_not_know(night):
    for number in range(12):
        times = {("new", "p"): 1e-3} if number >= 6 else {}
        night(number, {("old", "p"): 1e-3, **times})
    told = history_dict(history(night.folder))
    json.dumps(told, allow_nan=False)
    new = next(t for t in told["trends"] if t["key"] == "new")
    assert new["changes"][0]["ratio"] is None
