"""What to collect: the counters for columns of a run, in groups that make sense alone.

How many passes a group costs is known to NVIDIA's library alone; the collectors ask it.
"""

import dataclasses
from collections.abc import Iterable

from mansard.counters.table import RARE_COLUMNS, Alternative, CounterTable
from mansard.errors import CounterError
from mansard.model.columns import QUANTITY_COLUMNS
from mansard.model.paths import LEVELS, PATHS

_COMMON_TENSOR_COLUMNS = tuple(
    path.column for path in PATHS if path.pipe == "tensor" and path.column not in RARE_COLUMNS
)
_NAMES = frozenset(column.name for column in QUANTITY_COLUMNS)
_BASE_COLUMNS = (
    "duration_s",
    "sm_clock_hz",
    *(path.column for path in PATHS if path.pipe == "vector"),
    *(f"bytes_{level}" for level in LEVELS if level != "link"),
    "bytes_dram_read",
    "bytes_dram_write",
)


@dataclasses.dataclass(frozen=True, slots=True)
class CounterGroup:
    """Counters that are collected together.

    Attributes:
        name: ``base``, ``tensor bf16``, ``tensor dense``, ``parts`` or ``link``.
        columns: columns of a run that it makes.
        counters: vendor names.
    """

    name: str
    columns: tuple[str, ...]
    counters: tuple[str, ...]


def counters_for(
    table: CounterTable, columns: Iterable[str], *, prefer: str | None = None
) -> tuple[str, ...]:
    """The counters to collect for columns of a run: those of the best alternative of each.

    Args:
        table: the definitions for the chip.
        columns: names of columns; those that the chip cannot give need no counter.
        prefer: label of an alternative to take instead, where a column has it; ``dense`` leaves
            out 2:4 sparse tensor instructions and needs about half of the passes.

    Raises:
        CounterError: for a column that no table defines.
    """
    found: dict[str, None] = {}
    for column in columns:
        if column not in _NAMES:
            raise CounterError(f"no counter makes a column {column!r}")
        alternatives = table.alternatives(column, table.half_weights)
        if alternatives:
            found |= dict.fromkeys(_preferred(alternatives, prefer).formula.counters)
    return tuple(found)


def counter_groups(table: CounterTable) -> tuple[CounterGroup, ...]:
    """All that a chip can count, in groups: cheap and always wanted first.

    ``base`` has time, clock, work of the CUDA cores, bytes of each level, and the counters that
    tell whether a launch used the tensor cores at all. Then one group for each tensor
    precision; ``tensor dense`` with those of neural networks together, without 2:4 sparse
    instructions; ``parts`` with the reads and writes inside the chip; and ``link``.
    """
    tensor = {path.name: path.column for path in PATHS if path.pipe == "tensor"}
    inner = tuple(
        f"bytes_{level}_{part}" for level in ("shared", "l1", "l2") for part in ("read", "write")
    )
    groups = [
        CounterGroup(
            "base",
            tuple(c for c in _BASE_COLUMNS if table.quantities.get(c)),
            tuple(dict.fromkeys((*counters_for(table, _BASE_COLUMNS), *table.evidence))),
        ),
        *(_group(table, name, (column,)) for name, column in tensor.items()),
        _group(table, "tensor dense", _COMMON_TENSOR_COLUMNS, prefer="dense"),
        _group(table, "parts", inner),
        _group(table, "link", ("bytes_link", "bytes_link_read", "bytes_link_write")),
    ]
    return tuple(group for group in groups if group.counters)


def _group(
    table: CounterTable, name: str, columns: tuple[str, ...], prefer: str | None = None
) -> CounterGroup:
    counted = tuple(column for column in columns if counters_for(table, (column,)))
    return CounterGroup(name, counted, counters_for(table, counted, prefer=prefer))


def _preferred(alternatives: tuple[Alternative, ...], label: str | None) -> Alternative:
    return next((each for each in alternatives if label and each.label == label), alternatives[0])
