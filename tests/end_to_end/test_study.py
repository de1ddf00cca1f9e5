"""``mansard study`` as a person runs it, on a machine without a GPU."""

import importlib.util
import json
from ctypes.util import find_library

import pytest

from mansard.cli import INTERRUPTED, PARTIAL, main
from mansard.errors import MansardError
from mansard.study import frameworks
from mansard.study import run as study_run


@pytest.fixture(autouse=True)
def _all_installed(monkeypatch):
    """Leave it to the process of a cell to say what its framework cannot do here."""
    monkeypatch.setattr(frameworks, "absences", lambda _: {})


def mansard(*arguments):
    """Run the command; gives its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["study", "deepcam", *map(str, arguments)])
    return ended.value.code or 0


def test_the_list_names_every_cell_and_fits_80_columns(tmp_path, capsys):
    assert mansard("--list", "--device", "cpu", "-o", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = [line for line in lines if line[:2].strip().isdecimal()]
    assert len(titles) == 28
    assert max(map(len, titles)) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_quick_list_has_six(tmp_path, capsys):
    mansard("--list", "--quick", "--device", "cpu", "-o", tmp_path)
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_what_cannot_run_here_is_a_line_and_the_report_is_written(tmp_path, capsys):
    """A CUDA graph needs a GPU; without PyTorch, PyTorch is what is missing."""
    assert mansard("--device", "cpu", "--only", "adam-fused_graph", "-o", tmp_path) == PARTIAL
    assert "unavailable" in capsys.readouterr().out
    (cell,) = (tmp_path / "cells").iterdir()
    record = json.loads(cell.read_text(encoding="utf-8"))
    assert record["state"] == "unavailable"
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "This is a run on a CPU at a tiny size" in text
    assert record["reason"].split(":")[0] in text.replace("\\", "")


def test_without_any_framework_nothing_starts_and_one_sentence_says_what_to_install(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(frameworks, "absences", lambda names: dict.fromkeys(names, "is absent"))
    assert mansard("--device", "cpu", "-o", tmp_path / "new") == MansardError.exit_code
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "none of the 28 cells can run here" in told
    assert "pip install '.[torch]' for 24" in told
    assert not (tmp_path / "new").exists()


def test_a_framework_that_is_absent_is_told_once_and_its_cells_make_no_noise(
    tmp_path, capsys, monkeypatch
):
    absent = {"keras-jax": "Keras is not installed: get it", "keras-torch": "no Keras"}
    monkeypatch.setattr(frameworks, "absences", lambda _: absent)
    cells = ("--only", "keras-jax", "--only", "adam-fused_graph")
    assert mansard("--device", "cpu", *cells, "-o", tmp_path) == PARTIAL
    out, err = capsys.readouterr()
    assert err.count("Keras is not installed") == 1
    assert "2 cells cannot run: Keras is not installed: get it" in err
    assert "Keras/JAX" not in err  # no progress of cells that do not run
    assert "not installed: get it" not in out
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert report.count("not installed: get it") == 1


def test_files_that_could_not_be_used_are_told_and_are_an_exit_code(tmp_path, capsys):
    mansard("--device", "cpu", "--only", "adam-fused_graph", "-o", tmp_path)
    assert mansard("--report-only", "-o", tmp_path) == 0
    (cell,) = (tmp_path / "cells").iterdir()
    cell.with_name("cut.json").write_bytes(cell.read_bytes()[:200])
    capsys.readouterr()
    assert mansard("--report-only", "-o", tmp_path) == PARTIAL
    told = capsys.readouterr().err
    assert "left out" in told
    assert "cut.json is no cell of a study" in told


def test_a_run_that_is_gone_is_told(tmp_path, capsys):
    mansard("--device", "cpu", "--only", "adam-fused_graph", "-o", tmp_path)
    (cell,) = (tmp_path / "cells").iterdir()
    record = json.loads(cell.read_text(encoding="utf-8"))
    record |= {"state": "measured", "run": "gone.parquet", "step_s": [0.1, 0.1]}
    cell.write_text(json.dumps(record), encoding="utf-8")
    capsys.readouterr()
    assert mansard("--report-only", "-o", tmp_path) == PARTIAL
    assert "adam-fused graph is missing: there is no" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_cell_runs_on_the_cpu_and_is_kept(tmp_path, capsys):
    cell = ("--device", "cpu", "--only", "decode_torch_bf16_eager", "-o", tmp_path)
    assert mansard(*cell) == 0
    (file,) = (tmp_path / "cells").iterdir()
    record = json.loads(file.read_text(encoding="utf-8"))
    assert len(record["step_s"]) >= 20
    assert {each["phase"] for each in record["analytic"]} == {"forward"}
    before = file.read_bytes()
    capsys.readouterr()
    assert mansard(*cell) == 0
    assert "kept" in capsys.readouterr().out
    assert file.read_bytes() == before


@pytest.mark.gpu
@pytest.mark.skipif(find_library("cuda") is None, reason="needs an NVIDIA GPU")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_cell_runs_on_a_gpu_with_counters(tmp_path):
    assert mansard("--device", "cuda:0", "--only", "decode_torch_bf16_eager", "-o", tmp_path) == 0
    (file,) = (tmp_path / "cells").iterdir()
    record = json.loads(file.read_text(encoding="utf-8"))
    assert record["collect_reason"] is None
    assert record["timed_by"] == "device events between steps"
    assert record["energy_j"] > 0
    analytic = sum(each["flop"] for each in record["analytic"])
    counted = sum(each["flop"] for each in record["counted"])
    assert counted > 0.9 * analytic
    assert (tmp_path / "runs" / record["run"]).is_file()
    assert "Counted and analytic FLOP" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_machine_without_a_gpu_says_so(tmp_path, capsys, monkeypatch):
    from mansard.collect.cupti import driver
    from mansard.errors import DeviceError

    def no_driver():
        raise DeviceError("no NVIDIA driver was found")

    monkeypatch.setattr(driver, "load_driver", no_driver)
    mansard("--list", "-o", tmp_path)
    told = capsys.readouterr().err
    assert "no NVIDIA driver was found" in told
    assert "no counters, no Roofline" in told


def test_a_spent_budget_says_what_was_not_run(tmp_path, capsys):
    code = mansard("--device", "cpu", "--quick", "--budget", "0", "-o", tmp_path)
    assert code == PARTIAL
    told = capsys.readouterr().err
    assert "the time is out; not run: ResNet-50 PyTorch amp-bf16 nhwc adam-fused eager" in told
    assert not (tmp_path / "report.md").exists()


def test_an_interrupt_has_its_exit_code_and_says_what_was_not_run(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(study_run, "run_process", interrupted)
    assert mansard("--device", "cpu", "--only", "lamb", "-o", tmp_path) == INTERRUPTED
    assert "interrupted; not run: ResNet-50 PyTorch amp-bf16 nhwc lamb eager" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "tpu"), "'tpu' is no device"),
        (("--device", "cuda:x"), "'cuda:x' is no device"),
        (("--device", "cpu", "--only", "no-such"), "no cell of the study matches"),
        (("--report-only",), "holds no cell of a study"),
    ],
    ids=["device", "index", "pattern", "empty-folder"],
)
def test_a_mistake_is_one_sentence(tmp_path, capsys, arguments, words):
    assert mansard(*arguments, "-o", tmp_path / "none") == MansardError.exit_code
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_another_study_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["study", "resnet"])
    assert ended.value.code == MansardError.exit_code
    assert "choose one of deepcam" in capsys.readouterr().err
