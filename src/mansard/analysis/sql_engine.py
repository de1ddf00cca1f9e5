"""Where the large scans run: the one place that knows that there can be more than one engine.

Everything that grows with the number of launches is one SELECT, written in DuckDB's dialect, whose
result is small: a row for a kernel on a rank, for a collective call, for a step. A ``Scan`` runs
such a SELECT and leaves its result as a table of the DuckDB connection, where the rest of the
analysis goes on. DuckDB runs it itself, out of core; ``analysis.spark`` has Apache Spark run it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mansard import engine

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from mansard.model.run import Run


class Scan(Protocol):
    """Runs a query over the launches of a run."""

    def on(self, run: "Run") -> "Scan":
        """Give the same engine for the launches of another run."""

    def __call__(
        self, connection: "DuckDBPyConnection", table: str, sql: str, *, uses: Sequence[str] = ()
    ) -> None:
        """Leave the result of a query as a table.

        Args:
            connection: where the table is made; one of that name is replaced.
            table: its name.
            sql: SELECT over the launches, in DuckDB's dialect.
            uses: small tables of the connection that the query names beside the launches.
        """


class _Embedded:
    """Runs the queries in DuckDB itself: see ``Scan``."""

    def on(self, run: "Run") -> "_Embedded":
        """Return itself: a query names its files."""
        del run
        return self

    def __call__(
        self, connection: "DuckDBPyConnection", table: str, sql: str, *, uses: Sequence[str] = ()
    ) -> None:
        """Run the query where the table is wanted."""
        del uses  # they are there already
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {engine.identifier(table)} AS {sql}")


#: DuckDB, in this process.
embedded = _Embedded()
