"""What needs an NVIDIA GPU: CUDA graphs, TF32, and 8-bit products in tensor cores."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.nn import functional  # noqa: E402

from mansard.workloads import Configuration, ImageSize, Unavailable, build, preset_size  # noqa: E402
from mansard.workloads.pytorch.precision import ARITHMETIC, switched  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no NVIDIA GPU"),
    # PyTorch warns of a capturable optimizer in a graph's warm-up, and of float32 without TF32.
    pytest.mark.filterwarnings("default"),
]

WARMUP = 3


@pytest.fixture(autouse=True)
def _sound_gpu():
    """A fault on the GPU lasts as long as the process: it belongs to one test, not to all after."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        pytest.skip(f"the GPU stopped in an earlier test: {str(error).splitlines()[0]}")
    yield
    torch.cuda.synchronize()


def workload(**changes):
    settings = {
        "model": "deeplab-resnet50",
        "framework": "torch",
        "precision": "fp32",
        "layout": "nhwc",
        "optimizer": "adam-fused",
        "execution": "eager",
        "device": "cuda:0",
    } | changes
    image = settings["model"].startswith("deeplab")
    if image:
        size = ImageSize(batch=2, height=64, width=96, slim=2)
    else:
        size = preset_size(settings["model"], "tiny")
        settings["layout"] = "none"
    try:
        return build(Configuration(**({"size": size} | settings)))
    except Unavailable as reason:
        pytest.skip(str(reason))


def losses(**changes):
    steps = changes.pop("steps")
    built = workload(**changes)
    found = []
    for _ in range(steps):
        built.step()
        found.append(built.loss())
    return found


@pytest.mark.parametrize("optimizer", ["adam-loop", "adam-foreach", "adam-fused", "lamb"])
def test_a_captured_step_goes_on_where_its_warm_up_ended(optimizer):
    model = {"model": "transformer-train", "optimizer": optimizer}
    eager = losses(steps=WARMUP + 4, **model)
    assert losses(steps=4, execution="graph", **model) == pytest.approx(eager[WARMUP:], rel=1e-3)


@pytest.mark.parametrize("precision", ["amp-bf16", "amp-fp16"])
def test_a_captured_step_of_deeplab_learns(precision):
    found = losses(steps=6, execution="graph", precision=precision)
    assert found[-1] < found[0]


@pytest.mark.parametrize("model", ["transformer-prefill", "transformer-decode"])
@pytest.mark.parametrize(("precision", "most"), [("bf16", 0.02), ("fp8", 0.1)])
def test_a_captured_inference_gives_the_scores_of_the_eager_one(model, precision, most):
    settings = {"model": model, "precision": precision, "optimizer": "none"}
    eager, graph = workload(**settings), workload(execution="graph", **settings)
    eager.step()
    # Whoever wants memory now gets none that the graph reads.
    filled = [torch.full((count,), 1e30, device="cuda") for count in 500 * [64, 1024, 2**18]]
    for _ in range(2):
        graph.step()
        graph.synchronize()
        wanted = eager.step.last.float()
        distance = (graph.step.last.float() - wanted).norm() / wanted.norm()
        assert distance < most
    assert len(filled) == 1500


def test_8_bit_training_in_tensor_cores_learns_like_bf16():
    fp8 = losses(steps=5, model="transformer-train", precision="fp8")
    bf16 = losses(steps=5, model="transformer-train", precision="bf16")
    assert fp8 == pytest.approx(bf16, rel=0.02)


def test_a_compiled_step_gives_the_losses_of_the_eager_one():
    model = {"model": "transformer-train"}
    compiled = losses(steps=3, execution="compile", **model)
    assert compiled == pytest.approx(losses(steps=3, **model), rel=1e-3)


@pytest.mark.parametrize(("precision", "least", "most"), [("fp32", 0, 2e-5), ("tf32", 5e-5, 2e-3)])
def test_float32_products_have_the_error_of_the_precision(precision, least, most):
    # 24 bits against 11: the relative error of a long sum is near 1e-7 or near 3e-4. Winograd's
    # algorithm, which cuDNN may find fastest, has some times the first.
    torch.manual_seed(0)
    image = torch.randn(1, 256, 32, 32, device="cuda")
    filters = torch.randn(256, 256, 3, 3, device="cuda")
    left, right = torch.randn(2, 512, 512, device="cuda").unbind(0)
    with switched(ARITHMETIC[precision]):
        found = (left @ right, functional.conv2d(image, filters))
    exact = (left.double() @ right.double(), functional.conv2d(image.double(), filters.double()))
    for one, other in zip(found, exact, strict=True):
        error = ((one - other).norm() / other.norm()).item()
        # cuDNN may choose an algorithm without TF32, but never one with it where it is off.
        assert error < most
        assert error > least or one.dim() == 4


# Last, since cuDNN tries its algorithms anew for each. Every precision in both networks and layouts.
@pytest.mark.parametrize(
    ("model", "precision", "layout"),
    [
        ("deeplab-resnet50", "fp32", "nchw"),
        ("deeplab-resnet50", "tf32", "nhwc"),
        ("deeplab-resnet50", "amp-bf16", "nhwc"),
        ("deeplab-resnet50", "amp-fp16", "nchw"),
        ("deeplab-xception", "fp32", "nhwc"),
        ("deeplab-xception", "tf32", "nchw"),
        ("deeplab-xception", "amp-bf16", "nchw"),
        ("deeplab-xception", "amp-fp16", "nhwc"),
    ],
)
def test_deeplab_learns_in_every_precision_and_layout(model, precision, layout):
    found = losses(steps=5, model=model, precision=precision, layout=layout)
    assert found[-1] < found[0]
