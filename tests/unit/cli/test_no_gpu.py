"""Commands that need a GPU, where there is none: the message names the paragraph that helps."""

import re
from pathlib import Path

import pytest

from mansard.bench import gpu
from mansard.cli import called, main
from mansard.validate.messages import Reply
from mansard.validate.rig import ChildRig

MESSAGES = Path(__file__).parents[3] / "docs" / "messages.md"
NO_DRIVER = "there is no NVIDIA driver on this machine"


def told(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def no_driver(monkeypatch):
    def refuse(*_, **__):
        raise gpu.NoGpuError(NO_DRIVER)

    for name in ("measure_gpu", "count_gpus"):
        monkeypatch.setattr(gpu, name, refuse)
    # What a child process answers there.
    monkeypatch.setattr(ChildRig, "_ask", lambda *_: Reply(error=NO_DRIVER, refused=True))


@pytest.mark.parametrize(
    "arguments", [["bench", "--device", "cuda:0"], ["bench", "--study", "fp16"], ["validate"]]
)
def test_the_message_names_the_paragraph_that_says_what_to_do(
    no_driver, capsys, arguments, monkeypatch
):
    monkeypatch.setattr(called.shutil, "which", lambda _: "/usr/bin/mansard")
    assert told(arguments, capsys) == (
        f"mansard: {NO_DRIVER}\n         more: mansard doctor --explain no-gpu\n"
    )


@pytest.mark.parametrize("arguments", [["bench", "--device", "cuda:0"], ["validate"]])
def test_without_the_packages_of_cuda_it_is_said_how_to_install_them(
    monkeypatch, capsys, tmp_path, arguments
):
    """The child processes see a package ``cuda`` that has nothing in it."""
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    first = told(arguments, capsys).splitlines()[0]
    assert first.startswith("mansard: cuda bindings: missing -> pip install 'mansard[cuda]'")


def test_the_paragraph_says_what_to_do():
    paragraph = re.search(r"## no-gpu\n(.*?)\n\n##", MESSAGES.read_text(), re.DOTALL)[1]
    for words in ("Install NVIDIA's driver", "--gpus all", "mansard doctor", "--device cpu"):
        assert words in " ".join(paragraph.split())
