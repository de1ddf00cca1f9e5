"""Puts counted launches and traced launches together: who was measured, who is like whom."""

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mansard.collect.ncu.plan import Plan, plan_all
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.collect.ranks import Rank
from mansard.counters.apply import Applied
from mansard.engine import identifier, literal
from mansard.model.capture import CAPTURE_COLUMNS, Capture
from mansard.model.columns import COUNTER_PREFIX
from mansard.units import unit_factor

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEASURED, INFERRED = "measured", "inferred"
#: Table of the launches that were put together; it is a capture.
JOINED = "joined"
TRACED = "traced"
_KEYED, _SAMPLES, _MATCHED = "counted_keyed", "samples", "matched"
_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_NS_PER_S = unit_factor("cycle/nsecond")[0]
_UNKNOWN = -1
#: Copies whose bytes cross the link to the host or to another GPU.
_LINK_COPIES = ("memcpy HtoD", "memcpy DtoH", "memcpy PtoP")
#: Columns beside those of every capture.
_OWN_COLUMNS = ("start_s", "duration_s", "counters_from", "bytes_link")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JoinContext:
    """What a join needs to know beside the launches.

    Attributes:
        rank: this process in its job.
        symbols: name of each counted launch as the compiler made it, in the order of rows.
        shared_bytes: counter with the dynamic shared memory of a block.
        work_columns: columns of work that are counted; 0 for copies, which compute nothing.
        plan: which traced launches were to be counted, and which are alike; all where None.
    """

    rank: Rank
    symbols: Sequence[str]
    shared_bytes: str
    work_columns: Sequence[str] = ()
    plan: Plan | None = None


def join(
    connection: "DuckDBPyConnection",
    capture: Capture,
    launches: Sequence[TracedLaunch],
    context: JoinContext,
) -> Capture:
    """Make one capture of a counted run and a traced run of the same program.

    Its rows are the traced launches, with their times. The n-th counted launch of a kernel with
    some grid, block and shared memory is the n-th that was to be counted, so it was measured. A
    launch that was not counted gets the counters of a measured one of the same kernel, grid and
    block: with the same shared memory if there is one, and of these the one whose traced time is
    nearest, whatever its phase: work goes with time. Where there is none, its counters stay
    unknown.

    Args:
        connection: where the capture is.
        capture: the counted launches.
        launches: the traced launches.
        context: names, and what else belongs to the rows.
    """
    _load(connection, launches, context.plan or plan_all(launches))
    by_symbol = all(launch.symbol for launch in launches if launch.kind == "kernel")
    _key_counted(connection, capture, context, by_symbol=by_symbol)
    _match(connection)
    _write(connection, capture, context)
    return Capture(JOINED, capture.counters, capture.provenance)


def needed_counters(capture: Capture, applied: Applied, keep: Sequence[str]) -> tuple[str, ...]:
    """The counters of a capture that columns are made of, and those that a person asked for.

    A report has hundreds more of each launch, attributes of the GPU above all.
    """
    used = " ".join(sql for _, sql in applied.columns)
    return tuple(
        counter
        for counter in capture.counters
        if identifier(COUNTER_PREFIX + counter) in used
        or any(fnmatch.fnmatchcase(counter, pattern) for pattern in keep)
    )


def _load(connection: "DuckDBPyConnection", launches: Sequence[TracedLaunch], plan: Plan) -> None:
    import numpy as np  # noqa: PLC0415  (heavy)

    group_of = {at: group for group, members in enumerate(plan.groups) for at in members}
    texts: Mapping[str, Iterable[str | None]] = {
        "kind": (each.kind for each in launches),
        "symbol": (each.symbol for each in launches),
        "name": (each.name for each in launches),
        "phase": (each.phase for each in launches),
        "range": ("/".join(each.ranges) for each in launches),
    }
    numbers: Mapping[str, Iterable[int | None]] = {
        "number": range(len(launches)),
        "process": (each.process for each in launches),
        "device": (each.device for each in launches),
        "stream": (each.stream for each in launches),
        "start_ns": (each.start_ns for each in launches),
        "duration_ns": (each.end_ns - each.start_ns for each in launches),
        "shared": (each.shared_bytes for each in launches),
        "bytes_moved": (each.bytes_moved for each in launches),
        "group": (group_of.get(at) for at in range(len(launches))),
        "picked": (int(at in plan.picked) for at in range(len(launches))),
        **{
            name: [None if each.shape is None else each.shape[place] for each in launches]
            for place, name in enumerate(_SHAPE)
        },
    }
    count = len(launches)
    arrays = {
        # Never None in an array: the engine guesses the type of objects from a sample.
        **{
            name: np.array([v or "" for v in column], dtype=object)
            for name, column in texts.items()
        },
        **{
            name: np.fromiter((_UNKNOWN if v is None else v for v in column), np.int64, count)
            for name, column in numbers.items()
        },
    }
    columns = [
        *(f"nullif({identifier(name)}, '') AS {identifier(name)}" for name in texts),
        *(f"nullif({identifier(name)}, {_UNKNOWN}) AS {identifier(name)}" for name in numbers),
    ]
    connection.register("traced arrays", arrays)
    try:
        connection.execute(
            f'CREATE TABLE {TRACED} AS SELECT {", ".join(columns)} FROM "traced arrays"'
        )
    finally:
        connection.unregister("traced arrays")


def _key_counted(
    connection: "DuckDBPyConnection",
    capture: Capture,
    context: JoinContext,
    *,
    by_symbol: bool,
) -> None:
    """Number the launches of each kernel and shape, in both runs."""
    import numpy as np  # noqa: PLC0415  (heavy)

    symbols = np.array(context.symbols or [""], dtype=object)
    rows = np.arange(len(symbols), dtype=np.int64)
    connection.register("symbol arrays", {"row": rows, "symbol": symbols})
    shared = (
        f"{identifier(COUNTER_PREFIX + context.shared_bytes)}::BIGINT"
        if context.shared_bytes in capture.counters
        else "NULL::BIGINT"
    )
    shape = ", ".join(_SHAPE)
    try:
        connection.execute(
            f"CREATE TABLE {_KEYED} AS SELECT *, {_occurrence()} FROM ("
            f"SELECT row, 1 AS picked, {_key(by_symbol)} AS key, {shape}, "
            f"coalesce({shared}, {_UNKNOWN}) AS shared, phase, "
            "dense_rank() OVER (ORDER BY process) AS process_number, "
            "row AS number "
            f'FROM {identifier(capture.table)} LEFT JOIN "symbol arrays" USING (row) '
            "WHERE kind = 'kernel' AND grid_x IS NOT NULL)"
        )
    finally:
        connection.unregister("symbol arrays")
    connection.execute(
        f"CREATE TABLE traced_keyed AS SELECT *, {_occurrence()} FROM ("
        f"SELECT number, picked, {_key(by_symbol)} AS key, {shape}, "
        f"coalesce(shared, {_UNKNOWN}) AS shared, phase, duration_ns, "
        "dense_rank() OVER (ORDER BY process) AS process_number "
        f"FROM {TRACED} WHERE kind = 'kernel')"
    )


def _key(by_symbol: bool) -> str:
    return "coalesce(nullif(symbol, ''), name)" if by_symbol else "name"


def _occurrence() -> str:
    return (
        f"row_number() OVER (PARTITION BY picked, process_number, key, {', '.join(_SHAPE)}, shared "
        "ORDER BY number) AS occurrence"
    )


def _match(connection: "DuckDBPyConnection") -> None:
    shape = ", ".join(_SHAPE)
    connection.execute(
        f"CREATE TABLE {_SAMPLES} AS SELECT c.row, c.key, {', '.join(f'c.{s}' for s in _SHAPE)}, "
        "c.shared, coalesce(t.phase, c.phase) AS phase, t.number AS twin, t.duration_ns "
        f"FROM {_KEYED} c LEFT JOIN traced_keyed t "
        f"USING (picked, process_number, key, {shape}, shared, occurrence)"
    )
    unlike = "abs(ln(greatest(t.duration_ns, 1) / greatest(s.duration_ns, 1)))"
    connection.execute(
        f"CREATE TABLE {_MATCHED} AS "
        f"SELECT twin AS number, row, {literal(MEASURED)} AS counters_from, 0.0 AS unlike "
        f"FROM {_SAMPLES} WHERE twin IS NOT NULL UNION ALL "
        f"SELECT t.number, s.row, {literal(INFERRED)}, {unlike} "
        f"FROM traced_keyed t JOIN {_SAMPLES} s USING (key, {shape}) "
        f"WHERE t.number NOT IN (SELECT twin FROM {_SAMPLES} WHERE twin IS NOT NULL) "
        "QUALIFY row_number() OVER (PARTITION BY t.number ORDER BY "
        f"t.shared IS DISTINCT FROM s.shared, {unlike} NULLS LAST, "
        "t.phase IS DISTINCT FROM s.phase, s.row) = 1"
    )


def _write(connection: "DuckDBPyConnection", capture: Capture, context: JoinContext) -> None:
    measured = f"m.counters_from = {literal(MEASURED)}"
    rank = "NULL" if context.rank.rank is None else str(context.rank.rank)
    values = {
        "row": "t.number",
        "host": literal(context.rank.host),
        "rank": rank,
        "id": "t.number",
        "kind": "t.kind",
        # The spelling of ncu, as in a run without a trace.
        "name": "coalesce(c.name, t.name)",
        "phase": f"coalesce(t.phase, CASE WHEN {measured} THEN c.phase END)",
        "range": f'coalesce(t."range", CASE WHEN {measured} THEN c."range" END)',
    }
    columns = [
        f"({values.get(name, f't.{identifier(name)}')})::{sql_type} AS {identifier(name)}"
        for name, sql_type in CAPTURE_COLUMNS
    ]
    links = ", ".join(map(literal, _LINK_COPIES))
    columns += [
        f"(t.start_ns - min(t.start_ns) OVER ()) / {_NS_PER_S!r} AS start_s",
        f"t.duration_ns / {_NS_PER_S!r} AS duration_s",
        "m.counters_from AS counters_from",
        f"(CASE WHEN t.name IN ({links}) THEN t.bytes_moved END)::DOUBLE AS bytes_link",
        *(
            f"(CASE WHEN t.kind <> 'kernel' THEN 0 END)::DOUBLE AS {identifier(column)}"
            for column in context.work_columns
        ),
        *(
            f"c.{identifier(COUNTER_PREFIX + counter)} AS {identifier(COUNTER_PREFIX + counter)}"
            for counter in capture.counters
        ),
    ]
    connection.execute(
        f"CREATE TABLE {JOINED} AS SELECT {', '.join(columns)} FROM {TRACED} t "
        f"LEFT JOIN {_MATCHED} m USING (number) "
        f"LEFT JOIN {identifier(capture.table)} c ON c.row = m.row ORDER BY t.number"
    )
