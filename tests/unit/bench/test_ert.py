"""roofline.json of the Empirical Roofline Tool."""

import json

import pytest

from mansard.bench.ert import is_ert, read_ert
from mansard.errors import MachineError

V100 = {
    "empirical": {
        "metadata": {"CONFIG": "v100"},
        "gflops": {"data": [["FP64 GFLOPs", 7068.86], ["FP32 GFLOPs", 14000.0]], "metadata": {}},
        "gbytes": {"data": [["L1", 2996.77], ["DRAM", 828.758]], "metadata": {}},
    },
    "spec": {"gflops": {"data": []}, "gbytes": {"data": []}},
}


@pytest.fixture
def file(tmp_path):
    def write(content, name="v100.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_rates_become_ceilings_in_base_units(file):
    machine = read_ert(file(V100))
    assert machine.name == "v100"
    assert machine.compute("vector fp64").value == 7068.86e9
    assert machine.compute("vector fp32").value == 14e12
    assert machine.bandwidth("dram").value == 828.758e9
    assert machine.bandwidth("l1").value == 2996.77e9
    assert "working set" in machine.caveats[0]


def test_a_rate_without_a_precision_is_double_as_in_old_versions(file):
    old = {
        "empirical": {
            "gflops": {"data": [["GFLOPs", 100.0]]},
            "gbytes": {"data": [["DRAM", 10.0]]},
        }
    }
    assert read_ert(file(old)).compute("vector fp64").value == 100e9


def test_the_tensor_core_is_told_from_the_half_pipe(file):
    table = {
        "empirical": {
            "gflops": {"data": [["FP16 GFLOPs", 29182.0], ["FP16 GFLOPs (TC)", 103700.0]]},
            "gbytes": {"data": []},
        }
    }
    machine = read_ert(file(table))
    assert machine.compute("vector fp16").value == 29182e9
    assert machine.compute("tensor fp16").value == 103700e9


def test_a_file_named_roofline_takes_the_name_of_its_folder(tmp_path):
    folder = tmp_path / "Results.v100"
    folder.mkdir()
    (folder / "roofline.json").write_text(json.dumps(V100))
    assert read_ert(folder / "roofline.json").name == "Results.v100"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no 'empirical' part"),
        ({"empirical": 3}, "no 'empirical' part"),
        ({"empirical": {}}, "'empirical.gflops.data' is not a list"),
        ({"empirical": {"gflops": {"data": []}, "gbytes": {"data": []}}}, "no ceiling"),
        ({"empirical": {"gflops": {"data": [["x"]]}}}, "is not \\[name, number\\]"),
        ({"empirical": {"gflops": {"data": [["x", "9"]]}}}, "is not a number"),
        ({"empirical": {"gflops": {"data": [["x", True]]}}}, "is not a number"),
        ({"empirical": {"gflops": {"data": [["x", -1]]}}}, "must be positive"),
        ('{"empirical": {"gflops": {"data": [["x", NaN]]}}}', "must be positive"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(file, content, message):
    with pytest.raises(MachineError, match=message):
        read_ert(file(content))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(MachineError, match="cannot read"):
        read_ert(tmp_path / "none.json")


def test_only_a_file_of_ert_looks_like_one(file, tmp_path):
    assert is_ert(file(V100))
    assert not is_ert(file({"schema": "mansard-machine/1"}, "m.json"))
    assert not is_ert(file("not json", "x.json"))
    assert not is_ert(tmp_path / "none.json")
