"""Cases of known work: chains of the CUDA cores and of the tensor cores, from bench's kernels."""

from collections.abc import Iterator

import msgspec

from mansard.bench.kernels import Kernel, Variant, kernels
from mansard.bench.variants import variants
from mansard.counters.table import CounterTable
from mansard.model.paths import PATHS
from mansard.validate.cases import (
    Buffer,
    Case,
    Expected,
    KernelLaunch,
    Lacking,
    MachineCode,
    Number,
    counted_as,
    exactly,
    no_other_work,
)

_COLUMNS = {path.name: path.column for path in PATHS} | {"vector bf16": "flop_vector_fp16"}
_ELEMENTS = 1 << 12
_ITERATIONS = 64
#: Lanes of a warp that stay on: every other one.
_LANES = 0x55555555
#: Operands whose mma.sync some chips have and for others the compiler emulates.
_EMULATED = ("e4m3", "e5m2", "e2m3", "e2m1", "int4")
_SOURCE = "mansard.validate:half_on.cu"

#: bench has no use for these as ceilings.
_MORE = tuple(
    Kernel(
        path="vector bf16",
        form="vector",
        instruction=name,
        operand="bf16x2",
        statement=f"{name}.rn.bf16x2 %0, %0, %1;",
        odd=f"{name}.rn.bf16x2 %0, %0, %2;",
        flop=2,
        mnemonic=rf"H{name.upper()}2\.BF16_V2|HFMA2(\.MMA)?\.BF16_V2",
        capabilities=("9.0-",),
    )
    for name in ("add", "mul")
)


def compute_cases(
    capability: tuple[int, int], sms: int, table: CounterTable
) -> Iterator[Case | Lacking]:
    """Every precision of both pipes; of the CUDA cores also add, multiply, and half switched off.

    Args:
        capability: compute capability.
        sms: multiprocessors.
        table: tells which columns the chip counts.
    """
    major, minor = capability
    for kernel in (*kernels(), *_MORE):
        if kernel.path not in _COLUMNS or kernel.form == "wmma":
            continue
        if not kernel.runs_on(capability):
            if not any(_stands_for(other, kernel, capability) for other in (*kernels(), *_MORE)):
                name = _name(kernel) if kernel.form == "vector" else kernel.path
                yield Lacking(name, f"compute capability {major}.{minor} does not have it")
            continue
        column = counted_as(_COLUMNS[kernel.path], table)
        if kernel.form == "vector":
            yield _vector(kernel, column, sms)
            yield _half_on(kernel, column, sms)
        else:
            yield _tensor(kernel, column, sms)


def _stands_for(other: Kernel, kernel: Kernel, capability: tuple[int, int]) -> bool:
    """Whether this chip has the path by another kernel; of the CUDA cores, the instruction."""
    alike = kernel.form != "vector" or other.instruction == kernel.instruction
    return alike and other.path == kernel.path and other.runs_on(capability)


def _vector(kernel: Kernel, column: str, sms: int) -> Case:
    variant = variants(kernel)[-1]
    blocks = sms * variant.blocks
    runs = blocks * variant.threads * _ITERATIONS
    per_thread = kernel.flop or 0
    steps = variant.number("ILP") * variant.number("STEPS")
    why = (
        f"{steps} statements x {_ITERATIONS} iterations x {blocks * variant.threads} threads x "
        f"{per_thread} FLOP"
    )
    return Case(
        name=_name(kernel),
        group="vector",
        launch=_chain(variant, blocks, (Number(_ITERATIONS, "int32"),)),
        expected=_work(kernel, column, float(steps * runs * per_thread), why),
        machine_code=MachineCode(quantity=column, loop_runs=runs, threads=blocks * variant.threads),
    )


def _half_on(kernel: Kernel, column: str, sms: int) -> Case:
    """Half of each warp off: FP32 by predicates, all else by a branch; see ``half_on.cu``."""
    predicated = kernel.operand == "fp32"
    plain = variants(kernel)[-1]
    macros = {**plain.defines, "BY_BRANCH": "0" if predicated else "1"}
    variant = msgspec.structs.replace(
        plain, source=_SOURCE, entry="half_on_chain", macros=tuple(sorted(macros.items()))
    )
    blocks = sms * variant.blocks
    threads = blocks * variant.threads
    runs = threads // 2 * _ITERATIONS
    steps = variant.number("ILP") * variant.number("STEPS")
    off = "predicated" if predicated else "branched"
    per_thread = kernel.flop or 0
    why = (
        f"{steps} statements x {_ITERATIONS} iterations x {threads // 2} of {threads} threads x "
        f"{per_thread} FLOP: the others are {off} off"
    )
    arguments = (Number(_LANES, "uint32"), Number(_ITERATIONS, "int32"))
    return Case(
        name=f"{_name(kernel)}, half {off} off",
        group="vector, half off",
        launch=_chain(variant, blocks, arguments),
        expected=_work(kernel, column, float(steps * runs * per_thread), why),
        machine_code=MachineCode(
            quantity=column, loop_runs=runs, threads=threads, predicated=predicated
        ),
        inspect=predicated,
    )


def _tensor(kernel: Kernel, column: str, sms: int) -> Case:
    variant = variants(kernel)[0]
    blocks = sms * variant.blocks
    m, n, k = kernel.shape or (0, 0, 0)
    instructions = variant.work / (2 * m * n * k) * blocks * _ITERATIONS
    why = f"{instructions:.0f} instructions x 2 x {m} x {n} x {k} operations"
    mask = (Number(_ELEMENTS // 32 - 1, "uint32"),) if kernel.form == "mma" else ()
    size = max(variant.shared_bytes, _ELEMENTS // 32 * 1024)
    return Case(
        name=_name(kernel),
        group=kernel.form,
        launch=KernelLaunch(
            variant=variant,
            blocks=blocks,
            arguments=(
                Buffer("operands", size),
                Buffer("out", blocks * variant.threads * 8),
                *mask,
                Number(_ITERATIONS, "int32"),
            ),
        ),
        expected=(
            exactly(column, variant.work * blocks * _ITERATIONS, why),
            no_other_work(column),
        ),
        inspect=kernel.form == "mma" and kernel.operand in _EMULATED,
    )


def _chain(variant: Variant, blocks: int, numbers: tuple[Number, ...]) -> KernelLaunch:
    operands = Buffer("operands", _ELEMENTS * 8)
    out = Buffer("out", blocks * variant.threads * 8)
    mask = Number(_ELEMENTS - 1, "uint32")
    return KernelLaunch(
        variant=variant,
        blocks=blocks,
        arguments=(operands, operands, operands, out, mask, *numbers),
    )


def _work(kernel: Kernel, column: str, flop: float, why: str) -> tuple[Expected, ...]:
    """The work of a chain, if the compiler keeps its statements; the machine code corrects it."""
    fused = 2 if kernel.operand in ("fp16x2", "bf16x2") and "fma" not in kernel.instruction else 1
    work = Expected(
        quantity=column,
        low=flop,
        high=flop * fused,
        tolerance=0.0,
        why=why + (", twice that for those that the compiler makes an FMA" if fused > 1 else ""),
    )
    return work, no_other_work(column)


def _name(kernel: Kernel) -> str:
    return f"{kernel.path.split()[1]} {kernel.instruction}"
