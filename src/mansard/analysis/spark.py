"""Apache Spark as the engine of the large scans, for runs that outgrow a machine.

The queries are the very ones that DuckDB runs; sqlglot writes them in Spark's dialect. Spark reads
the launches and gives back one row for a kernel on a rank, and the like; all further steps are the
same code on the same small tables. Only the footers of the files are read here, so the driver must
be able to open the paths, too. Nothing else imports pyspark or sqlglot.
"""

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mansard import engine
from mansard.analysis.sql_engine import Scan, embedded
from mansard.errors import MansardError, UsageError
from mansard.model.run import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Where Spark runs when nothing else is said: in this process, on all cores.
LOCAL = "local[*]"

_VIEW = "launch_file"
_SETTINGS = {
    # Like DuckDB: a quotient by 0 is no error, and A and a are two columns.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_TYPES = {
    "VARCHAR": "string",
    "DOUBLE": "double",
    "BIGINT": "bigint",
    "INTEGER": "int",
    "BOOLEAN": "boolean",
}


@contextlib.contextmanager
def scan_with(name: str, run: Run) -> Iterator[Scan]:
    """The engine of a name, ready for the launches of a run.

    Args:
        name: ``duckdb``; ``spark`` for Spark in this process; ``spark://host:7077`` or
            ``spark:MASTER`` for any master that Spark knows.
        run: whose files will be scanned.

    Raises:
        UsageError: there is no such engine, or Spark is not installed or does not start.
    """
    if name == "duckdb":
        yield embedded
        return
    if name != "spark" and not name.startswith("spark:"):
        raise UsageError(f"no engine {name[:60]!r}: give duckdb, spark, or spark:MASTER")
    master = LOCAL if name == "spark" else name if "//" in name[:8] else name[len("spark:") :]
    session, ours = _session(master)
    try:
        yield SparkScan(session, run)
    finally:
        session.catalog.dropTempView(_VIEW)
        if ours:
            session.stop()


class SparkScan:
    """Runs the queries over the launches of one run on Spark: see ``sql_engine.Scan``."""

    def __init__(self, session: Any, run: Run) -> None:
        self._session = session
        self._run = run
        self._shown = False
        self._sources = [engine.parquet(run.files, uniform=one) for one in (True, False)]

    def _show(self) -> None:
        """Let the session see the launches: only when they are asked for, as a file may be gone."""
        # Hadoop's connector for s3:// is called s3a.
        files = [re.sub("^s3://", "s3a://", str(file.absolute())) for file in self._run.files]
        # Names of files come back as URIs; the queries know them as paths, or as they were given.
        path = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
        path = f"regexp_replace({path}, '^file:/+', '/')"
        name = f"regexp_replace({path}, '^s3a://', 's3://') AS filename"
        with _translated():
            found = self._session.read.option("mergeSchema", "true").parquet(*map(_escaped, files))
            found.selectExpr("*", name).createOrReplaceTempView(_VIEW)
        self._shown = True

    def on(self, run: Run) -> "SparkScan":
        """Give the same session with the launches of another run in the place of these."""
        return SparkScan(self._session, run)

    def __call__(
        self, connection: "DuckDBPyConnection", table: str, sql: str, *, uses: Sequence[str] = ()
    ) -> None:
        """Run the query on Spark and bring its result into the connection."""
        if not self._shown:
            self._show()
        for used in uses:
            _lend(self._session, connection, used)
        for source in self._sources:
            sql = sql.replace(source, _VIEW)
        with _translated():
            rows = self._session.sql(in_spark(sql)).toArrow()
        connection.register("from_spark", rows)
        quoted = engine.identifier(table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {quoted} AS SELECT * FROM from_spark")
        connection.unregister("from_spark")


def in_spark(sql: str) -> str:
    """A query of DuckDB's dialect in that of Spark."""
    import sqlglot  # noqa: PLC0415  (only this engine needs it)
    from sqlglot import expressions as sql_tree  # noqa: PLC0415

    def adapt(node: Any) -> Any:
        # Spark's own hash has 32 bits, in which shapes would collide.
        if isinstance(node, sql_tree.Anonymous) and node.name.lower() == "hash":
            return sql_tree.Anonymous(this="xxhash64", expressions=node.expressions)
        # There are no unsigned integers.
        if isinstance(node, sql_tree.DataType) and node.this is sql_tree.DataType.Type.UBIGINT:
            return sql_tree.DataType.build("bigint")
        return node

    found: str = sqlglot.parse_one(sql, read="duckdb").transform(adapt).sql(dialect="spark")
    return found


def _session(master: str) -> tuple[Any, bool]:
    """A session on a master, and whether it was made for us."""
    try:
        import pyarrow  # noqa: F401, ICN001, PLC0415
        import sqlglot  # noqa: F401, PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"the engine spark is not installed ({error.name} is missing): "
            "pip install 'mansard[spark]', and Java 17 or 21"
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.master(master).appName("mansard")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    with _translated():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session, True


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """What Spark raises of files, memory and masters, in one line."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JError, PySparkException, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise MansardError(f"Spark failed: {reason[:300]}") from error


def _lend(session: Any, connection: "DuckDBPyConnection", table: str) -> None:
    """Show Spark a small table of the connection."""
    cursor = connection.execute(f"SELECT * FROM {engine.identifier(table)}")
    schema = ", ".join(
        f"`{column[0]}` {_TYPES.get(str(column[1]), 'string')}" for column in cursor.description
    )
    session.createDataFrame(cursor.fetchall(), schema).createOrReplaceTempView(table)


def _escaped(path: str) -> str:
    """A path in which nothing is a pattern."""
    return "".join(f"\\{letter}" if letter in r"\*?[]{}" else letter for letter in path)
