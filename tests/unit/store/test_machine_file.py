"""Machine files: written whole, read with care, and those that come along."""

import json
import math

import msgspec
import pytest

from mansard.errors import MachineError, OutputError
from mansard.model.machine import MACHINE_FORMAT, Ceiling, Machine
from mansard.store import load_machine, machine, save_machine, shipped_machines

ROOF = Ceiling(kind="compute", value=1e12, unit="flop/s", path="vector fp32", samples=(1e12, 9e11))
SOME = Machine(name="some", basis="measured", ceilings=(ROOF,), provenance={"driver": "580"})


def text_of(**changes):
    roof = {"kind": "compute", "value": 1e12, "unit": "flop/s", "path": "vector fp32"}
    return json.dumps(
        {"schema": MACHINE_FORMAT, "name": "x", "basis": "measured", "ceilings": [roof | changes]}
    )


def test_a_machine_comes_back_as_it_was(tmp_path):
    save_machine(SOME, tmp_path / "m.json")
    assert load_machine(tmp_path / "m.json") == SOME
    assert machine(str(tmp_path / "m.json")) == SOME


def test_equal_machines_give_equal_files_that_people_can_read(tmp_path):
    save_machine(SOME, tmp_path / "a.json")
    save_machine(load_machine(tmp_path / "a.json"), tmp_path / "b.json")
    text = (tmp_path / "a.json").read_text()
    assert text == (tmp_path / "b.json").read_text()
    assert text.startswith('{\n  "schema": "mansard-machine/1",\n  "name": "some",\n')
    assert text.endswith("}\n")


def test_a_machine_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.json"
    save_machine(SOME, path)
    before = path.read_bytes()
    wrong = msgspec.structs.replace(SOME, ceilings=(msgspec.structs.replace(ROOF, value=-1.0),))
    with pytest.raises(MachineError):
        save_machine(wrong, path)
    assert path.read_bytes() == before
    with pytest.raises(OutputError):
        save_machine(SOME, tmp_path / "no" / "m.json")


class TestNames:
    """A machine is asked for by name or by path."""

    def test_the_papers_machine_comes_along(self):
        assert "v100-paper" in shipped_machines()
        assert load_machine("v100-paper").name == "v100-paper"

    def test_every_shipped_machine_is_valid_and_has_the_name_of_its_file(self):
        for name in shipped_machines():
            found = load_machine(name)
            assert found.name == name
            assert found.ceilings

    def test_an_unknown_name_lists_those_that_exist(self):
        with pytest.raises(MachineError, match=r"no machine 'h100'.*v100-paper"):
            load_machine("h100")

    def test_a_path_that_does_not_exist(self, tmp_path):
        with pytest.raises(MachineError, match="no machine file"):
            load_machine(tmp_path / "m.json")
        with pytest.raises(MachineError, match="no machine file"):
            load_machine("../m.json")

    def test_a_name_is_not_a_way_out_of_the_folder(self):
        with pytest.raises(MachineError):
            load_machine("../analysis/rates")


class TestWrong:
    """Files that would draw a wrong roof are refused, with the reason."""

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"value": 0}, "has value 0"),
            ({"value": -1e12}, "must be positive"),
            ({"value": None}, "has no value"),
            ({"value": "fast"}, "not a machine file"),
            ({"kind": "magic"}, "not a machine file"),
            ({"unit": "byte/s"}, "its kind has flop/s"),
            ({"path": None}, "names no path"),
            ({"kind": "bandwidth", "unit": "byte/s"}, "names no level"),
            ({"kind": "launch", "unit": "s"}, "does not say how it launches"),
            ({"samples": [1e12, -1]}, "has sample 1"),
            ({"sm_clock_hz": 0}, "has sm_clock_hz 0"),
            ({"status": "refused", "value": None}, "refused without a reason"),
            ({"status": "refused", "reason": " "}, "refused without a reason"),
        ],
    )
    def test_a_ceiling(self, tmp_path, changes, told):
        (tmp_path / "m.json").write_text(text_of(**changes))
        with pytest.raises(MachineError, match=told):
            load_machine(tmp_path / "m.json")

    def test_infinity_is_no_ceiling(self, tmp_path):
        for value in (math.inf, math.nan):
            roof = msgspec.structs.replace(ROOF, value=value)
            with pytest.raises(MachineError, match="finite"):
                save_machine(msgspec.structs.replace(SOME, ceilings=(roof,)), tmp_path / "m.json")

    def test_a_refused_ceiling_with_its_reason_is_kept(self, tmp_path):
        (tmp_path / "m.json").write_text(
            text_of(status="refused", value=None, reason="emulated on this chip")
        )
        assert load_machine(tmp_path / "m.json").compute("vector fp32") is None

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "not a machine file"),
            (b"{}", "its schema is ''"),
            (b"[1]", "not a machine file"),
            (b"\xff\xfe{}", "not a machine file"),
            (b'{"schema": "other/1"}', "its schema is 'other/1'"),
            (b'{"schema": "mansard-machine/2", "name": {}}', "newer Mansard"),
            (b'{"schema": "mansard-machine/1"}', "not a machine file"),
            (b'{"schema": "mansard-machine/1", "name": "", "basis": "measured"}', "no name"),
            (b'{"schema": "mansard-machine/1", "x": ' + b"[" * 5000, "not a machine file"),
        ],
    )
    def test_a_file(self, tmp_path, content, told):
        (tmp_path / "m.json").write_bytes(content)
        with pytest.raises(MachineError, match=told):
            load_machine(tmp_path / "m.json")

    def test_a_huge_file_is_not_read(self, tmp_path):
        path = tmp_path / "m.json"
        with path.open("wb") as file:
            file.truncate(65 * 1024**2)
        with pytest.raises(MachineError, match="at most"):
            load_machine(path)


class TestPaper:
    """The paper's V100, number by number (arXiv 2009.05257 and its artifact)."""

    @pytest.fixture
    def v100(self):
        return load_machine("v100-paper")

    @pytest.mark.parametrize(
        ("path", "gflop_per_s"),
        [
            ("vector fp64", 7669.1),
            ("vector fp32", 15158.6),
            ("vector fp16", 29181.6),
            ("tensor fp16", 103700),
        ],
    )
    def test_compute_roofs(self, v100, path, gflop_per_s):
        assert v100.compute(path).value == pytest.approx(gflop_per_s * 1e9, rel=1e-12)

    @pytest.mark.parametrize(
        ("level", "gbyte_per_s"), [("l1", 14336), ("l2", 2996.77), ("dram", 828.758)]
    )
    def test_bandwidths(self, v100, level, gbyte_per_s):
        assert v100.bandwidth(level).value == pytest.approx(gbyte_per_s * 1e9, rel=1e-12)

    def test_ridges_of_the_tensor_roof(self, v100):
        tensor = v100.compute("tensor fp16").value
        ridges = [tensor / v100.bandwidth(level).value for level in ("dram", "l2", "l1")]
        assert ridges == pytest.approx([125, 34.6, 7.2], rel=0.01)

    def test_other_instructions_are_kept_beside_the_best(self, v100):
        beside = {(c.path, c.instruction): c.value for c in v100.ceilings if c.kind == "compute"}
        assert beside["tensor fp16", "wmma"] == 58e12
        assert beside["vector fp64", "add, mul"] == 3535.8e9
        assert beside["vector fp32", "add, mul"] == 7669.1e9

    def test_the_theoretical_one_and_the_clocks_are_told(self, v100):
        assert v100.basis == "published"
        assert v100.bandwidth("l1").status == "theoretical"
        assert all(ceiling.source for ceiling in v100.ceilings)
        assert "1.30 GHz" in v100.caveats[0]
        assert v100.launch_cost("stream").value == 4.2e-6
        assert v100.launch_cost("graph node") is None
