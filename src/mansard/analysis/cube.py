"""From launches to sums: one scan into a small cube, from which every table is rolled up.

A cell of the cube is one kernel name in one phase on one rank. What the analysis says of single
launches (floors, zero FLOP, above the roof) is decided in the scan and summed.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from mansard import engine
from mansard.analysis.collected import known
from mansard.analysis.families import family
from mansard.analysis.floors import LAUNCH, Resource, resources
from mansard.analysis.launches import COPY_KINDS, Launches
from mansard.analysis.measures import IS_COPY, measures, twins
from mansard.analysis.names import short_name
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.sql_engine import Scan, embedded
from mansard.model.machine import Machine
from mansard.model.paths import FLOP_PATHS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Key of launches whose kernel has no name.
UNNAMED = "(no name)"

#: Which roll-up a row belongs to, and the name of its group.
_GROUPED = (
    "CASE WHEN grouping(key) = 0 THEN 'kernel' WHEN grouping(phase) = 0 THEN 'phase' "
    "WHEN grouping(rank) = 0 THEN 'rank' WHEN grouping(family) = 0 THEN 'family' "
    "ELSE 'totals' END AS of, coalesce(key, phase, CAST(rank AS VARCHAR), family) AS group_key"
)
_LEAST = ("shortest_s", "first_launch", "first_start_s")
_MOST = ("longest_s",)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What the scan has to compute.

    Attributes:
        launches: the query for the launches.
        resources: what takes time; empty without a machine.
        absent: work columns of paths that the chip does not have.
        options: how to count and time.
        scan: what runs the queries over the launches.
    """

    launches: Launches
    resources: tuple[Resource, ...]
    absent: frozenset[str]
    options: AnalysisOptions
    scan: Scan = embedded


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One row of a roll-up: a group's sums.

    Attributes:
        of: ``totals``, ``phase``, ``rank``, ``family`` or ``kernel``.
        key: name of the group; None for launches outside any.
        sums: by the names of ``measures``; None where no launch has the value.
    """

    of: str
    key: str | None
    sums: dict[str, Any]

    def value(self, name: str) -> float | None:
        """A sum, or None where no launch has the value or it was not computed."""
        found: float | None = self.sums.get(name)
        return found

    def count(self, name: str) -> int:
        """A count, 0 where there are no launches."""
        return int(self.sums.get(name) or 0)

    def missing(self, column: str) -> int:
        """How many kernels launched without a value for a column of work or traffic."""
        if column not in self.sums:
            return self.count("counted")
        return self.count(f"missing {column}")


def build(connection: "DuckDBPyConnection", plan: Plan, machine: Machine | None = None) -> Plan:
    """Scan the launches and leave the cube as table ``cell`` of the connection.

    Args:
        connection: where the table is made.
        plan: what to compute.
        machine: what the resources of the plan are of.

    Returns:
        The plan as it was carried out.
    """
    _scan(connection, plan)
    if not _confirmed(connection, plan):
        # Impossible values were taken out, or nulls lie elsewhere than the statistics suggest:
        # each column has to be asked for itself.
        launches = dataclasses.replace(plan.launches, full=frozenset(), alike={}, alike_nulls={})
        known_of = resources(machine, launches) if machine else ()
        plan = dataclasses.replace(plan, launches=launches, resources=known_of)
        _scan(connection, plan)
    _describe_names(connection, plan)
    connection.execute(
        f"CREATE TEMP TABLE cell AS SELECT {_ruled(plan)} FROM cube JOIN names USING (name, kind)"
    )
    return plan


def _ruled(plan: Plan) -> str:
    """SQL: all columns of a table of cells, with those without FLOP by the rule of the options.

    The cells are told apart by name, kind and phase at least.
    """
    if plan.options.zero_flop_by != "name":
        return "*"
    alike = "OVER (PARTITION BY name, kind, phase)"
    is_zero = f"sum(decided) {alike} = sum(launches) {alike} AND sum(flop) {alike} = 0"
    zero_n, zero_s = (
        f"CASE WHEN {is_zero} THEN {value} ELSE 0 END" for value in ("launches", "duration_s")
    )
    return f'* REPLACE ({zero_n} AS "zero launches", {zero_s} AS zero_s)'


def _scan(connection: "DuckDBPyConnection", plan: Plan) -> None:
    found = measures(plan)
    listed = ", ".join(f"{sql} AS {engine.identifier(name)}" for name, sql in found.items())
    plan.scan(
        connection,
        "cube",
        f"SELECT name, kind, phase, rank, {listed} "
        f"FROM ({_placed(plan)}) AS placed GROUP BY name, kind, phase, rank",
    )


def _confirmed(connection: "DuckDBPyConnection", plan: Plan) -> bool:
    """Whether the launches are as the statistics of the files let expect."""
    nulls = plan.launches.alike_nulls
    counted = ["sum(invalid)", *(f"sum({engine.identifier(f'none {name}')})" for name in nulls)]
    invalid, *found = connection.execute(f"SELECT {', '.join(counted)} FROM cube").fetchall()[0]
    return not invalid and (invalid is None or found == list(nulls.values()))


def roll_up(connection: "DuckDBPyConnection", plan: Plan) -> list[Row]:
    """Sum the cube to totals, phases (in order of first launch), ranks, families and kernels."""
    rows = _summed(
        connection,
        plan,
        f"SELECT {_GROUPED}, any_value(short_name) AS short_name, "
        "arg_max(family_of, coalesce(duration_s, 0)) AS family_of, "
        f"{_added_up(plan)} FROM (SELECT *, family AS family_of FROM cell) "
        "GROUP BY GROUPING SETS ((), (phase), (rank), (family), (key)) "
        "ORDER BY first_launch, first_start_s, group_key",
    )
    # Beside the sums and not with them: distinct counts there cost as much as all of them.
    distinct = {
        (of, key): count
        for of, key, count in connection.execute(
            f"SELECT {_GROUPED}, count(DISTINCT key) FROM cell "
            "GROUP BY GROUPING SETS ((), (phase), (rank), (family), (key))"
        ).fetchall()
    }
    found = []
    for row in rows:
        of, key = row.pop("of"), row.pop("group_key")
        found.append(Row(of, key, row | {"kernels": distinct[of, key]}))
    return found


def scan_by(connection: "DuckDBPyConnection", plan: Plan, column: str) -> None:
    """Scan the launches once more, by another column of theirs, to the table ``by_COLUMN``."""
    found = measures(plan)
    listed = ", ".join(f"{sql} AS {engine.identifier(name)}" for name, sql in found.items())
    plan.scan(
        connection,
        f"by_{column}",
        f"SELECT {column}, name, kind, phase, {listed} "
        f"FROM ({_placed(plan)}) AS placed GROUP BY {column}, name, kind, phase",
    )


def sums_by(connection: "DuckDBPyConnection", plan: Plan, column: str, key: str) -> list[Row]:
    """Sums of what ``scan_by`` left, by an SQL expression of its column."""
    rows = _summed(
        connection,
        plan,
        f"SELECT {key} AS group_key, count(DISTINCT key) AS kernels, {_added_up(plan)} "
        f"FROM (SELECT {_ruled(plan)} FROM by_{column}) JOIN names USING (name, kind) "
        "GROUP BY group_key ORDER BY group_key",
    )
    return [Row(column, row.pop("group_key"), row) for row in rows]


def _added_up(plan: Plan) -> str:
    """SQL: the measures of several cells as those of one."""
    summed = []
    for name in measures(plan):
        how = "min" if name in _LEAST else "max" if name in _MOST else "sum"
        quoted = engine.identifier(name)
        summed.append(f"{how}({quoted}) AS {quoted}")
    return ", ".join(summed)


def _summed(connection: "DuckDBPyConnection", plan: Plan, sql: str) -> list[dict[str, Any]]:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    for row in rows:
        row |= {name: row[twin] for name, twin in twins(plan).items()}
    return rows


def kinds(connection: "DuckDBPyConnection") -> dict[str, int]:
    """Launches by kind."""
    return dict(
        connection.execute(
            "SELECT kind, sum(launches)::BIGINT FROM cube GROUP BY kind ORDER BY kind"
        ).fetchall()
    )


def faulty_columns(connection: "DuckDBPyConnection", launches: Launches) -> list[str]:
    """Columns with values that cannot be."""
    cursor = connection.execute(launches.faults)
    names = [column[0] for column in cursor.description]
    return [name for name, count in zip(names, cursor.fetchall()[0], strict=True) if count]


def _placed(plan: Plan) -> str:
    """Every launch with its floors, its FLOP and what follows from them."""
    live = plan.launches.live
    counted = [path.column for path in FLOP_PATHS if path.column in live - plan.launches.zero]
    added = {
        "flop": " + ".join(f"coalesce({column}, 0)" for column in counted) or "0",
        # Without any counter of a pipe, no FLOP on the other does not mean that there are none.
        "pipes_known": f"({IS_COPY} OR ({_pipe_known(plan, 'vector')} "
        f"AND {_pipe_known(plan, 'tensor')}))",
    }
    hardware = []
    for resource in plan.resources:
        column = f"floor_{resource.name}"
        added[column] = resource.floor
        added[f"open_{resource.name}"] = f"({resource.open} AND NOT {IS_COPY})"
        if resource.name != LAUNCH and resource.counted:
            hardware.append(column)
    listed = ", ".join(f"{sql} AS {name}" for name, sql in added.items())
    # The cost of a launch is no time on the GPU: nothing can be above it.
    roof = f"greatest({', '.join(hardware)})" if hardware else "NULL::DOUBLE"
    floor = "greatest(floor_roof, floor_launch)" if "floor_launch" in added else "floor_roof"
    return (
        f"SELECT *, {floor} AS floor FROM (SELECT *, {roof} AS floor_roof "
        f"FROM (SELECT *, {listed} FROM ({plan.launches.sql})))"
    )


def _pipe_known(plan: Plan, pipe: str) -> str:
    """SQL: whether a launch that shows no work on a pipe did none there.

    Paths that no launch has a count for are taken as unused if others of the pipe were counted.
    """
    live = plan.launches.live
    columns = [path.column for path in FLOP_PATHS if path.pipe == pipe]
    if plan.absent.issuperset(columns):
        return "true"
    asked = [known(column, live, plan.launches.alike) for column in columns if column in live]
    return " AND ".join(dict.fromkeys(asked)) or "false"


def _describe_names(connection: "DuckDBPyConnection", plan: Plan) -> None:
    """Short name, family and key of every distinct name: table ``names``."""
    found = connection.execute("SELECT DISTINCT name, kind FROM cube ORDER BY ALL").fetchall()
    rows = [(name, kind, *_described(name, kind, plan.options)) for name, kind in found]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], [], []]
    connection.execute(
        "CREATE TEMP TABLE names AS SELECT unnest($1::VARCHAR[]) AS name, "
        "unnest($2::VARCHAR[]) AS kind, unnest($3::VARCHAR[]) AS key, "
        "unnest($4::VARCHAR[]) AS short_name, unnest($5::VARCHAR[]) AS family",
        columns,
    )


def _described(name: str, kind: str, options: AnalysisOptions) -> tuple[str, str, str]:
    """Key, short name and family."""
    full = name or (kind if kind in COPY_KINDS else UNNAMED)
    short = short_name(name) or full
    if kind in COPY_KINDS:
        return full, short, "copy"
    if kind == "kernel":
        return (full if options.names == "full" else short), short, family(full)
    # A graph or a range is many kernels in one row: it must not be taken for one of them.
    return f"{kind}: {full}", f"{kind}: {short}", "other"
