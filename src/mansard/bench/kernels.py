"""The compute kernels as data: ``cuda/kernels/kernels.toml``, and what follows from each entry."""

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

#: Types as PTX spells them, where it differs.
PTX_NAMES = {
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "int8": "s8",
    "int4": "s4",
    "int32": "s32",
}

#: wgmma and tcgen05: bytes of K in a stage.
STAGE_BYTES = 128


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
        source: file name in ``cuda/kernels``; ``package:name`` is in ``kernels`` of that package.
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


def geometries(form: Form) -> tuple[Geometry, ...]:
    """The launch geometries to try for a form, best guess first."""
    return _table().variants[form]


def kernels() -> tuple[Kernel, ...]:
    """All compute kernels, in the order of the table."""
    return _table().kernel


def registers(kernel: Kernel) -> tuple[int, int, int]:
    """Registers a thread of an mma instruction holds of A, B and D.

    A warp spreads each operand evenly over its 32 lanes; fp64 registers are 64 bits wide.
    """
    m, n, k = kernel.shape or (0, 0, 0)
    width = 64 if kernel.operand == "fp64" else 32
    bits = ELEMENT_BITS[kernel.operand]
    sums = 16 if kernel.accumulator == "fp16" else width
    return m * k * bits // (32 * width), k * n * bits // (32 * width), m * n * sums // (32 * width)


def flop_of(kernel: Kernel) -> int:
    """FLOP (or integer operations) of one statement: of a thread, or of a matrix instruction."""
    if kernel.shape is not None:
        m, n, k = kernel.shape
        return 2 * m * n * k
    return kernel.flop or 0


def mma_ptx(kernel: Kernel) -> str:
    """The mma.sync instruction of a kernel, without its operands."""
    m, n, k = kernel.shape or (0, 0, 0)
    operand = PTX_NAMES.get(kernel.operand, kernel.operand)
    sums = PTX_NAMES[kernel.accumulator or "fp32"]
    kind = f".{kernel.kind}" if kernel.kind else ""
    scale = f".{kernel.scale}" if kernel.scale else ""
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col{kind}.{sums}.{operand}.{operand}.{sums}{scale}"


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
