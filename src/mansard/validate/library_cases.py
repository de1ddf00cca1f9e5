"""Cases of known work that are not our code: matrix products of the vendor's library."""

from collections.abc import Iterator

from mansard.counters.table import CounterTable
from mansard.validate.cases import Case, Expected, ProductLaunch, counted_as, exactly, no_other_work

#: A multiple of every tile side in use (64, 96, 128, 192, 256, 384), so that no tile hangs over.
_SQUARE = 3072
_RAGGED = 1000
#: cuBLASLt wants multiples of 16 bytes; the one-byte formats have 1008, ragged for every tile.
_RAGGED_BYTES = 1008
#: Tiles are at most so large, and so deep.
_TILE, _DEPTH = 256, 128
#: Scaling and adding when an element is stored, and the sums of two halves.
_EPILOGUE_FLOP = 4
#: Of a part, where sums over K are formed in parts: its own end, and being added.
_PART_FLOP = _EPILOGUE_FLOP + 1

_COLUMNS = {
    "fp64": ("flop_vector_fp64", "flop_tensor_fp64"),
    "fp32": ("flop_vector_fp32",),
    "tf32": ("flop_tensor_tf32",),
    "fp16": ("flop_tensor_fp16",),
    "bf16": ("flop_tensor_bf16",),
    "e4m3": ("flop_tensor_fp8",),
    "int8": ("op_tensor_int8",),
}


def library_cases(table: CounterTable) -> Iterator[Case]:
    """Square and ragged products of every type of the library."""
    for operand, names in _COLUMNS.items():
        columns = tuple(counted_as(name, table) for name in names)
        name = "fp8" if operand == "e4m3" else operand
        ragged = _RAGGED_BYTES if operand in ("e4m3", "int8") else _RAGGED
        for n in (_SQUARE, ragged):
            vector = operand in ("fp64", "fp32")
            work = _vector_work(columns, n) if vector else _tensor_work(columns[0], n)
            yield Case(
                name=f"GEMM {name} {n}",
                group="library",
                launch=ProductLaunch(operand=operand, n=n),
                expected=(work, no_other_work(*columns, vector=True)),
            )


def _tensor_work(column: str, n: int) -> Expected:
    flop = 2.0 * n**3
    if n == _SQUARE:
        return exactly(column, flop, f"2 x {n}^3; {n} is a multiple of every tile")
    most = 2.0 * (n + _TILE) * (n + _TILE) * (n + _DEPTH)
    return Expected(
        quantity=column,
        low=flop,
        high=most,
        tolerance=0.0,
        why=f"2 x {n}^3 and what hangs over: tiles are at most {_TILE} x {_TILE} x {_DEPTH}",
    )


def _vector_work(columns: tuple[str, ...], n: int) -> Expected:
    """FP64 runs on whichever pipe the chip has for it; both scale what they store."""
    side = n if n == _SQUARE else n + _TILE
    depth = n if n == _SQUARE else n + _DEPTH
    why = f"2 x {n}^3, and up to {_EPILOGUE_FLOP} FLOP an element to scale and add it"
    if n != _SQUARE:
        why += f"; tiles of at most {_TILE} x {_TILE} x {_DEPTH} hang over"
    return Expected(
        quantity=columns[0] if len(columns) == 1 else "fp64 work",
        low=2.0 * n**3,
        high=2.0 * side * side * depth + _EPILOGUE_FLOP * side * side,
        tolerance=0.0,
        why=why,
        columns=columns,
        per_part=float(_PART_FLOP * side * side),
    )
