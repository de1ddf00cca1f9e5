"""Every kernel of a case compiles for its chips and holds the instructions that its work is made of."""

import re
from importlib import resources

import msgspec
import pytest

from mansard.bench.cuda import compile as compiler
from mansard.bench.cuda.disassemble import count, disassemble, find_disassembler
from mansard.bench.messages import Opened
from mansard.counters.table import table_for
from mansard.errors import DeviceError
from mansard.model.device import DeviceFacts
from mansard.validate import inspection
from mansard.validate.cases import OTHER_WORK, Case, KernelLaunch, MachineCode
from mansard.validate.catalogue import all_cases
from mansard.validate.inspection import inspected
from mansard.validate.machine_code import FLOP_OF, chain_work

pytestmark = pytest.mark.slow

CHIPS = {"7.5": "TU102", "8.0": "GA100", "9.0": "GH100", "10.0": "GB100", "12.0": "GB202"}


@pytest.fixture(scope="module")
def program():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    try:
        compiler.nvrtc_version()
    except DeviceError as error:
        pytest.skip(str(error))
    found = find_disassembler()
    return found or pytest.skip("nvdisasm is not installed")


def own_cases(capability):
    """Cases with kernels of this package, or that bench has not."""
    facts = DeviceFacts(compute_capability=capability, sm_count=8, l2_bytes=4 << 20)
    opened = Opened(facts=facts, numbers={"free_bytes": 40e9})
    found = all_cases(opened, table_for(chip=CHIPS[capability]))
    return [
        case
        for case in found
        if isinstance(case, Case)
        and isinstance(case.launch, KernelLaunch)
        and case.group in ("vector", "vector, half off", "memory", "bulk")
    ]


def shortened(case):
    """The same kernel with a shorter loop, which compiles and reads faster; and its loop's share."""
    variant = case.launch.variant
    steps = int(variant.defines.get("STEPS", 0))
    if not steps:
        return variant, 1.0
    macros = tuple((name, "8" if name == "STEPS" else value) for name, value in variant.macros)
    return msgspec.structs.replace(
        variant, macros=macros, count=variant.count * 8 // steps
    ), 8 / steps


def as_one_text(variants):
    """Sources one after the other, each with its macros, in a namespace, with names of its own."""
    parts = []
    for index, variant in enumerate(variants):
        package, _, name = variant.source.rpartition(":")
        folder = resources.files(package or "mansard.bench.cuda") / "kernels"
        source = (folder / name).read_text("utf-8")
        entries = re.findall(
            r'extern "C" __global__ void\s+(?:__\w+__\([^)]*\)\s*)*(\w+)\(', source
        )
        assert variant.entry in entries
        defines = {**variant.defines, **{entry: f"{entry}_{index}" for entry in entries}}
        defined = re.findall(r"#define (\w+)", source)
        parts += [f"#define {macro} {value}" for macro, value in defines.items()]
        parts += [f"namespace n{index} {{", source, "}"]
        parts += [f"#undef {macro}" for macro in dict.fromkeys([*defines, *defined])]
    return "\n".join(parts)


@pytest.mark.parametrize("capability", CHIPS)
def test_every_kernel_holds_the_work_of_its_case(program, capability):
    from cuda.core import Program, ProgramOptions

    number = int(capability.replace(".", ""))
    if number not in compiler.supported_architectures():
        pytest.skip(f"NVRTC does not compile for {capability}")
    cases = own_cases(capability)
    short = [shortened(case) for case in cases]
    options = ProgramOptions(arch=f"sm_{number}{'a' if number >= 90 else ''}")
    code = Program(as_one_text([v for v, _ in short]), "c++", options).compile("cubin")
    listing = disassemble(program, bytes(code.code))
    wrong = {}
    for index, (case, (variant, share)) in enumerate(zip(cases, short, strict=True)):
        entry = f"{variant.entry}_{index}"
        problem = count(listing, entry, variant.mnemonic).problem(variant.count, variant.mnemonic)
        code = case.machine_code
        if problem is None and code is not None:
            work = chain_work(listing, entry, code.quantity, predicated=code.predicated)
            low, high = (end * share for end in (case.expected[0].low, case.expected[0].high))
            if not low <= work.loop * code.loop_runs <= high:
                problem = f"{work} is not the work of the case"
            elif work.once > 4:  # one packed multiply-add that moves a constant
                problem = f"{work.once} FLOP outside of the loop"
        problem = problem or unexpected_work(listing, entry, case)
        if problem:
            wrong[case.name] = problem
    assert wrong == {}


def unexpected_work(listing, entry, case):
    """Arithmetic in a column that the case does not expect any in."""
    own = {
        column for each in case.expected if each.quantity != OTHER_WORK for column in each.summed
    }
    # Constants may be moved with packed halves; memory kernels may divide integers through FP32.
    free = {"flop_vector_fp16"}
    spare = {each.quantity: each.high for each in case.expected}[OTHER_WORK]
    threads = case.launch.blocks * case.launch.variant.threads
    for column in {*FLOP_OF} - own - free:
        work = chain_work(listing, entry, column)
        if work.loop or work.once * threads > spare:
            return f"{work} of {column}"
    return None


def test_a_kernel_is_inspected_as_it_will_run(program):
    case = next(c for c in own_cases("9.0") if c.name == "fp32 add, half predicated off")
    work = inspected(case.launch.variant, "sm_90", case.machine_code)
    # 8 chains x 64 steps of one FLOP each.
    assert (work.loop, work.once) == (512.0, 0.0)


def test_an_instruction_that_is_not_there_makes_no_case(program):
    case = next(c for c in own_cases("9.0") if c.name == "copy")
    other = msgspec.structs.replace(case.launch.variant, mnemonic="FFMA")
    with pytest.raises(DeviceError, match="0 of 4 FFMA in the loop"):
        inspected(other, "sm_90", None)


def test_without_a_disassembler_a_case_that_needs_it_is_left_out(program, monkeypatch):
    cases = {case.name: case for case in own_cases("9.0")}
    monkeypatch.setattr(inspection, "find_disassembler", lambda: None)
    half = cases["fp32 add, half predicated off"]
    assert half.inspect
    with pytest.raises(DeviceError, match="only machine code tells"):
        inspected(half.launch.variant, "sm_90", half.machine_code, needed=True)
    plain = cases["fp32 add"]
    assert not plain.inspect
    assert inspected(plain.launch.variant, "sm_90", plain.machine_code) is None


def listing(*lines):
    instructions = []
    for line in lines:
        predicate, _, rest = line.rpartition("|")
        opcode, _, target = rest.partition(" ")
        entry = {"opcode": opcode}
        if predicate:
            entry["predicate"] = predicate
        if target:
            entry["operands"] = f"`(.L_x) {hex(16 * int(target))}"
        instructions.append(entry)
    return [{}, [{"function-name": "k", "sass-instructions": instructions}]]


def test_the_work_of_a_thread_is_weighed_by_instruction():
    found = chain_work(
        listing("HFMA2", "HADD2", "HFMA2.MMA", "HMUL2.BF16_V2", "BRA 1", "EXIT"),
        "k",
        "flop_vector_fp16",
    )
    # add 2, multiply-add 4, multiply 2 in the loop; a multiply-add of 4 before it.
    assert (found.loop, found.once) == (8.0, 4.0)


def test_a_loop_that_is_not_predicated_is_refused_where_it_must_be():
    code = listing("@P0|FFMA", "FFMA", "@P1|BRA 0", "EXIT")
    with pytest.raises(DeviceError, match="1 FFMA in the loop have no predicate"):
        chain_work(code, "k", "flop_vector_fp32", predicated=True)
    assert chain_work(code, "k", "flop_vector_fp32").loop == 4.0


def test_a_kernel_that_is_not_in_the_listing_is_an_error():
    with pytest.raises(DeviceError, match="no kernel other"):
        chain_work(listing("EXIT"), "other", "flop_vector_fp32")


def test_machine_code_is_asked_for_where_a_compiler_can_change_the_work():
    for case in own_cases("9.0"):
        chain = case.group.startswith("vector")
        assert (case.machine_code is not None) == chain, case.name
        if chain:
            assert isinstance(case.machine_code, MachineCode)
