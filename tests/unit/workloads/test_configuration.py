"""Configurations, sizes and the way from one to a workload."""

import dataclasses
import itertools
import re
import subprocess
import sys

import pytest

from mansard.errors import DeviceError, UsageError
from mansard.workloads import Configuration, ImageSize, TokenSize, Unavailable, build, preset_size
from mansard.workloads.workload import PAPER, TINY, TINY_TOKENS


def make(**changes):
    settings = {
        "model": "deeplab-resnet50",
        "framework": "torch",
        "precision": "fp32",
        "layout": "nchw",
        "optimizer": "adam-loop",
        "execution": "eager",
        "size": TINY,
        "device": "cpu",
    }
    return Configuration(**(settings | changes))


def test_every_difference_shows_in_the_name():
    changes = [
        {},
        {"model": "deeplab-xception"},
        {"framework": "keras-torch"},
        {"framework": "keras-jax"},
        {"precision": "tf32"},
        {"layout": "nhwc"},
        {"layout": "none"},
        {"optimizer": "adam-fused"},
        {"optimizer": "none"},
        {"execution": "compile"},
        {"device": "cuda:0"},
        {"device": "cuda:1"},
        {"seed": 1},
        *({"size": dataclasses.replace(TINY, **{name: value})} for name, value in
          (("batch", 1), ("height", 32), ("width", 32), ("channels", 3), ("classes", 2), ("slim", 4))),
    ]  # fmt: skip
    names = [make(**change).name for change in changes]
    assert len(set(names)) == len(changes)


def test_a_name_is_a_file_name():
    for model, device in itertools.product(
        ("deeplab-xception", "transformer-train"), ("cpu", "cuda:0")
    ):
        name = make(model=model, device=device, size=preset_size(model, "paper")).name
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,120}", name)


@pytest.mark.parametrize("field", ["model", "framework", "precision", "layout", "optimizer"])
def test_an_unknown_choice_is_refused_with_the_known_ones(field):
    with pytest.raises(UsageError, match=rf"'\.\./x' is no {field}: take one of "):
        make(**{field: "../x"})


@pytest.mark.parametrize("device", ["", "cuda:0/../..", "cpu;ls"])
def test_a_device_that_is_no_word_is_refused(device):
    with pytest.raises(UsageError, match="is no device"):
        make(device=device)


def test_a_model_needs_its_own_kind_of_size():
    with pytest.raises(UsageError, match="deeplab-resnet50 needs an ImageSize"):
        make(size=TINY_TOKENS)
    with pytest.raises(UsageError, match="transformer-train needs a TokenSize"):
        make(model="transformer-train")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch of a size is 0"),
        ({"batch": 1.5}, "batch of a size is 1.5"),
        ({"height": 100}, "multiples of 16"),
        ({"slim": 3}, "slim is 3"),
    ],
)
def test_a_size_that_no_network_can_have_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(TINY, **change)


def test_heads_must_share_the_width():
    with pytest.raises(UsageError, match="does not divide into 3 heads"):
        dataclasses.replace(TINY_TOKENS, heads=3)


def test_the_paper_has_two_images_of_cam5():
    assert ImageSize(batch=2, height=768, width=1152, channels=16, classes=3) == PAPER
    assert preset_size("deeplab-xception", "paper") is PAPER
    assert isinstance(preset_size("transformer-decode", "paper"), TokenSize)


def test_unavailable_is_an_error_of_the_device():
    assert issubclass(Unavailable, DeviceError)


def test_only_pytorch_images_read_samples(tmp_path):
    tokens = make(model="transformer-train", layout="none", size=TINY_TOKENS)
    with pytest.raises(UsageError, match="does not read samples"):
        build(tokens, samples=tmp_path)
    with pytest.raises(UsageError, match="does not read samples"):
        build(make(framework="keras-jax"), samples=tmp_path)


def test_importing_the_package_loads_no_framework():
    code = (
        "import sys, mansard.workloads; "
        "print([n for n in ('torch', 'keras', 'jax', 'tensorflow', 'h5py') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_without_pytorch_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=r"pip install 'mansard\[torch\]'"):
        build(make())
