"""Apply a counter table to the counters that a file has: SQL, definitions and what is missing."""

import dataclasses
from collections.abc import Collection
from typing import get_args

from mansard.counters.derive import Derived, derive
from mansard.counters.formula import Formula
from mansard.counters.table import RARE_COLUMNS, Alternative, CounterTable, HalfWeights
from mansard.engine import identifier
from mansard.errors import CounterError
from mansard.model.columns import COUNTER_PREFIX, QUANTITY_COLUMNS
from mansard.model.notice import Notice
from mansard.model.paths import PATHS
from mansard.model.provenance import Definition

_UNKNOWN = "NULL::DOUBLE"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a table makes of one file.

    Attributes:
        columns: for every column a table may define, in order, a DuckDB expression of type
            DOUBLE over columns called ``counter.<vendor name>``.
        definitions: how each column that can be made is made.
        missing: for each column that cannot be made, the counters to collect for it.
        notices: what the user must know, one for each concept.
    """

    columns: tuple[tuple[str, str], ...]
    definitions: dict[str, Definition]
    missing: dict[str, tuple[str, ...]]
    notices: tuple[Notice, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Concept:
    """Columns that a user thinks of as one thing, and hears of once."""

    name: str
    noun: str
    columns: tuple[str, ...]


def _paths(pipe: str) -> tuple[str, ...]:
    return tuple(
        path.column for path in PATHS if path.pipe == pipe and path.column not in RARE_COLUMNS
    )


# Links, narrow integers and the read and write parts are left out: few profiles have them.
_CONCEPTS = (
    _Concept("time", "The time of launches", ("duration_s",)),
    _Concept("clock", "The SM clock", ("sm_clock_hz",)),
    _Concept("vector", "Work of the CUDA cores", _paths("vector")),
    _Concept("tensor", "Work of the tensor cores", _paths("tensor")),
    _Concept("shared", "Traffic of shared memory", ("bytes_shared",)),
    _Concept("l1", "Traffic of the L1 cache", ("bytes_l1",)),
    _Concept("l2", "Traffic of the L2 cache", ("bytes_l2",)),
    _Concept("dram", "Traffic of device memory", ("bytes_dram",)),
)
_PATH_NAMES = {path.column: path.name for path in PATHS}


def apply(
    table: CounterTable, available: Collection[str], *, half_weights: HalfWeights | None = None
) -> Applied:
    """Make the columns of a run from the counters of one file.

    For each column the first alternative of the table is taken whose counters the file has, or
    determines (see ``derive``); one alternative holds for the whole file.

    Args:
        table: the definitions for the chip.
        available: vendor names of the counters that the file has.
        half_weights: convention for half precision on the CUDA cores, ``vendor`` (packed pairs:
            2, 2, 4) or ``unpacked`` (1, 1, 2); by default the table's.

    Raises:
        CounterError: for another convention than these.
    """
    names = frozenset(available)
    weights = half_weights or table.half_weights
    if weights not in get_args(HalfWeights):
        raise CounterError(
            f"half_weights is {weights!r}; it must be {' or '.join(get_args(HalfWeights))}"
        )
    duration = _duration(table, names, weights)
    columns: list[tuple[str, str]] = []
    definitions: dict[str, Definition] = {}
    missing: dict[str, tuple[str, ...]] = {}
    caveats: dict[str, Notice] = {}
    for column in (each.name for each in QUANTITY_COLUMNS):
        alternatives = table.alternatives(column, weights)
        chosen = _choose(alternatives, names, duration)
        if chosen is not None:
            alternative, formula, derived = chosen
            columns.append((column, formula.sql(_column)))
            definitions[column] = Definition(
                formula=formula.text,
                meaning=alternative.meaning,
                source=_source(alternative),
                derived=derived,
            )
            if alternative.notice is not None:
                caveats[alternative.notice.code] = alternative.notice
            continue
        if alternatives:
            missing[column] = alternatives[0].formula.counters
        columns.append((column, _evidence(table, column, names, definitions)))
    return Applied(
        columns=tuple(columns),
        definitions=definitions,
        missing=missing,
        notices=(
            *_absences(table, missing, definitions),
            *caveats.values(),
            *_rebuilt(definitions),
        ),
    )


def _duration(table: CounterTable, names: frozenset[str], weights: HalfWeights) -> Formula | None:
    chosen = _choose(table.alternatives("duration_s", weights), names, None)
    return None if chosen is None else chosen[1]


def _choose(
    alternatives: tuple[Alternative, ...], names: frozenset[str], duration: Formula | None
) -> tuple[Alternative, Formula, bool] | None:
    for alternative in alternatives:
        found: dict[str, Derived] = {}
        for counter in alternative.formula.counters:
            derived = derive(counter, names, duration)
            if derived is None:
                break
            found[counter] = derived
        else:
            return (
                alternative,
                alternative.formula.substitute({c: each.formula for c, each in found.items()}),
                any(each.from_rates for each in found.values()),
            )
    return None


def _evidence(
    table: CounterTable, column: str, names: frozenset[str], definitions: dict[str, Definition]
) -> str:
    """0 where a counter shows that the column's unit did nothing, else unknown."""
    idle = [
        found.formula.counters[0]
        for counter, columns in table.evidence.items()
        if column in columns and (found := derive(counter, names)) is not None
    ]
    if not idle:
        return _UNKNOWN
    definitions[column] = Definition(
        formula=f"0 where {' or '.join(f'{counter} = 0' for counter in idle)}, else unknown",
        meaning="known only where the unit that would do the work executed no instruction",
    )
    conditions = " OR ".join(f"{_column(counter)} = 0" for counter in idle)
    return f"CASE WHEN {conditions} THEN 0e0 END"


def _absences(
    table: CounterTable,
    missing: dict[str, tuple[str, ...]],
    definitions: dict[str, Definition],
) -> list[Notice]:
    notices: dict[str, Notice] = {}
    for concept in _CONCEPTS:
        for notice in (table.unavailable.get(column) for column in concept.columns):
            if notice is not None:
                notices[notice.code] = notice
        lost = [column for column in concept.columns if column in missing]
        if lost:
            code = f"{concept.name}-not-collected"
            notices[code] = Notice(code, _not_collected(concept, lost, missing, definitions))
    return list(notices.values())


def _not_collected(
    concept: _Concept,
    lost: list[str],
    missing: dict[str, tuple[str, ...]],
    definitions: dict[str, Definition],
) -> str:
    which = ", ".join(_PATH_NAMES[column] for column in lost if column in _PATH_NAMES)
    counters = dict.fromkeys(counter for column in lost for counter in missing[column])
    sentences = [
        f"{concept.noun} was not collected{which and f' ({which})'}: it is unknown, not 0.",
        f"Collect it with --metrics {','.join(counters)}",
    ]
    if any(column in definitions for column in lost):
        sentences.insert(
            1,
            "Launches without such instructions are 0; for the others the number of "
            "instructions does not tell their work.",
        )
    return " ".join(sentences)


def _rebuilt(definitions: dict[str, Definition]) -> list[Notice]:
    rebuilt = [column for column, definition in definitions.items() if definition.derived]
    if not rebuilt:
        return []
    return [
        Notice(
            code="derived-from-rates",
            message=f"{', '.join(rebuilt)}: rebuilt as rate times cycles or time, "
            "because the file holds rates and no counts",
        )
    ]


def _source(alternative: Alternative) -> str:
    where = "; ".join(alternative.verified_on)
    return f"{alternative.source}. Verified on: {where}" if where else alternative.source


def _column(counter: str) -> str:
    return identifier(COUNTER_PREFIX + counter)
