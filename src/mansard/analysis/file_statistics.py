"""What the files' own statistics tell of their columns: whole scans that need not be made.

Only files that DuckDB wrote are believed, as all runs are: it leaves the limits of a row group
out where a value is NaN, and the upper one where a value is infinite. Others may not.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mansard import engine
from mansard.location import File

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TRUSTED = "DuckDB%"
#: Above any time, clock, work or traffic; sums of what is below have finite squares and quotients.
LARGEST = 1e36


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """Columns by what is known of all their values.

    Attributes:
        filled: not null throughout.
        full: never null.
        sound: nothing negative, above ``LARGEST``, infinite or NaN.
        zero: nothing but 0 and null.
        nulls: how many nulls a column has, where every file has the column.
        stored: the physical types of Parquet that it has.
        limits: least and largest value of a column of numbers, where they are known.
        uniform: whether all files have the same columns, each stored as the same type.
    """

    filled: frozenset[str]
    full: frozenset[str]
    sound: frozenset[str]
    zero: frozenset[str]
    nulls: Mapping[str, int]
    stored: Mapping[str, frozenset[str]]
    limits: Mapping[str, tuple[float, float]]
    uniform: bool

    def alike(self, columns: Iterable[str]) -> dict[str, str]:
        """Columns that are probably null on the same launches, by a column to stand for them.

        They have equally many nulls; whether on the same launches a scan has to tell.
        """
        first: dict[int, str] = {}
        found = {}
        for column in columns:
            count = self.nulls.get(column, 0)
            if count and column in self.sound:
                found[column] = first.setdefault(count, column)
        stands = set(found.values())
        several = {first for column, first in found.items() if column not in stands}
        return {column: first for column, first in found.items() if first in several}


def statistics(connection: "DuckDBPyConnection", files: tuple[File, ...]) -> Statistics:
    """Read the footers of the files."""
    listed = engine.file_list(files)
    trusted = connection.execute(
        f"SELECT bool_and(created_by LIKE '{_TRUSTED}') FROM parquet_file_metadata({listed})"
    ).fetchall()[0][0]
    everywhere = f"count(DISTINCT file_name) = {len(files)}"
    empty = "stats_null_count = num_values"
    least, most = (f"TRY_CAST(stats_{which}_value AS DOUBLE)" for which in ("min", "max"))
    rows = connection.execute(
        "SELECT path_in_schema, "
        "bool_or(stats_null_count IS NULL OR stats_null_count < num_values), "
        f"bool_and(coalesce(stats_null_count = 0, false)) AND {everywhere}, "
        f"bool_and(coalesce({empty} OR ({least} >= 0 AND {most} < {LARGEST!r}), false)), "
        f"bool_and(coalesce({empty} OR ({least} = 0 AND {most} = 0), false)), "
        f"CASE WHEN {everywhere} AND count(stats_null_count) = count(*) "
        "THEN sum(stats_null_count)::BIGINT END, list(DISTINCT type), "
        f"min({least}), max({most}), bool_and(coalesce({empty} OR {least} <= {most}, false)), "
        f"count(DISTINCT file_name) FROM parquet_metadata({listed}) GROUP BY path_in_schema"
    ).fetchall()
    return Statistics(
        filled=frozenset(row[0] for row in rows if row[1]),
        full=frozenset(row[0] for row in rows if row[2] and trusted),
        sound=frozenset(row[0] for row in rows if row[3] and trusted),
        zero=frozenset(row[0] for row in rows if row[4] and trusted),
        nulls={row[0]: row[5] for row in rows if row[5] is not None},
        stored={row[0]: frozenset(row[6]) for row in rows},
        # The shortest text of a FLOAT is another number as a DOUBLE.
        limits={
            row[0]: row[7:9]
            for row in rows
            if trusted and row[9] and row[7] is not None and "FLOAT" not in row[6]
        },
        uniform=bool(rows) and all(len(row[6]) == 1 and row[10] == len(files) for row in rows),
    )


def within(limits: tuple[float, float], least: float, most: float) -> bool:
    """Whether values from ``least`` to ``most`` agree with what the files state; NaN never does."""
    return limits[0] <= least <= most <= limits[1]
