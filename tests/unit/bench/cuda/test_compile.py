"""Which architecture is compiled for."""

import pytest

from mansard.bench.cuda import compile as compiler
from mansard.bench.kernels import Variant
from mansard.errors import DeviceError

KNOWN = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)


@pytest.mark.parametrize(
    ("capability", "arch", "features", "remark"),
    [
        ((9, 0), "sm_90", True, None),
        ((8, 6), "sm_86", False, None),
        ((7, 5), "sm_75", False, None),
        ((8, 5), "sm_80", False, "compiled for sm_80"),
        ((10, 1), "sm_100", False, "compiled for sm_100"),
        ((12, 9), "sm_121", False, "compiled for sm_121"),
        ((15, 0), "compute_121", False, "compiled by the driver"),
    ],
)
def test_the_chips_own_architecture_or_the_nearest_that_runs(capability, arch, features, remark):
    target = compiler.target_for(capability, KNOWN)
    assert (target.arch, target.features) == (arch, features)
    assert (target.remark is None) if remark is None else (remark in target.remark)


def test_a_gpu_that_the_compiler_has_dropped_is_pointed_to_the_older_packages(monkeypatch):
    monkeypatch.setattr(compiler, "nvrtc_version", lambda: (13, 0))
    with pytest.raises(DeviceError, match=r"7\.0.*mansard\[cuda12\]"):
        compiler.target_for((7, 0), KNOWN)


def test_architecture_specific_kernels_get_the_feature_letter():
    target = compiler.target_for((9, 0), KNOWN)
    assert target.arch_for(Variant(source="a", entry="b", feature=True)) == "sm_90a"
    assert target.arch_for(Variant(source="a", entry="b")) == "sm_90"


def test_a_cache_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert compiler.cache_folder() is None


def test_the_cache_lies_in_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiler.cache_folder() == tmp_path / "mansard" / "kernels"
