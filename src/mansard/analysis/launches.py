"""The launches of a run as one SQL query: what its files hold, cleaned of impossible values.

A count or a time cannot be negative, infinite or absurdly large; such a value of a foreign file is
read as unknown, and the launch is marked ``invalid``. Columns that are null throughout are left
out of the query: the files' own statistics tell them, and they cost time.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mansard import engine
from mansard.analysis.file_statistics import LARGEST, statistics
from mansard.errors import FormatError
from mansard.location import File
from mansard.model.columns import RUN_COLUMNS
from mansard.model.paths import LEVELS, PATHS
from mansard.model.run import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WORK = tuple(path.column for path in PATHS)
BYTES = tuple(f"bytes_{level}" for level in LEVELS)
QUANTITIES = ("duration_s", "sm_clock_hz", *WORK, *BYTES)
SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")

#: Columns of the query even where they are null throughout.
ALWAYS = ("duration_s", "sm_clock_hz")

#: What the framework called; a collector inside the process knows it.
NAMED = ("op", "module")

#: Kinds that the copy engines or the driver run: no kernels, and no counters of kernels.
COPY_KINDS = ("memcpy", "memset")

_TYPES = {column.name: column.sql_type for column in RUN_COLUMNS}
_NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("FLOAT", "DOUBLE", "DECIMAL"),
)
_TEXTS = ("VARCHAR", "ENUM")
_NOTHING = '"NULL"'


@dataclasses.dataclass(frozen=True, slots=True)
class Launches:
    """A query for the launches of a run.

    Attributes:
        sql: SELECT with ``name`` and ``kind`` (never null; ``kernel`` unless stated otherwise),
            ``phase``, ``op``, ``module``, ``host``, ``rank``, ``device``, ``step``, ``launch``,
            ``start_s``,
            ``shape`` (equal for equal grid and block), ``blocks``, ``invalid``, and the columns
            of ``live`` and ``ALWAYS``.
        live: those of ``QUANTITIES`` that have a value on some launch.
        full: those that have a value on every launch, impossible ones included.
        has_shape: whether grids and blocks are known at all.
        has_start: whether start times are.
        named: those of ``NAMED`` that have a value on some launch.
        unsound: those of ``live`` that may have impossible values.
        zero: those of ``live`` that have no value but 0.
        alike: columns that are probably null on the same launches, by one of them that stands
            for all; a scan must confirm it.
        alike_nulls: on how many launches that one is null.
        limits: of those of ``live`` that cannot have impossible values, the least and the largest.
        faults: SELECT of one row with, for each column of ``live``, how many of its values were
            impossible. A scan of its own, for when there are any.
    """

    sql: str
    live: frozenset[str]
    full: frozenset[str]
    has_shape: bool
    faults: str
    has_start: bool = False
    named: frozenset[str] = frozenset()
    unsound: frozenset[str] = frozenset()
    zero: frozenset[str] = frozenset()
    alike: Mapping[str, str] = dataclasses.field(default_factory=dict)
    alike_nulls: Mapping[str, int] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


def launches(connection: "DuckDBPyConnection", run: Run) -> Launches:
    """Look at the files of a run and write the query for them.

    Raises:
        FormatError: a column is not of its kind.
    """
    if not run.files:
        return Launches(_EMPTY, frozenset(), frozenset(), has_shape=False, faults="SELECT")
    engine.reach(connection, run.files)
    told = statistics(connection, run.files)
    source = engine.parquet(run.files, uniform=told.uniform)
    types = {
        name: sql_type
        for name, sql_type, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    }
    # Among numbers, a truth value of one file is made a number.
    truths = {name: "BOOLEAN" for name, stored in told.stored.items() if "BOOLEAN" in stored}
    wrong = misplaced_types(types | truths)
    if wrong:
        raise FormatError(
            f"the columns of {run.label or 'the run'} are not those of a run: {wrong}"
        )
    # Among texts, the numbers of one file are made texts.
    if any(_TYPES.get(name) == "VARCHAR" and len(kinds) > 1 for name, kinds in told.stored.items()):
        for file in run.files:
            wrong = misplaced_columns(connection, file)
            if wrong:
                raise FormatError(f"{file} is no run: {wrong}")
    filled = told.filled & types.keys()
    # A cast could make nulls or round.
    right = frozenset(name for name in filled if types[name] == _TYPES.get(name))

    def value(column: str) -> str:
        """The column in the type that a run has for it."""
        if column not in filled:
            return f"CAST(NULL AS {_TYPES[column]})"
        quoted = engine.identifier(column)
        return quoted if column in right else f"TRY_CAST({quoted} AS {_TYPES[column]})"

    def never_null(column: str, otherwise: str) -> str:
        """The column, with a text for null.

        As it is where it can be: the engine then keeps the dictionary of the file, and groups by
        numbers instead of texts.
        """
        if column in told.full & right:
            return engine.identifier(column)
        return f"coalesce({value(column)}, {engine.literal(otherwise)})"

    live = filled & set(QUANTITIES)
    sound = live & told.sound & right
    has_shape = bool(filled & set(SHAPE))
    selected = {
        "name": never_null("name", ""),
        "kind": never_null("kind", "kernel"),
        "phase": value("phase"),
        "op": value("op"),
        "module": value("module"),
        "host": value("host"),
        "rank": value("rank") if "rank" in told.full else _rank(connection, run, value("rank")),
        "device": value("device"),
        "step": value("step"),
        "launch": value("launch"),
        "start_s": value("start_s")
        if "start_s" in told.sound
        else f"CASE WHEN {_finite(value('start_s'))} THEN {value('start_s')} END",
        "blocks": " * ".join(f"CAST({value(f'grid_{axis}')} AS DOUBLE)" for axis in "xyz"),
        "shape": f"hash({', '.join(map(value, SHAPE))})" if has_shape else "0::UBIGINT",
        "invalid": _any(f"NOT {_possible(value(column))}" for column in sorted(live - sound)),
        **{
            column: value(column)
            if column in sound
            else f"CASE WHEN {_possible(value(column))} THEN {value(column)} END"
            for column in sorted(live | set(ALWAYS))
        },
    }
    columns = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
    faults = ", ".join(
        f"count(*) FILTER (NOT {_possible(value(column))}) AS {column}" for column in sorted(live)
    )
    return Launches(
        sql=f"SELECT {columns} FROM {source}",
        live=live,
        full=live & told.full & right,
        has_shape=has_shape,
        faults=f"SELECT {faults} FROM {source}",
        has_start="start_s" in filled,
        named=filled & set(NAMED),
        unsound=live - sound,
        zero=told.zero & sound,
        alike=(alike := told.alike(sorted(sound & {*WORK, *BYTES}))),
        alike_nulls={first: told.nulls[first] for first in alike.values()},
        limits={name: told.limits[name] for name in sound if name in told.limits},
    )


def misplaced_columns(connection: "DuckDBPyConnection", file: File) -> str:
    """Columns of a file that hold what those of a run cannot; an empty text where none does."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {engine.parquet([file])}").fetchall()
    return misplaced_types({name: sql_type for name, sql_type, *_ in described})


def misplaced_types(types: Mapping[str, str]) -> str:
    """Columns of a run that hold what they cannot: text for numbers, and the like.

    Args:
        types: DuckDB's type by column; columns that a run does not know do not matter.

    Returns:
        Each with its type, or an empty text.
    """
    found = []
    for name, sql_type in types.items():
        wanted = _TYPES.get(name)
        if wanted is None or sql_type == _NOTHING:
            continue
        allowed = _TEXTS if wanted == "VARCHAR" else _NUMBERS
        if sql_type.endswith("]") or sql_type.split("(")[0] not in allowed:
            found.append(f"{name} holds {sql_type[:40]} instead of {wanted}")
    return ", ".join(found)


_EMPTY = (
    "SELECT '' AS name, 'kernel' AS kind, NULL::VARCHAR AS phase, "
    "NULL::VARCHAR AS op, NULL::VARCHAR AS module, NULL::VARCHAR AS host, "
    "NULL::INTEGER AS rank, "
    "NULL::INTEGER AS device, NULL::INTEGER AS step, NULL::BIGINT AS launch, "
    "NULL::DOUBLE AS start_s, 0::UBIGINT AS shape, NULL::DOUBLE AS blocks, false AS invalid, "
    "NULL::DOUBLE AS duration_s, NULL::DOUBLE AS sm_clock_hz "
    "WHERE false"
)


def _possible(value: str) -> str:
    return f"({value} >= 0 AND {_finite(value)})"


def _finite(value: str) -> str:
    # The engine would decide a comparison with infinity by the statistics of the file, in which
    # other writers do not count NaN; this it computes.
    return f"{value} - {value} = 0 AND abs({value}) < {LARGEST!r}::DOUBLE"


def _any(conditions: Iterable[str]) -> str:
    return "(" + (" OR ".join(conditions) or "false") + ")"


def _rank(connection: "DuckDBPyConnection", run: Run, column: str) -> str:
    """The rank: from the column, else as the provenance says, else the file's place."""
    stated = [_stated_rank(origin.extra.get("rank")) for origin in run.provenance]
    if len(run.files) == 1:
        return column if not stated or stated[0] is None else f"coalesce({column}, {stated[0]})"
    nulls = connection.execute(
        "SELECT count(*) FROM "
        "(SELECT file_name, sum(CASE WHEN path_in_schema = 'rank' THEN num_values "
        "- coalesce(stats_null_count, 0) END) AS known, max(row_group_num_rows) AS most "
        f"FROM parquet_metadata({engine.file_list(run.files)}) GROUP BY ALL) "
        "WHERE coalesce(known, 0) = 0 AND most > 0"
    ).fetchall()[0][0]
    if not nulls:
        return column
    places = " ".join(
        f"WHEN {engine.literal(str(file.absolute()))} THEN {index if rank is None else rank}"
        for index, (file, rank) in enumerate(zip(run.files, stated, strict=True))
    )
    return f"coalesce({column}, CAST(CASE filename {places} END AS INTEGER))"


def _stated_rank(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None
