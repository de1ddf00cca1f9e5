"""The compute kernels as data: ``cuda/kernels/kernels.toml``, and what follows from each entry.

Everything here is arithmetic on the table: register counts from the shape of a matrix
instruction, FLOP from 2*M*N*K, expected instructions from the unrolled loop.
"""

import functools
import importlib.resources
import tomllib
from typing import Literal

import msgspec

Form = Literal["vector", "mma", "wmma", "wgmma", "tcgen05"]

#: Bits of an element, as it lies in a register or in shared memory.
ELEMENT_BITS = {
    "fp64": 64,
    "fp32": 32,
    "fp32x2": 64,
    "fp16x2": 32,
    "bf16x2": 32,
    "int32": 32,
    "tf32": 32,
    "fp16": 16,
    "bf16": 16,
    "e4m3": 8,
    "e5m2": 8,
    "e2m3": 8,
    "e2m1": 4,
    "int8": 8,
    "int4": 4,
}

_SOURCES = {
    "vector": ("vector.cu", "vector_chain"),
    "mma": ("mma.cu", "mma_chain"),
    "wmma": ("wmma.cu", "wmma_chain"),
    "wgmma": ("wgmma.cu", "wgmma_chain"),
    "tcgen05": ("tcgen05.cu", "tcgen05_chain"),
}

_PTX_NAMES = {
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "int8": "s8",
    "int4": "s4",
    "int32": "s32",
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

#: wgmma and tcgen05: bytes of K in a stage, and stages of shared memory per operand row.
STAGE_BYTES = 128
_ALIGNMENT = 1024


class Geometry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch geometry to try; ``blocks`` per SM. The rest are macros of the source."""

    threads: int
    blocks: int
    ILP: int | None = None
    STEPS: int | None = None
    GROUPS: int | None = None
    STAGES: int | None = None


class Kernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of ``kernels.toml``; the meaning of each field stands there."""

    path: str
    form: Form
    instruction: str
    operand: str
    mnemonic: str
    capabilities: tuple[str, ...]
    accumulator: str | None = None
    shape: tuple[int, int, int] | None = None
    kind: str | None = None
    scale: str | None = None
    descriptor: int | None = None
    statement: str | None = None
    odd: str | None = None
    flop: int | None = None
    per: int = 1
    feature: bool = False
    extra: bool = False

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Whether a GPU of this compute capability has (or is thought to have) it."""
        return any(_within(capability, text) for text in self.capabilities)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kernel: tuple[Kernel, ...]
    variants: dict[Form, tuple[Geometry, ...]]


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One compiled source with one launch geometry.

    Attributes:
        source: file name in ``cuda/kernels``.
        entry: name of the kernel in it.
        macros: name and value, as the compiler gets them.
        feature: whether it needs the architecture-specific target.
        threads: of a block.
        blocks: per SM.
        shared_bytes: dynamic shared memory of a block.
        carveout: percent of the joint memory preferred as shared; None leaves it to the driver.
        work: FLOP (or bytes) of one block and iteration.
        mnemonic: regular expression of the instruction that does the work.
        count: how often it must stand in the main loop; 0 if it is not checked.
        operand_bytes: read from device memory by one block, however many iterations.
        rows: of a working set, for the kernels that have one.
    """

    source: str
    entry: str
    macros: tuple[tuple[str, str], ...] = ()
    feature: bool = False
    threads: int = 256
    blocks: int = 1
    shared_bytes: int = 0
    carveout: int | None = None
    work: float = 0.0
    mnemonic: str = ""
    count: int = 0
    operand_bytes: int = 0
    rows: int = 0

    @property
    def defines(self) -> dict[str, str]:
        """The macros by name."""
        return dict(self.macros)

    def number(self, macro: str) -> int:
        """The value of a macro that is a number."""
        return int(self.defines[macro], 0)


def kernels() -> tuple[Kernel, ...]:
    """All compute kernels, in the order of the table."""
    return _table().kernel


def variants(kernel: Kernel) -> tuple[Variant, ...]:
    """The launch geometries of a kernel, best guess first."""
    return tuple(_variant(kernel, geometry) for geometry in _table().variants[kernel.form])


def registers(kernel: Kernel) -> tuple[int, int, int]:
    """Registers a thread of an mma instruction holds of A, B and D.

    A warp spreads each operand evenly over its 32 lanes; fp64 registers are 64 bits wide.
    """
    m, n, k = kernel.shape or (0, 0, 0)
    width = 64 if kernel.operand == "fp64" else 32
    bits = ELEMENT_BITS[kernel.operand]
    sums = 16 if kernel.accumulator == "fp16" else width
    return m * k * bits // (32 * width), k * n * bits // (32 * width), m * n * sums // (32 * width)


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


def flop_of(kernel: Kernel) -> int:
    """FLOP (or integer operations) of one statement: of a thread, or of a matrix instruction."""
    if kernel.shape is not None:
        m, n, k = kernel.shape
        return 2 * m * n * k
    return kernel.flop or 0


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


def mma_ptx(kernel: Kernel) -> str:
    """The mma.sync instruction of a kernel, without its operands."""
    m, n, k = kernel.shape or (0, 0, 0)
    operand = _PTX_NAMES.get(kernel.operand, kernel.operand)
    sums = _PTX_NAMES[kernel.accumulator or "fp32"]
    kind = f".{kernel.kind}" if kernel.kind else ""
    scale = f".{kernel.scale}" if kernel.scale else ""
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col{kind}.{sums}.{operand}.{operand}.{sums}{scale}"


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
    operand = _PTX_NAMES.get(kernel.operand, kernel.operand)
    sums = _PTX_NAMES[kernel.accumulator or "fp32"]
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


def _within(capability: tuple[int, int], text: str) -> bool:
    low, dash, high = text.partition("-")
    first = _capability(low)
    last = _capability(high) if high else ((99, 9) if dash else first)
    return first <= capability <= last


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


@functools.cache
def _table() -> _Table:
    folder = importlib.resources.files("mansard.bench.cuda") / "kernels"
    text = (folder / "kernels.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)
