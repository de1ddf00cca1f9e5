"""Counting instructions in listings of nvdisasm."""

import types

import pytest

from mansard.bench.cuda import disassemble
from mansard.bench.cuda.disassemble import Audit, count, find_disassembler
from mansard.errors import DeviceError


def listing(*lines, name="k"):
    """Lines are `OPCODE` or `BRA target-index`."""
    instructions = []
    for line in lines:
        opcode, _, target = line.partition(" ")
        entry = {"opcode": opcode}
        if target:
            entry["operands"] = f"`(.L_x) {hex(16 * int(target))}"
        instructions.append(entry)
    return [{}, [{"function-name": name, "sass-instructions": instructions}]]


def test_only_the_loop_counts():
    found = count(listing("FFMA", "FFMA", "IADD3", "FFMA", "BRA 1", "FFMA", "EXIT"), "k", "FFMA")
    assert (found.count, found.loop) == (2, 4)
    assert found.others == {"IADD3": 1, "BRA": 1}


def test_of_several_loops_the_one_with_most_matches_counts():
    code = ["LDG", "BRA 0", "FFMA", "FFMA", "BRA 2", "FFMA", "BRA 5", "EXIT"]
    assert count(listing(*code), "k", "FFMA").count == 2


def test_of_nested_loops_the_inner_one_counts_when_it_holds_everything():
    found = count(listing("MOV", "FFMA", "FFMA", "BRA 1", "BRA 0", "EXIT"), "k", "FFMA")
    assert found.loop == 3


def test_a_loop_that_jumps_to_itself_at_the_end_of_the_code_is_none():
    found = count(listing("FFMA", "EXIT", "BRA 2"), "k", "FFMA")
    assert (found.count, found.loop) == (0, 0)


def test_a_mnemonic_must_match_the_whole_opcode():
    found = count(listing("HMMA.16816.F32", "HMMA.16816.F32.BF16", "BRA 0"), "k", "HMMA.*F32")
    assert found.count == 1


def test_alternatives_are_counted_together():
    found = count(listing("HFMA2", "HFMA2.MMA", "BRA.U 0"), "k", "HFMA2(\\.MMA)?")
    assert found.count == 2


def test_spills_outside_the_loop_are_seen():
    assert count(listing("STL", "FFMA", "BRA 1", "LDL.LU"), "k", "FFMA").local == 2


def test_a_kernel_that_is_not_there_is_an_error():
    with pytest.raises(DeviceError, match="no kernel other"):
        count(listing("EXIT"), "other", "FFMA")


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        (Audit(count=64, loop=67, local=0), None),
        (Audit(count=2, loop=40, local=0), "2 of 64 HMMA in the loop"),
        (Audit(count=128, loop=131, local=0), "128 HMMA in the loop, 64 expected"),
        (Audit(count=64, loop=67, local=4), "4 accesses to local memory"),
    ],
)
def test_what_is_wrong_is_said(audit, message):
    problem = audit.problem(64, "HMMA")
    assert (problem is None) if message is None else (message in problem)


def test_a_disassembler_is_found_wherever_python_finds_packages(tmp_path, monkeypatch):
    roots = [str(tmp_path / "empty"), str(tmp_path / "target" / "nvidia")]
    spec = types.SimpleNamespace(submodule_search_locations=roots)
    monkeypatch.setattr(disassemble.importlib.util, "find_spec", lambda name: spec)
    program = tmp_path / "target" / "nvidia" / "cu13" / "bin" / "nvdisasm"
    program.parent.mkdir(parents=True)
    program.touch(0o644)
    monkeypatch.setattr(disassemble, "_elsewhere", lambda: "of the toolkit")
    assert find_disassembler() == "of the toolkit"  # it may not be run
    program.chmod(0o755)
    assert find_disassembler() == str(program)
