"""A case: a kernel whose work and traffic are known by arithmetic, and what must be counted."""

from typing import Literal

import msgspec

from mansard.bench.kernels import Variant
from mansard.counters.table import CounterTable
from mansard.model.columns import WORK_COLUMNS
from mansard.model.paths import PATHS

#: FLOP are counted exactly; bytes depend on the caches, so a little more or less is right too.
EXACT = 0.0
BYTES_TOLERANCE = 0.03

#: Quantity of all work columns but those that a case names.
OTHER_WORK = "other work"

_WORK = frozenset(column.name for column in WORK_COLUMNS)
_VECTOR = frozenset(path.column for path in PATHS if path.pipe == "vector")
#: Compilers move constants with packed half instructions, which count as work.
_MOVES = frozenset({"flop_vector_fp16"})
#: More than the 3 FLOP that stand before a loop of shared.cu, compiled for Blackwell.
_DIVISION_FLOP = 8


#: What chips count instead that cannot tell fp8, fp6 and fp4 apart.
_NARROW = "flop_tensor_fp4_fp6_fp8"


class Buffer(msgspec.Struct, frozen=True, tag="buffer"):
    """Device memory, all zero at first; buffers of one name are the same memory."""

    name: str
    size: int


class Number(msgspec.Struct, frozen=True, tag="number"):
    """A plain argument of a kernel."""

    value: int
    kind: Literal["int32", "uint32", "uint64", "address"] = "uint64"


class KernelLaunch(msgspec.Struct, frozen=True, kw_only=True, tag="kernel"):
    """One launch of a kernel of ours.

    Attributes:
        variant: source, macros, block and shared memory.
        blocks: of the grid.
        arguments: in the order of the kernel.
    """

    variant: Variant
    blocks: int
    arguments: tuple[Buffer | Number, ...]


class ProductLaunch(msgspec.Struct, frozen=True, kw_only=True, tag="product"):
    """One n x n matrix product of the vendor's library."""

    operand: str
    n: int


Launch = KernelLaunch | ProductLaunch


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What one quantity must be.

    Attributes:
        quantity: column of a run, or ``other work``.
        low: least value.
        high: greatest value; the same as ``low`` where one value is right.
        tolerance: relative, on both ends.
        why: why exactly this.
        columns: columns that are added up; the quantity's own when empty.
        per_part: how much more each part may count where a library forms sums in parts.
    """

    quantity: str
    low: float
    high: float
    tolerance: float
    why: str
    columns: tuple[str, ...] = ()
    per_part: float = 0.0

    @property
    def summed(self) -> tuple[str, ...]:
        """The columns that make the quantity."""
        return self.columns or (self.quantity,)


class MachineCode(msgspec.Struct, frozen=True, kw_only=True):
    """How the work of a case follows from the machine code of its kernel.

    A compiler may form an add as a multiply-add, and moves constants with packed half
    instructions; both count as what they are.

    Attributes:
        quantity: column that the work goes to.
        loop_runs: threads that run the main loop, times its iterations.
        threads: of the whole launch.
        predicated: whether each instruction of the loop must carry a predicate.
    """

    quantity: str
    loop_runs: int
    threads: int
    predicated: bool = False


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel with known work.

    Attributes:
        name: unique.
        group: cases of one group are counted together.
        launch: what is counted.
        before: what runs just before, so that the caches are in their steady state; the launch
            itself, twice, when empty.
        expected: what must be counted.
        machine_code: how the work follows from the machine code; None where the compiler cannot
            change it.
        inspect: whether the case says nothing unless its machine code was read, since compilers
            emulate the instruction on some chips, or drop predicates.
    """

    name: str
    group: str
    launch: Launch
    before: tuple[Launch, ...] = ()
    expected: tuple[Expected, ...]
    machine_code: MachineCode | None = None
    inspect: bool = False


class Lacking(msgspec.Struct, frozen=True):
    """A case that this chip cannot run, and why."""

    name: str
    reason: str


def counted_as(column: str, table: CounterTable) -> str:
    """The column that a chip counts some work in: its own, or the sum of the narrow formats."""
    ways, joint = table.quantities.get(column, ()), table.quantities.get(_NARROW, ())
    alone = any(way.formula.counters for way in ways)
    together = any(way.formula.counters for way in joint)
    narrow = column.startswith(("flop_tensor_fp8", "flop_tensor_fp6", "flop_tensor_fp4"))
    return _NARROW if narrow and together and not alone else column


def exactly(quantity: str, value: float, why: str) -> Expected:
    """Work, to the last operation."""
    return Expected(quantity=quantity, low=value, high=value, tolerance=EXACT, why=why)


def bytes_of(level: str, value: float, why: str) -> Expected:
    """Traffic of a level (``l2``, or a part of it as ``dram_read``)."""
    return Expected(
        quantity=f"bytes_{level}", low=value, high=value, tolerance=BYTES_TOLERANCE, why=why
    )


def between(level: str, low: float, high: float, why: str) -> Expected:
    """Traffic of which only the range is known."""
    return Expected(
        quantity=f"bytes_{level}", low=low, high=high, tolerance=BYTES_TOLERANCE, why=why
    )


def almost_none(level: str, of: float, why: str) -> Expected:
    """Traffic that is next to nothing against other traffic of the same kernel."""
    return Expected(
        quantity=f"bytes_{level}", low=0.0, high=BYTES_TOLERANCE * of, tolerance=EXACT, why=why
    )


def no_other_work(*columns: str, vector: bool = False, threads: int = 0) -> Expected:
    """Nothing is counted as work of another path.

    Args:
        columns: where the kernel does have work.
        vector: whether it may do work of the CUDA cores besides.
        threads: of the launch, where each may divide integers, for which compilers use FP32.
    """
    besides = {*columns} | _MOVES | (_VECTOR if vector else frozenset())
    why = "the kernel has no instruction of another path"
    if threads:
        why += f", but for {_DIVISION_FLOP} FLOP with which a thread may divide integers"
    return Expected(
        quantity=OTHER_WORK,
        low=0.0,
        high=float(_DIVISION_FLOP * threads),
        tolerance=EXACT,
        why=why,
        columns=tuple(sorted(_WORK - besides)),
    )
