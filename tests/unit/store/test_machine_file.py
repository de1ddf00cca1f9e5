"""Machine files: written whole, read with care, and those that come along."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.bench.cpu import recipes
from mansard.bench.kernels import kernels
from mansard.errors import MachineError, OutputError
from mansard.model.device import DeviceFacts
from mansard.model.machine import (
    MACHINE_FORMAT,
    Ceiling,
    Machine,
)
from mansard.model.paths import MACHINE_PATHS
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


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_that_an_editor_or_a_shell_of_windows_wrote_is_read(tmp_path, encoding):
    save_machine(SOME, tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text(encoding="utf-8")
    (tmp_path / "w.json").write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert load_machine(tmp_path / "w.json") == SOME


def test_a_cut_character_is_no_machine(tmp_path):
    (tmp_path / "w.json").write_bytes(b"\xff\xfe{\x00\x22")
    with pytest.raises(MachineError, match="is not a machine file"):
        load_machine(tmp_path / "w.json")


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
            ({"value": -1e12}, "must be from 1e-15"),
            ({"value": 1e308}, r"has value 1e\+308; it must be from 1e-15 to 1e\+30"),
            ({"value": 5e-324}, "must be from 1e-15"),
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
            ({"path": "vector fp23"}, "unknown path 'vector fp23'; it can be vector fp64, "),
            ({"path": "Vector FP32"}, "unknown path"),
            (
                {"kind": "bandwidth", "unit": "byte/s", "path": None, "level": "hbm"},
                "unknown level 'hbm'; it can be shared, l1, l2, l3, dram, link",
            ),
            ({"kind": "latency", "unit": "s", "path": None, "level": "L9"}, "unknown level"),
            ({"limit_at_clock": 9e11}, r"value 1e\+12, 111.1 % of its limit_at_clock 9e\+11"),
            ({"limit_at_clock": 0}, "has limit_at_clock 0"),
            ({"limit_at_clock": -2e12}, "must be from 1e-15"),
            (
                {"limit_at_clock": 2e12, "share_of_limit": 0.9},
                r"share_of_limit 0.9, but value 1e\+12, 50 % of its limit_at_clock 2e\+12",
            ),
            ({"share_of_limit": 1.1}, r"share_of_limit 1.1: nothing is faster"),
            ({"share_of_limit": 0}, "has share_of_limit 0"),
        ],
    )
    def test_a_ceiling(self, tmp_path, changes, told):
        (tmp_path / "m.json").write_text(text_of(**changes))
        with pytest.raises(MachineError, match=told):
            load_machine(tmp_path / "m.json")

    def test_the_ceiling_is_named_and_what_to_do(self, tmp_path):
        (tmp_path / "m.json").write_text(text_of(value=-1, instruction="fma"))
        told = (
            r"m\.json: ceiling 0 \(compute vector fp32 fma\) has value -1; it must be from "
            r"1e-15 to 1e\+30; correct it, or measure again with 'mansard bench -o FILE'$"
        )
        with pytest.raises(MachineError, match=told):
            load_machine(tmp_path / "m.json")

    @pytest.mark.parametrize(
        ("facts", "told"),
        [
            ({"sm_count": -5}, "the device has sm_count -5; it must be from 0 to"),
            ({"sm_clock_max_hz": 1e308}, r"the device has sm_clock_max_hz 1e\+308"),
        ],
    )
    def test_numbers_that_no_device_has(self, tmp_path, facts, told):
        machine = json.loads(text_of()) | {"device": facts}
        (tmp_path / "m.json").write_text(json.dumps(machine))
        with pytest.raises(MachineError, match=told):
            load_machine(tmp_path / "m.json")

    def test_a_device_whose_driver_says_zero_is_taken(self, tmp_path):
        machine = json.loads(text_of()) | {"device": {"dram_clock_hz": 0}}
        (tmp_path / "m.json").write_text(json.dumps(machine))
        assert load_machine(tmp_path / "m.json").device.dram_clock_hz == 0

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "true", '"1"', "[]"])
    @pytest.mark.parametrize("key", ["value", "limit_at_clock", "share_of_limit"])
    def test_what_is_no_number_of_json(self, tmp_path, key, number):
        (tmp_path / "m.json").write_text(text_of(**{key: 12345}).replace("12345", number))
        with pytest.raises(MachineError, match=r"m\.json is not a machine file"):
            load_machine(tmp_path / "m.json")

    @pytest.mark.parametrize("capability", [None, "9.0"])
    @pytest.mark.parametrize(
        ("value", "cpu", "gpu"),
        # A GPU reads its clock, a CPU tells it from a loop.
        [(1.0049, True, True), (1.0051, True, False), (1.019, True, False), (1.021, False, False)],
    )
    def test_the_room_above_a_limit(self, tmp_path, capability, value, cpu, gpu):
        device = DeviceFacts(compute_capability=capability)
        roof = msgspec.structs.replace(ROOF, value=value * 1e12, limit_at_clock=1e12)
        some = msgspec.structs.replace(SOME, device=device, ceilings=(roof,))
        if gpu if capability else cpu:
            save_machine(some, tmp_path / "m.json")
            assert load_machine(tmp_path / "m.json") == some
        else:
            with pytest.raises(MachineError, match="nothing is faster than its limit"):
                save_machine(some, tmp_path / "m.json")

    def test_a_cpu_above_a_documented_limit_is_kept_where_the_bench_remarks_on_it(self, tmp_path):
        roof = msgspec.structs.replace(
            ROOF, limit_at_clock=5e11, share_of_limit=2.0, reason="the limit or the clock is wrong"
        )
        save_machine(msgspec.structs.replace(SOME, ceilings=(roof,)), tmp_path / "m.json")

    def test_every_path_that_is_measured_is_known(self):
        assert {kernel.path for kernel in kernels()} <= set(MACHINE_PATHS)
        assert set(recipes.PATHS) <= set(MACHINE_PATHS)

    def test_infinity_is_no_ceiling(self, tmp_path):
        for value in (math.inf, math.nan):
            roof = msgspec.structs.replace(ROOF, value=value)
            with pytest.raises(MachineError, match="must be from 1e-15 to"):
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


def stretched(factor):
    """A value edited by hand, its share with it or not."""
    return st.sampled_from(
        [
            lambda c: c | {"value": c["value"] * factor},
            lambda c: c | {"value": c["value"] * factor, "share_of_limit": None},
            lambda c: (
                c | {"value": c["value"] * factor, "share_of_limit": c["share_of_limit"] * factor}
            ),
        ]
    )


WRONG = st.one_of(
    st.floats(min_value=1.2, max_value=1e6).flatmap(stretched),
    st.floats(max_value=0, allow_infinity=False, allow_nan=False).map(
        lambda number: lambda c: c | {"value": number}
    ),
    st.floats(min_value=0.01, max_value=0.5).map(
        lambda number: lambda c: c | {"share_of_limit": c["share_of_limit"] - number}
    ),
    st.sampled_from(["kind", "path", "level"]).flatmap(
        lambda key: st.text(max_size=80).map(
            lambda word: lambda c: c | {key: f"x{word}", "share_of_limit": c["share_of_limit"]}
        )
    ),
)


class TestEdited:
    """The shipped machine after a hand has been at it."""

    @settings(max_examples=60, deadline=None)
    @given(place=st.integers(min_value=0), wrong=WRONG)
    def test_a_wrong_ceiling_is_refused_by_its_number(self, tmp_path_factory, place, wrong):
        machine = msgspec.to_builtins(load_machine("h200-sxm"))
        bounded = [
            (index, ceiling)
            for index, ceiling in enumerate(machine["ceilings"])
            # 0.8 of the limit times 1.2 is not above it yet.
            if ceiling.get("share_of_limit", 0) > 0.9
        ]
        index, ceiling = bounded[place % len(bounded)]
        machine["ceilings"] = list(machine["ceilings"])
        machine["ceilings"][index] = wrong(ceiling)
        path = tmp_path_factory.mktemp("edited") / "m.json"
        path.write_bytes(msgspec.json.encode({"schema": MACHINE_FORMAT} | machine))
        with pytest.raises(MachineError, match=rf"ceiling {index} |ceilings\[{index}\]"):
            load_machine(path)

    @settings(max_examples=60, deadline=None)
    @given(
        value=st.floats(min_value=1e-9, max_value=1e18),
        share=st.floats(min_value=1e-6, max_value=1.004),
        path=st.sampled_from(MACHINE_PATHS),
    )
    def test_what_fits_together_is_kept(self, tmp_path_factory, value, share, path):
        roof = Ceiling(
            kind="compute",
            value=value,
            unit="flop/s",
            path=path,
            limit_at_clock=value / share,
            share_of_limit=share,
        )
        some = msgspec.structs.replace(SOME, ceilings=(roof,))
        target = tmp_path_factory.mktemp("kept") / "m.json"
        save_machine(some, target)
        assert load_machine(target) == some


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


class TestShown:
    """What a prompt of Python shows of a machine and of a ceiling: a line each."""

    def test_a_measured_machine_is_a_line(self):
        shown = repr(load_machine("h200-sxm"))
        assert shown == "<Machine 'h200-sxm' of 'NVIDIA H200': measured, 76 ceilings>"

    def test_one_that_was_cut_short_and_has_no_device(self):
        cut = msgspec.structs.replace(SOME, partial=True)
        assert repr(cut) == "<Machine 'some' of unknown device: measured, 1 ceiling, partial>"

    def test_a_ceiling_is_told_by_its_limit(self):
        assert repr(ROOF) == "<Ceiling 'compute vector fp32': measured, 1.00 TFLOP/s>"
        refused = Ceiling(kind="latency", value=None, unit="s", status="refused", level="l2")
        assert repr(refused) == "<Ceiling 'latency l2': refused, ->"

    def test_integers_are_operations(self):
        roof = Ceiling(kind="compute", value=2e15, unit="flop/s", path="tensor int8")
        assert repr(roof).endswith("2.00 POP/s>")

    def test_names_of_a_hostile_file_are_short_and_visible(self):
        name = "\x1b[2J" + "x" * 10_000
        shown = repr(msgspec.structs.replace(SOME, name=name, device=DeviceFacts(name=name)))
        assert len(shown) < 250
        assert shown.isprintable()

    def test_rich_shows_no_samples_either(self):
        from rich.pretty import pretty_repr

        assert len(pretty_repr(load_machine("h200-sxm"))) < 200
