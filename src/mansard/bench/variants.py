"""The variants of a compute kernel: macros of its source, launch geometry, and what to expect.

Everything here is arithmetic on the table of kernels: FLOP from 2*M*N*K, expected instructions from
the unrolled loop, bytes from the tiles.
"""

from mansard.bench.kernels import (
    ELEMENT_BITS,
    PTX_NAMES,
    STAGE_BYTES,
    Geometry,
    Kernel,
    Variant,
    flop_of,
    geometries,
    mma_ptx,
    registers,
)

_SOURCES = {
    "vector": ("vector.cu", "vector_chain"),
    "mma": ("mma.cu", "mma_chain"),
    "wmma": ("wmma.cu", "wmma_chain"),
    "wgmma": ("wgmma.cu", "wgmma_chain"),
    "tcgen05": ("tcgen05.cu", "tcgen05_chain"),
}

#: C type, asm constraint and hash type of a vector operand.
_REGISTERS = {
    "fp64": ("double", "d", "unsigned long long"),
    "fp32": ("float", "f", "unsigned"),
    "fp32x2": ("unsigned long long", "l", "unsigned long long"),
    "fp16x2": ("unsigned", "r", "unsigned"),
    "bf16x2": ("unsigned", "r", "unsigned"),
    "int32": ("unsigned", "r", "unsigned"),
}

#: Scale factors of 1 in each byte, by the type of the scale.
_UNIT_SCALES = {"ue4m3": "0x38383838", "ue8m0": "0x7F7F7F7F"}

#: Shared-memory tiles start at a multiple of this.
_ALIGNMENT = 1024


def variants(kernel: Kernel) -> tuple[Variant, ...]:
    """The launch geometries of a kernel, best guess first."""
    return tuple(_variant(kernel, geometry) for geometry in geometries(kernel.form))


def _variant(kernel: Kernel, geometry: Geometry) -> Variant:
    make = {
        "vector": _vector,
        "mma": _mma,
        "wmma": _wmma,
        "wgmma": _wgmma,
        "tcgen05": _tcgen05,
    }[kernel.form]
    macros, statements, shared_bytes, operand_bytes = make(kernel, geometry)
    source, entry = _SOURCES[kernel.form]
    groups = {"vector": geometry.threads, "mma": geometry.threads // 32}.get(kernel.form, 1)
    if kernel.form == "wmma":
        groups = geometry.threads // 32
    if kernel.form == "wgmma":
        groups = geometry.GROUPS or 1
    return Variant(
        source=source,
        entry=entry,
        macros=tuple(sorted(macros.items())),
        feature=kernel.feature,
        threads=geometry.threads,
        blocks=geometry.blocks,
        shared_bytes=shared_bytes,
        work=float(statements * groups * flop_of(kernel)),
        mnemonic=kernel.mnemonic,
        count=statements * kernel.per,
        operand_bytes=operand_bytes,
    )


def _vector(kernel: Kernel, geometry: Geometry) -> tuple[dict[str, str], int, int, int]:
    value, constraint, hashed = _REGISTERS[kernel.operand]
    ilp, steps = geometry.ILP or 1, geometry.STEPS or 1
    macros = {
        "VALUE": value,
        "CONSTRAINT": _quoted(constraint),
        "HASH": hashed,
        "EVEN": _quoted(kernel.statement or ""),
        "ODD": _quoted(kernel.odd or kernel.statement or ""),
        "ILP": str(ilp),
        "STEPS": str(steps),
    }
    size = ELEMENT_BITS[kernel.operand] // 8
    return macros, ilp * steps, 0, geometry.threads * (ilp + 3) * size


def _mma(kernel: Kernel, geometry: Geometry) -> tuple[dict[str, str], int, int, int]:
    a, b, d = registers(kernel)
    double = kernel.operand == "fp64"
    a_tiles, b_tiles = (2, 1) if a == 8 else (4, 2)  # eight doubles a tile: spare registers
    ilp, steps = geometry.ILP or 1, geometry.STEPS or 1
    value, constraint = ("double", "d") if double else ("unsigned", "r")
    sums, sums_constraint = {
        "fp64": ("double", "d"),
        "fp32": ("float", "f"),
        "fp16": ("unsigned", "r"),
        "int32": ("unsigned", "r"),
    }[kernel.accumulator or "fp32"]
    macros = {
        "PTX": _quoted(mma_ptx(kernel)),
        "OPERAND": value,
        "OPERAND_C": _quoted(constraint),
        "SUM": sums,
        "SUM_C": _quoted(sums_constraint),
        "HASH": "unsigned long long" if double else "unsigned",
        "A_REGS": str(a),
        "B_REGS": str(b),
        "D_REGS": str(d),
        "A_TILES": str(a_tiles),
        "B_TILES": str(b_tiles),
        "ILP": str(ilp),
        "STEPS": str(steps),
    }
    if kernel.scale:
        macros["SCALES"] = _UNIT_SCALES[kernel.scale]
    size = 8 if double else 4
    return macros, ilp * steps, 0, geometry.threads * (a_tiles * a + b_tiles * b + d) * size


def _wmma(_: Kernel, geometry: Geometry) -> tuple[dict[str, str], int, int, int]:
    ilp, steps = geometry.ILP or 1, geometry.STEPS or 1
    tile_bytes = 16 * 16 * 2
    sums_bytes = 16 * 16 * 4
    warps = geometry.threads // 32
    return (
        {"ILP": str(ilp), "STEPS": str(steps)},
        ilp * steps,
        0,
        warps * (4 * tile_bytes + sums_bytes),
    )


def _wgmma(kernel: Kernel, geometry: Geometry) -> tuple[dict[str, str], int, int, int]:
    m, n, k = kernel.shape or (0, 0, 0)
    stages, groups = geometry.STAGES or 1, geometry.GROUPS or 1
    operand = PTX_NAMES.get(kernel.operand, kernel.operand)
    sums = PTX_NAMES[kernel.accumulator or "fp32"]
    # Scale and sign of A and B; the 16-bit types also say that neither is transposed.
    tail = {"int8": "", "fp16": ", 1, 1, 0, 0", "bf16": ", 1, 1, 0, 0"}.get(
        kernel.operand, ", 1, 1"
    )
    floating = kernel.accumulator == "fp32"
    macros = {
        "PTX": _quoted(f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{sums}.{operand}.{operand}"),
        "TAIL": _quoted(tail),
        "SUM": "float" if floating else "unsigned",
        "SUM_C": _quoted("f" if floating else "r"),
        "D_REGS": "64" if kernel.accumulator == "fp16" else "128",
        "GROUPS": str(groups),
        "STAGES": str(stages),
    }
    tiles = stages * STAGE_BYTES * (n + groups * m)
    return (
        macros,
        stages * _steps_of_stage(kernel),
        tiles + _ALIGNMENT,
        tiles + geometry.threads * 4,
    )


def _tcgen05(kernel: Kernel, geometry: Geometry) -> tuple[dict[str, str], int, int, int]:
    m, n, _ = kernel.shape or (0, 0, 0)
    stages = geometry.STAGES or 1
    macros = {
        "PTX": _quoted(f"tcgen05.mma.cta_group::1.kind::{kernel.kind}"),
        "IDESC": hex(kernel.descriptor or 0),
        "SETS": "1" if kernel.scale else "2",
        "STAGES": str(stages),
    }
    if kernel.scale:
        macros["SCALES"] = _UNIT_SCALES[kernel.scale]
    tiles = stages * STAGE_BYTES * (n + m)
    return (
        macros,
        stages * _steps_of_stage(kernel),
        tiles + _ALIGNMENT,
        tiles + geometry.threads * 4,
    )


def _steps_of_stage(kernel: Kernel) -> int:
    """Instructions that one stage of 128 bytes of K takes."""
    k = (kernel.shape or (0, 0, 0))[2]
    return STAGE_BYTES * 8 // (k * ELEMENT_BITS[kernel.operand])


def _quoted(text: str) -> str:
    return f'"{text}"'
