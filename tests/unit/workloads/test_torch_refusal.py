"""What cannot be built, and why."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mansard.workloads import Configuration, Unavailable, build, preset_size  # noqa: E402
from mansard.workloads.pytorch.refusal import why_not  # noqa: E402


def make(**changes):
    settings = {
        "model": "deeplab-resnet50",
        "framework": "torch",
        "precision": "fp32",
        "layout": "nchw",
        "optimizer": "adam-loop",
        "execution": "eager",
        "device": "cpu",
    } | changes
    return Configuration(size=preset_size(settings["model"], "tiny"), **settings)


TOKENS = {"model": "transformer-train", "layout": "none"}
DECODE = {"model": "transformer-decode", "layout": "none", "optimizer": "none"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"execution": "graph"}, "a CUDA graph needs a GPU"),
        ({"execution": "xla"}, "take compile"),
        ({"precision": "tf32"}, "take fp32 on the CPU"),
        ({"precision": "fp8"}, "DeepLab has no fp8"),
        ({"precision": "bf16"}, "DeepLab has no bf16"),
        ({"layout": "none"}, "layout none does not fit"),
        ({"optimizer": "none"}, "optimizer none does not fit"),
        ({"optimizer": "keras-adam"}, "take adam-fused"),
        ({"device": "mps"}, "no workload was tried on mps"),
        ({"device": "gpu7"}, "knows no device 'gpu7'"),
        (TOKENS | {"layout": "nhwc"}, "layout nhwc does not fit"),
        (DECODE | {"optimizer": "lamb"}, "optimizer lamb does not fit"),
        (DECODE | {"precision": "amp-bf16"}, "take bf16 for transformer-decode"),
        (
            {"execution": "graph", "precision": "amp-fp16", "device": "cuda:0"},
            "waits for the device",
        ),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_the_reason_is_said(changes, reason):
    with pytest.raises(Unavailable, match=reason):
        build(make(**changes))


def test_without_a_gpu_a_cuda_device_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Unavailable, match="mansard doctor"):
        build(make(device="cuda:0"))


@pytest.fixture
def gpu(monkeypatch):
    """One GPU of a given compute capability, as far as questions go."""

    def pretend(*capability):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)

    return pretend


def test_a_gpu_that_is_not_there_is_refused(gpu):
    gpu(9, 0)
    assert why_not(make(device="cuda:1")) == "there is no cuda:1: PyTorch sees 1 GPUs"


@pytest.mark.parametrize(
    ("precision", "needs"), [("tf32", "8.0"), ("amp-bf16", "8.0"), ("fp8", "8.9")]
)
def test_a_gpu_without_the_data_type_is_refused(gpu, precision, needs):
    gpu(7, 0)
    model = TOKENS if precision == "fp8" else {}
    reason = why_not(make(device="cuda:0", precision=precision, **model))
    assert reason == f"{precision} needs compute capability {needs}, this GPU has 7.0"


def test_fp8_runs_on_ada_and_hopper_but_not_on_ampere(gpu):
    for capability, fits in (((8, 0), False), ((8, 6), False), ((8, 9), True), ((9, 0), True)):
        gpu(*capability)
        assert (why_not(make(device="cuda:0", precision="fp8", **TOKENS)) is None) is fits


@pytest.mark.parametrize("optimizer", ["adam-loop", "adam-foreach", "adam-fused", "lamb"])
def test_every_optimizer_can_be_captured_in_a_graph(gpu, optimizer):
    gpu(9, 0)
    settings = {"device": "cuda:0", "execution": "graph", "optimizer": optimizer}
    assert why_not(make(precision="amp-bf16", **settings)) is None


def test_the_fused_adam_lets_scaled_gradients_be_captured_too(gpu):
    gpu(7, 0)
    settings = {"device": "cuda:0", "execution": "graph", "optimizer": "adam-fused"}
    assert why_not(make(precision="amp-fp16", **settings)) is None
