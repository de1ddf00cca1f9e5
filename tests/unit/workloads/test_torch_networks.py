"""Parameters and shapes of the PyTorch networks, against hand sums and public counts."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mansard.workloads.pytorch.deeplab import make_deeplab  # noqa: E402
from mansard.workloads.pytorch.resnet import ResNet50  # noqa: E402
from mansard.workloads.pytorch.transformer import Transformer, hidden_width  # noqa: E402
from mansard.workloads.workload import PAPER, TINY, TOKENS, ImageSize  # noqa: E402


def _count(network):
    return sum(weight.numel() for weight in network.parameters())


def _conv(channels, filters, kernel=1):
    """A convolution without bias and its batch norm."""
    return channels * filters * kernel**2 + 2 * filters


def _separable(channels, filters):
    return 9 * channels + channels * filters


#: Pyramid and decoder behind 2048 channels at 1/16, but for the convolution of the skip.
HEAD = (
    _conv(2048, 256)
    + 3 * _conv(2048, 256, 3)
    + _conv(2048, 256)  # the pooled branch: scale and shift where the others have batch norm
    + _conv(5 * 256, 256)
    + 2 * _conv(256, 256, 3)
    + _conv(256 + 48, 256, 3)
    + _conv(256, 256, 3)
    + 256 * 256
    + 256
    + _conv(256, 256, 3)
    + 256 * 3 * 9
)


@pytest.fixture(scope="module")
def networks():
    with torch.device("meta"):
        return {
            model: make_deeplab(model, PAPER) for model in ("deeplab-resnet50", "deeplab-xception")
        }


def test_the_resnet_encoder_has_the_public_number_of_parameters():
    # 25,557,032 of the ImageNet model, less the classifier's 2048 x 1000 + 1000.
    with torch.device("meta"):
        assert _count(ResNet50(3, slim=1)) == 25_557_032 - 2_049_000
        assert _count(ResNet50(16, slim=1)) == 23_508_032 + 13 * 64 * 49


def test_the_network_with_resnet_is_the_sum_of_its_layers(networks):
    network = networks["deeplab-resnet50"]
    assert _count(network) == 23_508_032 + 13 * 64 * 49 + _conv(256, 48) + HEAD
    assert _count(network) == 42_231_264


def test_the_network_with_xception_is_the_sum_of_its_layers(networks):
    entry = _conv(16, 32, 3) + _conv(32, 64, 3)
    for channels, filters in ((64, 128), (128, 256), (256, 728)):
        entry += _conv(channels, filters)
        entry += _separable(channels, filters) + 2 * filters
        entry += _separable(filters, filters) + 2 * filters
        entry += _separable(filters, filters)
    middle = 16 * 3 * (_separable(728, 728) + 2 * 728)
    leave = _conv(728, 1024) + _separable(728, 728) + 2 * 728
    leave += _separable(728, 1024) + 2 * 1024 + _separable(1024, 1024)
    for channels, filters in ((1024, 1536), (1536, 1536), (1536, 2048)):
        leave += _separable(channels, filters) + 2 * filters
    assert _count(networks["deeplab-xception"]) == entry + middle + leave + _conv(128, 48) + HEAD


def test_the_network_with_xception_has_as_many_parameters_as_deepcam(networks):
    # The public count of MLPerf HPC's reference model.
    assert _count(networks["deeplab-xception"]) == 56_454_720


def test_the_network_with_xception_has_as_many_tensors_as_the_paper_had_optimizer_launches(
    networks,
):
    # The authors' raw tables have 301 launches of each kernel of the optimizer: one a tensor.
    assert len(list(networks["deeplab-xception"].parameters())) == 301


@pytest.mark.parametrize("model", ["deeplab-resnet50", "deeplab-xception"])
def test_the_maps_are_at_a_sixteenth_and_a_quarter(networks, model):
    images = torch.empty(2, 16, 768, 1152, device="meta")
    deep, low = networks[model].encoder(images)
    assert deep.shape == (2, 2048, 48, 72)
    assert low.shape[2:] == (192, 288)
    assert networks[model](images).shape == (2, 3, 768, 1152)


@pytest.mark.parametrize("model", ["deeplab-resnet50", "deeplab-xception"])
def test_a_batch_of_one_can_be_trained(model):
    network = make_deeplab(model, ImageSize(batch=1, height=32, width=32, slim=8))
    scores = network(torch.zeros(1, 16, 32, 32))
    assert torch.isfinite(scores).all()


def test_a_slim_network_has_the_same_layers(networks):
    slim = make_deeplab("deeplab-xception", TINY)
    assert len(list(slim.parameters())) == 301
    assert _count(slim) < _count(networks["deeplab-xception"]) / 50


def test_the_transformer_is_the_sum_of_its_layers():
    width, hidden = 2048, 5504  # 8/3 of 2048 is 5461.3; the next multiple of 64
    assert hidden_width(width) == hidden
    block = 4 * width**2 + 3 * width * hidden + 2 * width
    with torch.device("meta"):
        assert _count(Transformer(TOKENS)) == 16 * block + 2 * 32000 * width + width
