"""The segmentation network in Keras: one process for each backend, three curves."""

import dataclasses
import functools
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mansard.workloads import Configuration, Unavailable, build
from mansard.workloads.keras.refusal import why_not, why_not_on_gpu
from mansard.workloads.workload import TINY, TINY_TOKENS

PROCESS = Path(__file__).with_name("keras_process.py")
BACKENDS = ("torch", "jax", "tensorflow")
PATIENCE_S = 300
PHASES = {"eager": ["forward", "backward", "optimizer"], "xla": ["step"]}
PHASES["xla-gradients"] = PHASES["xla"]
PHASES["graph"] = PHASES["eager"]


def make(**changes):
    settings = {
        "model": "deeplab-resnet50",
        "framework": "keras-jax",
        "precision": "amp-bf16",
        "layout": "nhwc",
        "optimizer": "keras-adam",
        "execution": "xla",
        "size": TINY,
        "device": "cuda:0",
    }
    return Configuration(**(settings | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "deeplab-xception"}, "is not written in Keras"),
        ({"model": "transformer-train", "size": TINY_TOKENS}, "is not written in Keras"),
        ({"precision": "fp8"}, "DeepLab has no fp8"),
        ({"layout": "none"}, "images have a layout"),
        ({"optimizer": "adam-fused"}, "take keras-adam"),
        ({"execution": "eager"}, "keras-jax has no execution eager: take xla or xla-gradients"),
        ({"framework": "keras-torch"}, "keras-torch has no execution xla: take eager"),
        ({"framework": "keras-tensorflow", "execution": "compile"}, "take xla or graph or eager"),
        ({"device": "mps"}, "no workload was tried on mps"),
        ({"device": "cpu", "precision": "tf32"}, "TF32 is a format of NVIDIA GPUs"),
        (
            {"device": "cpu", "framework": "keras-tensorflow", "layout": "nchw"},
            "no NCHW convolutions for CPUs",
        ),
    ],
)
def test_what_keras_does_not_run_is_refused_with_the_alternative(changes, message):
    assert message in why_not(make(**changes))


def test_what_keras_runs_is_not_refused():
    assert why_not(make()) is None
    assert why_not(make(framework="keras-tensorflow", execution="graph", layout="nchw")) is None
    assert why_not(make(framework="keras-torch", execution="eager", device="cpu")) is None


def test_an_old_gpu_is_told_what_it_lacks():
    assert (
        why_not_on_gpu(make(), (7, 0)) == "amp-bf16 needs compute capability 8.0, this GPU has 7.0"
    )
    assert why_not_on_gpu(make(precision="amp-fp16"), (7, 0)) is None
    assert why_not_on_gpu(make(), (9, 0)) is None


@pytest.mark.parametrize(
    ("absent", "message"),
    [("keras", r"Keras 3 is not installed: pip install 'mansard\[keras,jax\]'"),
     ("jax", r"JAX is not installed: pip install 'mansard\[keras,jax\]'")],
)  # fmt: skip
def test_the_remedy_of_a_missing_package_is_said(monkeypatch, absent, message):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == absent else name)
    with pytest.raises(Unavailable, match=message):
        build(make())


def start(backend, folder):
    """One process that checks what it can see of its backend, then runs the example."""
    options = ["--size", "tiny", "--steps", "5", "--device", "cpu", "--precision", "fp32", "--json"]
    # The other executions are tried on a small network, which compiles in no time.
    options += ["--execution", "eager"] if backend != "jax" else []
    return subprocess.Popen(
        [sys.executable, PROCESS, folder, f"keras-{backend}", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "KERAS_BACKEND": backend,
            "CUDA_VISIBLE_DEVICES": "-1",
            "OMP_NUM_THREADS": "1",
            # JAX tells of constants of this size: the images are larger, the class weights smaller.
            "JAX_CAPTURED_CONSTANTS_WARN_BYTES": "1000",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # Half the time to compile; the steps are few.
            "XLA_FLAGS": "--xla_backend_optimization_level=0 "
            "--xla_llvm_disable_expensive_passes=true",
        },
    )


def outcomes(folder):
    """What the processes of all backends found, and what the example printed in them.

    Workers that run tests at the same time share them: the first to make the folder starts them.
    """
    done = folder / "outcomes.json"
    try:
        folder.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + PATIENCE_S
        while not done.exists():
            assert time.monotonic() < deadline, "the worker that runs the backends did not end"
            time.sleep(0.2)
        return json.loads(done.read_text())
    running = {each: start(each, folder) for each in BACKENDS if missing(each) is None}
    record = {}
    for backend, process in running.items():
        try:
            printed, complaints = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, complaints = process.communicate()
        record[backend] = {"error": f"exit {process.returncode}: {complaints[-2000:]}"}
        if process.returncode == 0:
            checks = json.loads((folder / f"{backend}.found.json").read_text())
            record[backend] = {"checks": checks, "trained": json.loads(printed.splitlines()[-1])}
    part = folder / "outcomes.part"
    part.write_text(json.dumps(record))
    part.replace(done)
    return record


def missing(backend):
    packages = ("keras", backend)
    return next((each for each in packages if importlib.util.find_spec(each) is None), None)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    return functools.cache(lambda: outcomes(shared / "keras-backends"))


@pytest.fixture
def ran(found):
    def look(backend):
        absent = missing(backend)
        if absent is not None:
            pytest.skip(f"{absent} is not installed")
        record = found()[backend]
        assert "error" not in record, record["error"]
        return record

    return look


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_training_script_lowers_the_loss_in_every_step(ran, backend):
    losses = ran(backend)["trained"]["losses"]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_backends_give_the_same_curve_from_one_seed(ran, backend):
    losses, torch = (ran(each)["trained"]["losses"] for each in (backend, "torch"))
    # The forward pass on drawn weights and generated images.
    assert losses[0] == pytest.approx(torch[0], rel=1e-5)
    # Adam's first steps are signs, and a tiny map has few values for each batch norm: rounding
    # grows to a few parts in a thousand.
    assert losses == pytest.approx(torch, rel=2e-2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_small_network_gives_the_same_curve_everywhere(ran, backend):
    expected = ran("torch")["checks"]["small"]["eager fp32"]["losses"]
    assert expected[-1] < expected[0]
    for name, each in ran(backend)["checks"]["small"].items():
        # bfloat16 has 8 bits, float16 has 11.
        close = {"fp32": 2e-6, "amp-fp16": 2e-4, "amp-bf16": 4e-3}[name.split()[1]]
        assert each["losses"] == pytest.approx(expected, rel=close), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_says_its_phases(ran, backend):
    for name, each in ran(backend)["checks"]["small"].items():
        assert each["ranges"] == PHASES[name.split()[0]], name


def test_images_are_no_constants_of_the_compiled_program(ran):
    for name, each in ran("jax")["checks"]["small"].items():
        assert each["captured"] == [], name


def test_written_gradients_are_those_that_jax_derives(ran):
    compared = ran("jax")["checks"]["gradients"]
    assert len(compared) == 6
    for name, differences in compared.items():
        assert len(differences) == 3  # scores, gradient of the map, gradient of the weights
        assert max(differences) < 1e-6, name


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_process_keeps_its_backend(ran, backend):
    said = ran(backend)["checks"]["other backend"]
    other = "torch" if backend == "jax" else "jax"
    assert f"cannot change: start another one with KERAS_BACKEND={other}" in said


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_callback_marks_each_batch_and_leaves_fit_as_it_is(ran, backend):
    fit = ran(backend)["checks"]["fit"]
    assert fit["seen"] == ["begin", "end"] * 3
    assert fit["watched"] == fit["plain"]


def test_the_network_is_the_mirror_image_of_the_one_in_pytorch(ran):
    compared = ran("torch")["checks"]["pytorch"]
    assert compared["left"] == []  # every weight of PyTorch's has a place
    assert compared["spread"] > 0.05
    assert compared["difference"] < 2e-5


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_and_work_are_those_of_the_network_in_pytorch(ran, backend):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from mansard.workloads.pytorch.deeplab import make_deeplab
    from mansard.workloads.pytorch.images import image_flop

    with torch.device("meta"):
        network = make_deeplab("deeplab-resnet50", TINY)
    trained = ran(backend)["trained"]
    assert trained["parameters"] == sum(each.numel() for each in network.parameters())
    flop = [dataclasses.astuple(each) for each in image_flop("deeplab-resnet50", TINY)]
    assert [tuple(each) for each in trained["flop"]] == flop


def test_weights_come_back_and_other_files_are_refused_in_one_sentence(ran):
    said = ran("torch")["checks"]["files"]
    assert said["good"] is True
    assert "d/kernel is float32 (4, 3), expected float (4, 2)" in said["other size"]
    assert "text.npz holds no weights" in said["text"]
    assert "pickled.npz holds no weights" in said["pickled"]
    assert "No such file" in said["missing"]
