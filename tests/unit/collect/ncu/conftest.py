"""A fake ncu on disk."""

import sys
from pathlib import Path

import pytest

from mansard.collect.ncu import installation

FAKE = Path(__file__).parents[3] / "data" / "fake_ncu"
if str(FAKE) not in sys.path:
    sys.path.append(str(FAKE))

from ncu_makers import GRAPH_NODES, program_file  # noqa: E402


@pytest.fixture
def fake_ncu(tmp_path, monkeypatch):
    """A working ncu that $MANSARD_NCU names, in a folder with a space in its name."""
    folder = tmp_path / "nsight compute"
    folder.mkdir()
    script = FAKE / "ncu.py"
    path = program_file(
        folder / "ncu", f'#!/bin/sh\nexec "{sys.executable}" -S -E "{script}" "$@"\n'
    )
    monkeypatch.setenv(installation.VARIABLE, str(path))
    monkeypatch.setenv("FAKE_NCU_REPORT", str(GRAPH_NODES))
    monkeypatch.setenv("FAKE_NCU_SEEN", str(tmp_path / "seen"))
    for name in ("RANK", "WORLD_SIZE", "CUDA_INJECTION64_PATH"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def seen(tmp_path):
    """The command line that the fake ncu got."""
    return lambda: (tmp_path / "seen").read_text().split("\0")
