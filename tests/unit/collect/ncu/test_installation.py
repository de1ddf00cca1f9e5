"""Which ncu is used, and what it can do."""

from pathlib import Path

import pytest
from ncu_makers import program_file

from mansard.collect.ncu.installation import NcuTool, candidates, examine, find_ncu, options_in
from mansard.errors import DeviceError


def answering(path, version="2024.1.0.0"):
    path.parent.mkdir(parents=True, exist_ok=True)
    return program_file(path, f'#!/bin/sh\necho "Version {version} (build 1) (public-release)"\n')


def test_the_variable_names_the_ncu_before_every_other_place(fake_ncu, tmp_path):
    elsewhere = answering(tmp_path / "bin" / "ncu")
    tool = find_ncu({"MANSARD_NCU": str(fake_ncu), "PATH": str(elsewhere.parent)})
    assert tool.path == fake_ncu
    assert tool.version == "2025.3.1.0"


def test_the_ncu_that_a_person_names_is_taken_alone(fake_ncu, tmp_path):
    given = answering(tmp_path / "other")
    assert find_ncu({"MANSARD_NCU": str(fake_ncu)}, given=given).version == "2024.1.0.0"
    with pytest.raises(DeviceError, match=r"--ncu names .*nowhere"):
        find_ncu({"MANSARD_NCU": str(fake_ncu)}, given=tmp_path / "nowhere")


def test_path_comes_before_toolkits_and_the_newest_toolkit_first(tmp_path):
    root = tmp_path / "root"
    for version in ("2024.3.2", "2025.10.0", "2025.3.1"):
        answering(root / "opt/nvidia/nsight-compute" / version / "ncu", version)
    on_path = answering(tmp_path / "bin" / "ncu")
    found = list(candidates({"PATH": str(on_path.parent)}, root))
    assert [path.parent.name for path in found] == ["bin", "2025.10.0", "2025.3.1", "2024.3.2"]


def test_a_module_that_sets_cuda_home_is_enough(tmp_path):
    path = answering(tmp_path / "cuda" / "bin" / "ncu")
    assert find_ncu({"PATH": "", "CUDA_HOME": str(tmp_path / "cuda")}, root=tmp_path).path == path


def test_a_script_that_only_looks_for_ncu_is_passed_over(tmp_path):
    script = program_file(tmp_path / "ncu", "#!/bin/sh\necho none installed\nexit 1\n")
    working = answering(tmp_path / "root/opt/nvidia/nsight-compute/2025.1.0/ncu", "2025.1.0.0")
    tool = find_ncu({"PATH": str(script.parent)}, root=tmp_path / "root")
    assert tool.path == working


def test_without_any_ncu_the_message_says_where_to_get_it(tmp_path):
    with pytest.raises(DeviceError, match=r"comes with the CUDA toolkit.*MANSARD_NCU") as caught:
        find_ncu({"PATH": str(tmp_path)}, root=tmp_path)
    assert caught.value.slug == "ncu"


def test_one_program_under_two_names_is_tried_once(tmp_path):
    path = answering(tmp_path / "root/usr/local/cuda-13.0/bin/ncu")
    (tmp_path / "root/usr/local/cuda").symlink_to(path.parents[1])
    assert len(list(candidates({"PATH": ""}, tmp_path / "root"))) == 1


def test_options_are_read_from_the_help_text(fake_ncu):
    tool = examine(fake_ncu)
    assert {"metrics", "kernel-name", "filter-mode", "import-sass"} <= tool.options
    assert tool.has("filter-mode")
    assert not tool.has("attach")


def test_an_ncu_that_tells_no_options_is_trusted_to_have_them():
    assert NcuTool(Path("ncu")).has("filter-mode")


def test_dashes_inside_words_are_no_options():
    assert options_in("non--option  -o [ --export ] arg --nvtx-include=x") == {
        "export",
        "nvtx-include",
    }
