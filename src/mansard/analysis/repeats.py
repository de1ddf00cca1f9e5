"""Repeats: how sums differ from step to step and rank to rank, and launches among themselves."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mansard.analysis.cube import UNNAMED
from mansard.analysis.launches import BYTES, COPY_KINDS, Launches
from mansard.analysis.layers import KEYS
from mansard.analysis.noise import LEAST_REPEATS, Part
from mansard.engine import literal
from mansard.model.paths import FLOP_PATHS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COPIES = ", ".join(map(literal, COPY_KINDS))
#: The key that the analysis gives to a kernel (with full names), from its name and kind.
_KEY = (
    f"CASE WHEN kind IN ({_COPIES}) THEN CASE WHEN name = '' THEN kind ELSE name END "
    f"ELSE CASE WHEN kind = 'kernel' THEN '' ELSE kind || ': ' END "
    f"|| CASE WHEN name = '' THEN {literal(UNNAMED)} ELSE name END END"
)

#: By what the rows are: the columns of a launch that decide to which it belongs, and its key.
_SOURCES = {
    "kernel": ("name, kind", _KEY),
    "family": ("name, kind", _KEY),
    "phase": ("phase", "phase"),
    **KEYS,
}

#: Row of everything.
TOTALS = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Repeats:
    """Tables in a connection with the sums of a run for each (rank, step).

    Attributes:
        connection: where they are.
        launches: the query.
        name: suffix of the tables' names.
        number: of (rank, step).
        metrics: columns that there are.
        step_time_s: from the first start to the last end, for each (rank, step); empty where
            start times are missing.
    """

    connection: "DuckDBPyConnection"
    launches: Launches
    name: str
    number: int
    metrics: tuple[str, ...]
    step_time_s: tuple[float, ...]

    def of(self, rows: Mapping[str | None, int]) -> dict[tuple[int, str], Part]:
        """Variance of the mean over (rank, step), by row and metric; nothing below 3 of them.

        Args:
            rows: by key (of the kernel, phase, ...), the row that it belongs to.
        """
        if self.number < LEAST_REPEATS:
            return {}
        self._belongs(rows)
        sums = ", ".join(f"sum({metric}) AS {metric}" for metric in self.metrics)
        spreads = ", ".join(
            f"avg({metric}), coalesce(var_samp({metric}), 0)" for metric in self.metrics
        )
        found: dict[tuple[int, str], Part] = {}
        for which, source in (
            ("row", f"repeat_{self.name} JOIN belongs USING (id)"),
            (f"{TOTALS}", f"repeat_{self.name}"),
        ):
            lines = self.connection.execute(
                f"SELECT row, count(*), {spreads} FROM (SELECT {which} AS row, rank, step, {sums} "
                f"FROM {source} GROUP BY ALL) GROUP BY row"
            ).fetchall()
            for row, present, *numbers in lines:
                pairs = zip(numbers[::2], numbers[1::2], strict=True)
                for metric, (mean, variance) in zip(self.metrics, pairs, strict=True):
                    if mean is not None:
                        found[row, metric] = self._part(present, mean, variance)
        return found

    def _part(self, present: int, mean: float, variance: float) -> Part:
        """Steps without any launch of a row did zero of it, and count as such."""
        number = self.number
        between = present * mean**2 * (1 - present / number)
        return Part(((present - 1) * variance + between) / (number - 1) / number, number - 1)

    def of_launches(self, rows: Mapping[str | None, int]) -> dict[int, tuple[int, list[Part]]]:
        """By row: number of launches, and the variance of their summed time for each (rank, step).

        Only rows in which every shape was launched often enough.
        """
        self._belongs(rows)
        lines = self.connection.execute(
            f"SELECT row, count(*), var_samp(duration_s) FROM ({self.launches.sql}) "
            f"JOIN named_{self.name} USING (name, kind) JOIN belongs USING (id) "
            "GROUP BY row, id, shape"
        ).fetchall()
        found: dict[int, tuple[int, list[Part]]] = {}
        scarce = set()
        for row, number, variance in lines:
            if number < LEAST_REPEATS or variance is None:
                scarce.add(row)
                continue
            launches, parts = found.get(row, (0, []))
            part = Part(number * variance / self.number**2, number - 1)
            found[row] = (launches + number, [*parts, part])
        return {row: found[row] for row in found if row not in scarce}

    def shapes(self) -> dict[str | None, int]:
        """By kernel key, a number that is equal for equal sets of grids and blocks."""
        if not self.launches.has_shape:
            return {}
        rows = self.connection.execute(
            "SELECT key, hash(list_sort(list(shape))) FROM (SELECT DISTINCT key, shape "
            f"FROM (SELECT DISTINCT name, kind, shape FROM ({self.launches.sql})) "
            f"JOIN named_{self.name} USING (name, kind)) GROUP BY key"
        ).fetchall()
        return dict(rows)

    def _belongs(self, rows: Mapping[str | None, int]) -> None:
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE belongs AS SELECT id, row FROM "
            "(SELECT unnest($1::VARCHAR[]) AS key, unnest($2::INTEGER[]) AS row) r "
            f"JOIN named_{self.name} n ON n.key IS NOT DISTINCT FROM r.key",
            [list(rows.keys()), list(rows.values())],
        )


def observe(connection: "DuckDBPyConnection", launches: Launches, name: str, *, by: str) -> Repeats:
    """Sum the launches of a run by kernel (or phase, module, ...), rank and step.

    Args:
        connection: where the tables are made.
        launches: the query.
        name: suffix for the tables' names.
        by: what the rows will be: ``kernel``, ``family``, ``phase``, ``module``, ...; families
            are made of kernels.
    """
    live = launches.live
    flop = " + ".join(f"coalesce({path.column}, 0)" for path in FLOP_PATHS if path.column in live)
    sums = {
        "gpu_time": "sum(duration_s)",
        "flop": f"sum({flop or 'NULL::DOUBLE'})",
        **{column: f"sum({column})" for column in BYTES if column in live},
    }
    listed = ", ".join(f"{sql} AS {metric}" for metric, sql in sums.items())
    # Names are long: what follows works with numbers for them.
    which, key = _SOURCES[by]
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE named_{name} AS SELECT row_number() OVER ()::INTEGER AS id, "
        f"{key} AS key, * FROM (SELECT DISTINCT {which} FROM ({launches.sql}))"
    )
    same = " AND ".join(
        f"l.{column} IS NOT DISTINCT FROM n.{column}" for column in which.split(", ")
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE repeat_{name} AS SELECT id, l.rank, l.step, {listed} "
        f"FROM ({launches.sql}) l JOIN named_{name} n ON {same} GROUP BY ALL"
    )
    number = connection.execute(
        f"SELECT count(*) FROM (SELECT DISTINCT rank, step FROM repeat_{name})"
    ).fetchall()[0][0]
    return Repeats(
        connection=connection,
        launches=launches,
        name=name,
        number=number,
        metrics=tuple(sums),
        step_time_s=_step_times(connection, launches),
    )


def _step_times(connection: "DuckDBPyConnection", launches: Launches) -> tuple[float, ...]:
    if not launches.has_start:
        return ()
    rows = connection.execute(
        "SELECT count(*) - count(start_s + duration_s), "
        "max(start_s + duration_s) - min(start_s) "
        f"FROM ({launches.sql}) GROUP BY rank, step ORDER BY rank, step"
    ).fetchall()
    return () if any(unknown for unknown, _ in rows) else tuple(time_s for _, time_s in rows)
