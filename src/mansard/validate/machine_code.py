"""What the machine code of a vector chain amounts to, as the counters see it."""

from typing import Any

import msgspec

from mansard.bench.cuda.disassemble import count
from mansard.errors import DeviceError

#: FLOP of a thread instruction, by the column that it counts in; packed ones work on pairs.
FLOP_OF = {
    "flop_vector_fp64": {"DADD": 1, "DMUL": 1, "DFMA": 2},
    "flop_vector_fp32": {"FADD": 1, "FMUL": 1, "FFMA": 2, "FADD2": 2, "FMUL2": 2, "FFMA2": 4},
    "flop_vector_fp16": {"HADD2": 2, "HMUL2": 2, "HFMA2": 4},
}
_PREDICATED = "@"


class ChainWork(msgspec.Struct, frozen=True):
    """FLOP of one thread.

    Attributes:
        loop: of an iteration of the main loop.
        once: of instructions outside of it, all of which may count.
    """

    loop: float
    once: float


def chain_work(listing: Any, entry: str, column: str, *, predicated: bool = False) -> ChainWork:
    """Add up the arithmetic of a kernel with one loop.

    Args:
        listing: as nvdisasm writes it; see ``bench.cuda.disassemble``.
        entry: name of the kernel.
        column: of a run, ``flop_vector_...``.
        predicated: whether all of it in the loop must carry a predicate.

    Raises:
        DeviceError: the loop has arithmetic without a predicate where all must have one.
    """
    marked = _marked(listing, entry, column)
    loop = whole = 0
    for name, flop in FLOP_OF[column].items():
        plain, on = (
            count(marked, entry, rf"{mark}{name}(\..*)?").count for mark in ("", _PREDICATED)
        )
        if predicated and plain:
            raise DeviceError(
                f"machine code: {plain} {name} in the loop have no predicate, so threads that are "
                "off execute them too"
            )
        loop += flop * (plain + on)
        whole += flop * _in_all(marked, entry, name)
    return ChainWork(float(loop), float(whole - loop))


def _marked(listing: Any, entry: str, column: str) -> Any:
    """The listing with a mark before the arithmetic opcodes that have a predicate."""
    head, functions = listing
    for function in functions:
        if function["function-name"] == entry:
            marked = [
                {**one, "opcode": f"{_PREDICATED}{one['opcode']}"}
                if one.get("predicate") and _base(one) in FLOP_OF[column]
                else one
                for one in function["sass-instructions"]
            ]
            return [head, [{"function-name": entry, "sass-instructions": marked}]]
    raise DeviceError(f"nvdisasm: there is no kernel {entry}")


def _in_all(marked: Any, entry: str, name: str) -> int:
    (function,) = (each for each in marked[1] if each["function-name"] == entry)
    opcodes = (_base(one).removeprefix(_PREDICATED) for one in function["sass-instructions"])
    return sum(opcode == name for opcode in opcodes)


def _base(instruction: dict[str, Any]) -> str:
    return str(instruction["opcode"]).split(".", 1)[0]
