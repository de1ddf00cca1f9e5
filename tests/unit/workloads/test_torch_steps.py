"""Whole steps on the CPU, at the smallest size."""

import contextlib
import functools
import gc
import types
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mansard.collect.torch_hooks import TorchHooks  # noqa: E402
from mansard.collect.torch_phases import Event  # noqa: E402
from mansard.workloads import Configuration, ImageSize, build, preset_size  # noqa: E402
from mansard.workloads.climate import class_weights, generate  # noqa: E402
from mansard.workloads.pytorch import step  # noqa: E402
from mansard.workloads.pytorch.deeplab import make_deeplab  # noqa: E402
from mansard.workloads.pytorch.precision import ARITHMETIC, switched  # noqa: E402

SIZE = ImageSize(batch=2, height=32, width=48, slim=8)


def make(**changes):
    settings = {
        "model": "deeplab-resnet50",
        "framework": "torch",
        "precision": "fp32",
        "layout": "nchw",
        "optimizer": "adam-foreach",
        "execution": "eager",
        "device": "cpu",
        "seed": 5,
    } | changes
    default = (
        SIZE if settings["model"].startswith("deeplab") else preset_size(settings["model"], "tiny")
    )
    return Configuration(**({"size": default} | settings))


def losses(workload, steps=5):
    found = []
    for _ in range(steps):
        workload.step()
        found.append(workload.loss())
    return found


def weights_after(configuration, monkeypatch, steps=3):
    """Weights after some steps; the network is taken where the step gets it."""
    networks = []
    real = make_deeplab

    def keep(*arguments):
        networks.append(real(*arguments))
        return networks[-1]

    monkeypatch.setattr("mansard.workloads.pytorch.images.make_deeplab", keep)
    losses(build(configuration), steps)
    return [weight.detach().clone() for weight in networks[0].parameters()]


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adam-loop"},
        {"layout": "nhwc"},
        {"model": "deeplab-xception", "optimizer": "adam-fused"},
        {"precision": "amp-bf16", "optimizer": "lamb"},
        {"precision": "amp-fp16"},
        {"model": "transformer-train", "layout": "none"},
        {"model": "transformer-train", "layout": "none", "precision": "bf16", "optimizer": "lamb"},
        {"model": "transformer-train", "layout": "none", "precision": "fp8"},
    ],
    ids=lambda changes: "-".join(changes.values()),
)
def test_the_loss_falls_in_every_step(changes):
    found = losses(build(make(**changes)))
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_before_the_first_step_there_is_no_loss():
    assert build(make()).loss() is None


def test_the_first_loss_is_the_weighted_cross_entropy_of_the_pixels():
    configuration = make()
    batch = generate(SIZE, 5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network = make_deeplab("deeplab-resnet50", SIZE)
    scores = network(torch.from_numpy(batch.images)).detach().double().numpy()
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance = np.take_along_axis(
        odds / odds.sum(axis=1, keepdims=True), batch.labels[:, None], axis=1
    )
    weighed = -np.log(chance[:, 0]) * np.array(class_weights(3))[batch.labels]
    assert losses(build(configuration), 1)[0] == pytest.approx(weighed.mean(), rel=1e-5)


def test_the_same_seed_gives_the_same_losses_and_another_gives_others():
    assert losses(build(make()), 2) == losses(build(make()), 2)
    assert losses(build(make(seed=6)), 1) != losses(build(make()), 1)


def test_building_leaves_the_random_numbers_of_the_program_alone():
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    build(make())
    assert torch.equal(torch.rand(1), wanted)


def test_both_layouts_give_the_same_loss():
    nchw, nhwc = losses(build(make()), 2), losses(build(make(layout="nhwc")), 2)
    assert nhwc[0] == pytest.approx(nchw[0], rel=1e-5)
    # The first step of Adam goes by the sign of each gradient, and rounding decides those near 0.
    assert nhwc[1] == pytest.approx(nchw[1], rel=0.02)


def test_mixed_precision_gives_nearly_the_same_first_loss():
    exact = losses(build(make()), 1)[0]
    for precision in ("amp-bf16", "amp-fp16"):
        assert losses(build(make(precision=precision)), 1)[0] == pytest.approx(exact, rel=0.02)


def test_the_three_adams_give_the_same_weights(monkeypatch):
    loop, foreach, fused = (
        weights_after(make(optimizer=name), monkeypatch, steps=1)
        for name in ("adam-loop", "adam-foreach", "adam-fused")
    )
    for one, two, three in zip(loop, foreach, fused, strict=True):
        torch.testing.assert_close(two, one)
        torch.testing.assert_close(three, one)


def test_lamb_moves_otherwise_than_adam(monkeypatch):
    adam = weights_after(make(), monkeypatch, steps=1)
    lamb = weights_after(make(optimizer="lamb"), monkeypatch, steps=1)
    assert any(not torch.allclose(one, two) for one, two in zip(adam, lamb, strict=True))


def test_samples_of_the_data_set_take_the_place_of_generated_images(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    batch = generate(SIZE, 5)
    for index in range(2):
        with h5py.File(tmp_path / f"data-{index}.h5", "w") as file:
            file["climate/data"] = batch.images[index].transpose(1, 2, 0)
            file["climate/labels_0"] = batch.labels[index]
    # The generated images already have the range 0 to 1, so the files hold the same batch.
    read = losses(build(make(), samples=tmp_path), 1)
    assert read == pytest.approx(losses(build(make()), 1), rel=1e-5)


def test_the_work_of_a_step_is_the_sum_of_its_layers():
    workload = build(make())
    assert [each.name for each in workload.layers][:2] == [
        "encoder.stem.0.0",
        "encoder.first.0.body.0.0",
    ]
    for phase in ("forward", "backward"):
        whole = sum(each.flop for each in workload.flop if each.phase == phase)
        assert whole == sum(getattr(each, phase) for each in workload.layers)


def test_the_number_of_parameters_is_told():
    network = make_deeplab("deeplab-resnet50", SIZE)
    assert build(make()).parameters == sum(weight.numel() for weight in network.parameters())


def test_a_compiled_step_is_one_graph_with_the_losses_of_the_eager_one(monkeypatch):
    # The compiler's code generator alone takes half a minute for C++; what it is given is the same.
    traced = functools.partial(torch.compile, backend="aot_eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", traced)
    tokens = {"model": "transformer-train", "layout": "none"}
    compiled = losses(build(make(execution="compile", **tokens)), 3)
    assert compiled == pytest.approx(losses(build(make(**tokens)), 3), rel=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adam-loop"},
        {"optimizer": "lamb", "precision": "amp-bf16"},
        {"optimizer": "adam-fused", "precision": "amp-fp16"},
        {"model": "transformer-train", "layout": "none"},
    ],
    ids=lambda changes: "-".join(changes.values()),
)
def test_the_collector_sees_one_backward_and_one_optimizer_in_each_step(changes):
    workload = build(make(**changes))
    seen, optimizers = [], []
    hooks = TorchHooks(torch, seen.append, optimizers.append)
    hooks.install()
    try:
        workload.step()
        workload.step()
    finally:
        hooks.remove()
    one = [
        Event.BACKWARD_BEGIN,
        Event.BACKWARD_END,
        Event.OPTIMIZER_BEGIN,
        Event.OPTIMIZER_END,
    ]
    assert seen == 2 * one
    assert len(set(optimizers)) == 1
    assert workload.phases == "torch"


@pytest.mark.parametrize(("precision", "tf32"), [("fp32", False), ("tf32", True)])
def test_tf32_is_on_in_a_step_where_the_precision_has_it_and_as_before_afterwards(precision, tf32):
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (cudnn.allow_tf32, cudnn.benchmark, torch.get_float32_matmul_precision())
    with switched(ARITHMETIC[precision]):
        assert cudnn.allow_tf32 is tf32
        assert matmul.allow_tf32 is tf32
        assert cudnn.benchmark
    assert (cudnn.allow_tf32, cudnn.benchmark, torch.get_float32_matmul_precision()) == before


def test_the_switches_are_put_back_after_an_error():
    with pytest.raises(KeyError), switched(ARITHMETIC["tf32"]):
        raise KeyError
    assert torch.get_float32_matmul_precision() == "highest"


class FakeCuda:
    """Stands in for torch.cuda: notes what is asked of it, and replays what was captured."""

    def __init__(self):
        self.log = []
        self.recording = False

    def Stream(self):
        return types.SimpleNamespace(wait_stream=lambda _: self.log.append("side waits"))

    def current_stream(self):
        return types.SimpleNamespace(wait_stream=lambda _: self.log.append("main waits"))

    def stream(self, _):
        return contextlib.nullcontext()

    def CUDAGraph(self):
        return types.SimpleNamespace(replay=lambda: self.log.append("replay"))

    @contextlib.contextmanager
    def graph(self, _):
        self.recording = True
        yield
        self.recording = False


def test_a_graph_is_captured_after_a_warm_up_on_its_own_stream_and_then_replayed(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(step.torch, "cuda", fake)

    def body():
        fake.log.append("capture" if fake.recording else "run")
        return torch.ones(())

    runner = step.captured(body)
    assert runner.last is None
    runner()
    runner()
    assert fake.log == [
        "side waits", "run", "run", "run", "main waits", "capture", "replay", "replay",
    ]  # fmt: skip
    assert runner.last == 1


def test_a_graph_keeps_the_weights_and_inputs_that_it_was_captured_from(monkeypatch):
    # Its addresses would be given to other tensors: tokens became any number, and a GPU stopped.
    monkeypatch.setattr(step.torch, "cuda", FakeCuda())
    gone = []

    def make_body():
        weights = torch.ones(2)
        weakref.finalize(weights, gone.append, "weights")
        return weights.sum

    runner = step.captured(make_body())
    gc.collect()
    assert not gone
    runner()
    del runner
    gc.collect()
    assert gone == ["weights"]


def test_a_replayed_graph_is_one_phase_of_its_own(monkeypatch):
    fake, named = FakeCuda(), []

    @contextlib.contextmanager
    def noted(name):
        named.append(name)
        yield

    monkeypatch.setattr(step.torch, "cuda", fake)
    monkeypatch.setattr(step, "phase", noted)
    step.captured(lambda: torch.ones(()))()
    assert named == ["step"]
