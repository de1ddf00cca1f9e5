"""Every kernel compiles for every architecture and shows its instruction, without a GPU.

All kernels of an architecture go through the compiler and the disassembler as one text: starting
those takes longer than their work.
"""

import re
from pathlib import Path

import msgspec
import pytest

from mansard.bench.cuda import compile as compiler
from mansard.bench.cuda.disassemble import count, disassemble, find_disassembler
from mansard.bench.kernels import kernels
from mansard.bench.messages import Opened
from mansard.bench.plan import Choice, make_plan
from mansard.bench.variants import variants
from mansard.errors import DeviceError
from mansard.model.device import DeviceFacts

pytestmark = pytest.mark.slow

FOLDER = Path(compiler.__file__).parent / "kernels"
ARCHITECTURES = ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0"]

#: Instructions that a chip only emulates; there the count must fall short.
EMULATED = {
    ("tensor fp8", "mma.sync"): ("9.0", "10.0", "10.3"),
    ("tensor int4", "mma.sync"): ("9.0", "10.0", "10.3", "12.0"),
}


def modules_of(jobs):
    """Variants that are one text to the compiler, by source and macros."""
    return {
        key: index for index, key in enumerate(dict.fromkeys((v.source, v.macros) for v in jobs))
    }


def as_one_text(modules):
    """Sources one after the other, each with its macros, in a namespace, with names of its own."""
    parts = []
    for (name, macros), index in modules.items():
        source = (FOLDER / name).read_text("utf-8")
        bare = re.sub(r"__launch_bounds__\([^)]*\)\s*", "", source)
        entries = re.findall(r'extern "C" __global__ void\s+(\w+)\(', bare)
        points = re.findall(r"POINT\((\d+)\)", dict(macros).get("POINTS", ""))
        entries += [f"intensity_{point}" for point in points]
        defines = {**dict(macros), **{entry: f"{entry}_{index}" for entry in entries}}
        defined = re.findall(r"#define (\w+)", source)
        parts += [f"#define {macro} {value}" for macro, value in defines.items()]
        parts += [f"namespace n{index} {{", source, "}"]
        parts += [f"#undef {macro}" for macro in dict.fromkeys([*defines, *defined])]
    return "\n".join(parts)


def shortened(variant):
    """The same kernel with a shorter loop, which compiles and reads faster."""
    steps = int(variant.defines.get("STEPS", 0))
    if steps <= 8:
        return variant
    macros = tuple((name, "8" if name == "STEPS" else value) for name, value in variant.macros)
    return msgspec.structs.replace(variant, macros=macros, count=variant.count * 8 // steps)


def tools():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    try:
        compiler.nvrtc_version()
    except DeviceError as error:
        pytest.skip(str(error))
    program = find_disassembler()
    if program is None:
        pytest.skip("nvdisasm is not installed")
    return program


def problems_of(jobs, arch):
    """By position in `jobs`: what the machine code lacks, or None."""
    from cuda.core import Program, ProgramOptions

    program = tools()
    number = arch.replace(".", "")
    if int(number) not in compiler.supported_architectures():
        pytest.skip(f"NVRTC does not compile for {arch}")
    modules = modules_of(jobs)
    options = ProgramOptions(arch=f"sm_{number}{'a' if int(number) >= 90 else ''}")
    code = Program(as_one_text(modules), "c++", options).compile("cubin")
    listing = disassemble(program, bytes(code.code))
    found = []
    for job in jobs:
        entry = f"{job.entry}_{modules[job.source, job.macros]}"
        audit = count(listing, entry, job.mnemonic or "EXIT")
        found.append(audit.problem(job.count, job.mnemonic) if job.count else None)
    return found


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_compute_kernel_shows_its_instruction_in_its_loop(arch):
    capability = tuple(int(part) for part in arch.split("."))
    chosen = [kernel for kernel in kernels() if kernel.runs_on(capability)]
    found = problems_of([shortened(variants(kernel)[0]) for kernel in chosen], arch)
    wrong = {}
    for kernel, problem in zip(chosen, found, strict=True):
        emulated = arch in EMULATED.get((kernel.path, kernel.instruction), ())
        if (problem is not None) is not emulated:
            wrong[kernel.path, kernel.instruction] = problem or "is not emulated any more"
    assert wrong == {}


@pytest.mark.parametrize("arch", ["7.5", "9.0", "12.0"])
def test_every_memory_kernel_compiles_and_loads_or_stores_16_bytes_at_a_time(arch):
    opened = Opened(
        facts=DeviceFacts(
            name="GPU",
            compute_capability=arch,
            sm_count=100,
            l2_bytes=40 * 1024**2,
            dram_clock_hz=1e9,
            dram_bus_bits=4096,
            sm_clock_max_hz=1e9,
        )
    )
    jobs = {}
    for choice in (Choice(everything=True), Choice(study="fp16")):
        for task in make_plan(opened, choice):
            for variant in task.variants if task.recipe != "compute" else ():
                jobs.setdefault((variant.source, variant.macros, variant.entry), variant)
    chosen = list(jobs.values())
    found = problems_of(chosen, arch)
    wrong = {(v.source, v.entry): p for v, p in zip(chosen, found, strict=True) if p}
    assert wrong == {}


def test_every_source_says_its_work_its_bytes_and_what_keeps_it():
    for path in FOLDER.glob("*.cu"):
        head = path.read_text("utf-8").partition("\n\n")[0]
        whole = path.read_text("utf-8")
        for word in ("Work:", "Bytes:", "Kept by:"):
            assert word in whole, (path.name, word)
        assert head.startswith("//")
        assert "#include" not in whole
