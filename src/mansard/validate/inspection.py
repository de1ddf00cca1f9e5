"""The machine code of a case's kernel, before it runs: does it hold what the case is named for?"""

from mansard.bench.cuda.compile import cache_folder, compile_variant
from mansard.bench.cuda.disassemble import audit, count, disassemble, find_disassembler
from mansard.bench.kernels import Variant
from mansard.errors import DeviceError
from mansard.validate.cases import MachineCode
from mansard.validate.machine_code import ChainWork, chain_work

#: What a reader must know where machine code cannot be read.
NOT_READ = (
    "Machine code was not read, since nvdisasm is not installed (pip install "
    "nvidia-cuda-nvdisasm): work is compared with what was written, not with what was compiled."
)


def can_inspect() -> bool:
    """Whether machine code can be read here."""
    return find_disassembler() is not None


def inspected(
    variant: Variant, arch: str, wanted: MachineCode | None, *, needed: bool = False
) -> ChainWork | None:
    """Look at the machine code of a kernel.

    Args:
        variant: the kernel.
        arch: as the compiler takes it.
        wanted: how the work of the case follows from the machine code.
        needed: whether the case says nothing without it.

    Returns:
        The work that the machine code holds; None where it cannot be read, or is not asked for.

    Raises:
        DeviceError: it does not compile, the instruction is emulated or lacks its predicate, or
            it cannot be read although that is needed.
    """
    code = compile_variant(variant, arch)
    program = find_disassembler()
    if arch.startswith("compute_") or program is None:
        if needed:
            raise DeviceError(
                "only machine code tells whether this GPU has the instruction, and it cannot be "
                "read here (pip install nvidia-cuda-nvdisasm)"
            )
        return None
    if wanted is None:
        found = audit(code, variant.entry, variant.mnemonic, cache=cache_folder())
        listing = None
    else:
        listing = disassemble(program, code)
        found = count(listing, variant.entry, variant.mnemonic)
    problem = found.problem(variant.count, variant.mnemonic) if found else None
    if problem:
        raise DeviceError(problem)
    if wanted is None:
        return None
    return chain_work(listing, variant.entry, wanted.quantity, predicated=wanted.predicated)
