"""The compute paths of a processor: which instruction reaches each, and what it computes.

Every recipe accumulates: ``acc = acc + a * b`` (a sum of products for dot and matrix
instructions). So one kernel shape, one way to keep values bounded and one way to check results
serve x86-64 and aarch64, whose multiply-add can only overwrite the addend.
"""

import dataclasses
from typing import Literal

Form = Literal["fma", "dot", "matrix", "tile"]
Element = Literal["fp64", "fp32", "fp16", "bf16", "int8", "uint8"]

ELEMENT_BITS: dict[str, int] = {
    "fp64": 64,
    "fp32": 32,
    "fp16": 16,
    "bf16": 16,
    "int8": 8,
    "uint8": 8,
}
_LLVM_TYPE = {"fp64": "double", "fp32": "float", "fp16": "half"}
_LLVM_SUFFIX = {"fp64": "f64", "fp32": "f32", "fp16": "f16"}

#: Side of a tile: 16 rows of 64 bytes, the largest of Advanced Matrix Extensions.
TILE_ROWS = 16
TILE_BYTES = TILE_ROWS * 64

#: Every path that some processor has, in the order they are shown.
PATHS = (
    "vector fp64",
    "vector fp32",
    "vector fp16",
    "vector bf16",
    "vector int8",
    "tensor bf16",
    "tensor int8",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """One instruction that does the work of a compute path.

    Attributes:
        path: e.g. ``vector fp64``.
        instruction: as it is shown, e.g. ``fma 512-bit``.
        form: ``fma``: per element; ``dot``: 32-bit sums of neighbouring products; ``matrix``:
            2x2 blocks in each 128 bits; ``tile``: 16x16 block of two tile registers.
        first: type of the elements of a.
        second: type of the elements of b.
        result: type of the accumulators.
        register_bytes: width of one register.
        flop: operations of one instruction (a multiplication and an addition are two).
        mnemonic: regular expression of the instruction in machine code.
        operation: LLVM text of one step; ``{out}``, ``{a}``, ``{b}``, ``{acc}`` are filled in.
        vector: LLVM type of an accumulator.
        operand: LLVM type of a and b.
        accumulators: independent chains, at least latency x pipes.
        operands: registers of a, and of b.
        declare: LLVM declaration that the operation needs.
    """

    path: str
    instruction: str
    form: Form
    first: Element
    second: Element
    result: Literal["fp64", "fp32", "fp16", "int32"]
    register_bytes: int
    flop: int
    mnemonic: str
    operation: str
    vector: str
    operand: str
    accumulators: int
    operands: int
    declare: str = ""


def recipes_for(architecture: str, flags: frozenset[str]) -> tuple[Recipe, ...]:
    """The recipes that a processor with these instruction sets can run, at its widest vector."""
    if architecture == "x86_64":
        return _x86(flags)
    if architecture == "aarch64":
        return _aarch64(flags)
    return ()


def missing_reason(path: str, architecture: str, flags: frozenset[str]) -> str:
    """Why there is no recipe for a path: the instruction sets of which the processor has none."""
    if architecture == "x86_64":
        needs = {
            "vector fp64": ("fma",),
            "vector fp32": ("fma",),
            "vector fp16": ("avx512_fp16",),
            "vector bf16": ("avx512_bf16",),
            "vector int8": ("avx512_vnni", "avx_vnni"),
            "tensor bf16": ("amx_bf16",),
            "tensor int8": ("amx_int8",),
        }[path]
    else:
        needs = {
            "vector fp64": ("asimd",),
            "vector fp32": ("asimd",),
            "vector fp16": ("asimdhp",),
            "vector bf16": ("bf16",),
            "vector int8": ("asimddp", "i8mm"),
        }.get(path, ())
    if not needs:
        return f"There is no {path} instruction on {architecture} that this tool measures."
    if flags.intersection(needs):
        return f"The processor has {' or '.join(needs)} but not the vector width that it needs."
    return f"The processor does not have {' or '.join(needs)}."


def _x86(flags: frozenset[str]) -> tuple[Recipe, ...]:
    wide = "avx512f" in flags
    if not wide and not {"avx2", "fma"} <= flags:
        return ()
    width = 64 if wide else 32
    found = [
        _fma("fp64", width, r"vfmadd\d+pd", registers=32 if wide else 16),
        _fma("fp32", width, r"vfmadd\d+ps", registers=32 if wide else 16),
    ]
    if wide and "avx512_fp16" in flags:
        found.append(_fma("fp16", width, r"vfmadd\d+ph", registers=32))
    if wide and "avx512_bf16" in flags:
        found.append(_x86_dot("vdpbf16ps", "bf16", "bf16", "fp32", width))
    if wide and "avx512_vnni" in flags:
        found.append(_x86_dot("vpdpbusd", "uint8", "int8", "int32", width))
    elif "avx_vnni" in flags:
        # Without AVX-512 the assembler must be told to take the shorter encoding. Braces are
        # doubled, as in every format.
        found.append(_x86_dot("{{vex}} vpdpbusd", "uint8", "int8", "int32", 32))
    if {"amx_tile", "amx_bf16"} <= flags:
        found.append(_x86_tile("tdpbf16ps", "bf16", "fp32"))
    if {"amx_tile", "amx_int8"} <= flags:
        found.append(_x86_tile("tdpbssd", "int8", "int32"))
    return tuple(found)


def _aarch64(flags: frozenset[str]) -> tuple[Recipe, ...]:
    if "asimd" not in flags:
        return ()
    found = [
        _fma("fp64", 16, r"fml[as]", registers=32),
        _fma("fp32", 16, r"fml[as]", registers=32),
    ]
    if "asimdhp" in flags:
        found.append(_fma("fp16", 16, r"fml[as]", registers=32))
    if "bf16" in flags:
        found.append(_neon("bfdot", "dot", "bf16", "bfdot.v4f32.v8bf16"))
        found.append(_neon("bfmmla", "matrix", "bf16", "bfmmla"))
    if "asimddp" in flags:
        found.append(_neon("sdot", "dot", "int8", "sdot.v4i32.v16i8"))
    if "i8mm" in flags:
        found.append(_neon("smmla", "matrix", "int8", "smmla.v4i32.v16i8"))
    return tuple(found)


def _fma(element: Element, width: int, mnemonic: str, *, registers: int) -> Recipe:
    lanes = 8 * width // ELEMENT_BITS[element]
    vector = f"<{lanes} x {_LLVM_TYPE[element]}>"
    function = f"@llvm.fma.v{lanes}{_LLVM_SUFFIX[element]}"
    accumulators, operands = _registers(registers)
    return Recipe(
        path=f"vector {element}",
        instruction=f"fma {8 * width}-bit",
        form="fma",
        first=element,
        second=element,
        result=element,  # type: ignore[arg-type]  # the three elements that have an FMA
        register_bytes=width,
        flop=2 * lanes,
        mnemonic=mnemonic,
        operation=f"{{out}} = call {vector} {function}"
        f"({vector} {{a}}, {vector} {{b}}, {vector} {{acc}})",
        vector=vector,
        operand=vector,
        accumulators=accumulators,
        operands=operands,
        declare=f"declare {vector} {function}({vector}, {vector}, {vector})\n",
    )


def _x86_dot(
    mnemonic: str,
    first: Element,
    second: Element,
    result: Literal["fp32", "int32"],
    width: int,
) -> Recipe:
    vector = f"<{width // 4} x i32>"
    accumulators, operands = _registers(32 if width == 64 else 16)
    name = mnemonic.rsplit(maxsplit=1)[-1]
    return Recipe(
        path=f"vector {'int8' if result == 'int32' else first}",
        instruction=f"{name} {8 * width}-bit",
        form="dot",
        first=first,
        second=second,
        result=result,
        register_bytes=width,
        flop=2 * 8 * width // ELEMENT_BITS[first],
        mnemonic=name,
        operation=f'{{out}} = call {vector} asm "{mnemonic} $2, $1, $0", "=v,v,v,0"'
        f"({vector} {{a}}, {vector} {{b}}, {vector} {{acc}})",
        vector=vector,
        operand=vector,
        accumulators=accumulators,
        operands=operands,
    )


def _neon(
    mnemonic: str, form: Literal["dot", "matrix"], element: Element, intrinsic: str
) -> Recipe:
    accumulators, operands = _registers(32)
    products = 128 // ELEMENT_BITS[element] * (2 if form == "matrix" else 1)
    whole = element == "int8"
    vector = "<4 x i32>" if whole else "<4 x float>"
    operand = "<16 x i8>" if whole else "<8 x bfloat>"
    function = f"@llvm.aarch64.neon.{intrinsic}"
    return Recipe(
        path=f"vector {element}",
        instruction=f"{mnemonic} 128-bit",
        form=form,
        first=element,
        second=element,
        result="int32" if whole else "fp32",
        register_bytes=16,
        flop=2 * products,
        mnemonic=mnemonic,
        operation=f"{{out}} = call {vector} {function}"
        f"({vector} {{acc}}, {operand} {{a}}, {operand} {{b}})",
        vector=vector,
        operand=operand,
        accumulators=accumulators,
        operands=operands,
        declare=f"declare {vector} {function}({vector}, {operand}, {operand})\n",
    )


def _x86_tile(mnemonic: str, element: Element, result: Literal["fp32", "int32"]) -> Recipe:
    depth = 64 * 8 // ELEMENT_BITS[element]
    return Recipe(
        path=f"tensor {element}",
        instruction=f"{mnemonic} 16x16x{depth}",
        form="tile",
        first=element,
        second=element,
        result=result,
        register_bytes=TILE_BYTES,
        flop=2 * TILE_ROWS * TILE_ROWS * depth,
        mnemonic=mnemonic,
        # AT&T order: source b, source a, accumulator.
        operation=f"{mnemonic} {{b}}, {{a}}, {{acc}}",
        vector="",
        operand="",
        accumulators=4,
        operands=2,
    )


def _registers(count: int) -> tuple[int, int]:
    """Accumulators, and registers of a and of b, for a register file; a few stay free.

    The longest need is latency 4 x 4 pipes (Neoverse V) or 5 x 2 with only 16 registers (Haswell).
    """
    return (20, 4) if count == 32 else (10, 2)
