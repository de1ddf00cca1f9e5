"""The way of the V100 study: one file per metric, each from a run of its own of the program."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mansard.engine import identifier, room_for
from mansard.errors import FormatError, MansardError
from mansard.model.capture import CAPTURE_COLUMNS, Capture
from mansard.model.columns import COUNTER_PREFIX
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance
from mansard.readers.ncu_csv.peek import counters_asked_for
from mansard.readers.ncu_csv.read import read_ncu_csv
from mansard.readers.wanted import EVERYTHING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SHAPE = tuple(f"{shape}_{axis}" for shape in ("grid", "block") for axis in "xyz")
_MAX_NAMES = 3
_LONGEST_NAME = 60


@dataclasses.dataclass(frozen=True, slots=True)
class _Join:
    """A way to find the same launch in every file.

    Attributes:
        keys: columns that say which launch it is, beside its number among equals.
        sentence: for the provenance.
    """

    keys: tuple[str, ...]
    sentence: str


_BY_ORDER = _Join((), "by launch order: all files hold the same kernels in the same order")
_BY_SHAPE = _Join(
    ("name", *_SHAPE),
    "by kernel name, grid, block and occurrence: the launch order differs between the files",
)
_BY_NAME = _Join(
    ("name",), "by kernel name and occurrence: the launch order differs between the files"
)


def is_metric_folder(files: Sequence[Path]) -> bool:
    """Tell files of different metrics of the same launches from files of different ranks.

    Args:
        files: all from one folder. Files that are not the output of ncu do not count.

    Returns:
        Whether two files or more are from ncu and no metric is in two of them.
    """
    asked = [counters for counters in map(counters_asked_for, files) if counters]
    together = frozenset().union(*asked)
    return len(asked) > 1 and sum(map(len, asked)) == len(together)


def read_metric_folder(
    files: Sequence[Path],
    connection: "DuckDBPyConnection",
    table: str,
    *,
    keep: Sequence[str] = EVERYTHING,
) -> Capture:
    """Read files of different metrics as one capture.

    Launches are joined by their order where the kernel names agree in every file, and else by
    name and occurrence, which keeps the sums of every kernel: the n-th launch of a name in one
    run is taken for the n-th in the others.

    Args:
        files: CSV of ncu; what is not is left out with a notice.
        connection: where to create the table.
        table: its name.
        keep: patterns of the counters to read, beside those that a counter table has a use for.

    Returns:
        One row per launch; null where a file lacks the launch. ``provenance.join`` says how the
        files were joined.

    Raises:
        FormatError: no file can be used.
    """
    parts: list[Capture] = []
    notices: list[Notice] = []
    failures: list[MansardError] = []
    for number, path in enumerate(files):
        try:
            part = read_ncu_csv(
                path, connection, f"{table} file {number}", name=path.name, keep=keep
            )
        except MansardError as error:
            failures.append(error)
            ours = not isinstance(error, FormatError)
            notices.append(Notice("file-skipped", f"left out: {error}", partial=ours))
        else:
            parts.append(part)
    if not parts:
        raise failures[0] if failures else FormatError("no files were given")
    join = _choose(parts, connection)
    columns = sum(len(part.counters) for part in parts)
    with room_for(connection, columns=columns, rows=0):
        counters, repeated = _create(parts, connection, table, join)
    notices += repeated
    if join is not _BY_ORDER:
        notices += _uneven(parts, connection)
    for part in parts:
        connection.execute(f"DROP TABLE {identifier(part.table)}")
    return Capture(table, counters, _merged(parts, join, notices))


def _choose(parts: Sequence[Capture], connection: "DuckDBPyConnection") -> _Join:
    if _agree(parts, connection, (*_SHAPE, "name"), order="row"):
        return _BY_ORDER
    known = " UNION ALL ".join(f"SELECT grid_x FROM {identifier(part.table)}" for part in parts)
    row = connection.execute(f"SELECT count(*) FROM ({known}) WHERE grid_x IS NULL").fetchone()
    if row == (0,) and _agree(parts, connection, _BY_SHAPE.keys, order=None):
        return _BY_SHAPE
    return _BY_NAME


def _agree(
    parts: Sequence[Capture],
    connection: "DuckDBPyConnection",
    keys: Sequence[str],
    *,
    order: str | None,
) -> bool:
    """Whether all parts hold the same launches by these keys, in the same order if one is given."""
    first, *others = (
        f"SELECT {', '.join(keys)}{f', {order}' if order else ''} FROM {identifier(part.table)}"
        for part in parts
    )
    for other in others:
        for left, right in ((first, other), (other, first)):
            row = connection.execute(f"({left} EXCEPT ALL {right}) LIMIT 1").fetchone()
            if row is not None:
                return False
    return True


def _create(
    parts: Sequence[Capture], connection: "DuckDBPyConnection", table: str, join: _Join
) -> tuple[tuple[str, ...], list[Notice]]:
    selects: list[str] = []
    counters: dict[str, str] = {}
    repeated: dict[str, None] = {}
    for number, part in enumerate(parts):
        own = [counter for counter in part.counters if counter.lower() not in counters]
        repeated.update(dict.fromkeys(set(part.counters) - set(own)))
        counters.update({counter.lower(): counter for counter in own})
        columns = ", ".join(
            identifier(name)
            for name in (
                *(column for column, _ in CAPTURE_COLUMNS),
                *(COUNTER_PREFIX + counter for counter in own),
            )
        )
        equals = f"PARTITION BY {', '.join(join.keys)} " if join.keys else ""
        selects.append(
            f"SELECT {number} AS file, row_number() OVER ({equals}ORDER BY row) AS occurrence, "
            f"{columns} FROM {identifier(part.table)}"
        )
    # What a launch is comes from the first file that has it.
    identity = ", ".join(
        f"arg_min({identifier(name)}, file) AS {identifier(name)}"
        for name, _ in CAPTURE_COLUMNS
        if name != "row"
    )
    values = "".join(
        f", any_value({identifier(COUNTER_PREFIX + name)}) AS {identifier(COUNTER_PREFIX + name)}"
        for name in counters.values()
    )
    keys = ", ".join(("occurrence", *join.keys))
    connection.execute(
        f"CREATE TABLE {identifier(table)} AS SELECT "
        "row_number() OVER (ORDER BY first_file, first_row) - 1 AS row, "
        "* EXCLUDE (first_file, first_row) FROM ("
        f"SELECT min(file) AS first_file, arg_min(row, file) AS first_row, {identity}{values} "
        f"FROM ({' UNION ALL BY NAME '.join(selects)}) GROUP BY {keys}) ORDER BY row"
    )
    return tuple(counters.values()), _repeated_notice(sorted(repeated))


def _repeated_notice(repeated: Sequence[str]) -> list[Notice]:
    if not repeated:
        return []
    return [
        Notice(
            "metric-in-two-files",
            f"{', '.join(repeated[:_MAX_NAMES])}: in more than one file; the first file counts",
        )
    ]


def _uneven(parts: Sequence[Capture], connection: "DuckDBPyConnection") -> list[Notice]:
    """Say which kernels do not come equally often in every file."""
    counts = " UNION ALL ".join(
        f"SELECT {number} AS file, name, count(*) AS launches "
        f"FROM {identifier(part.table)} GROUP BY name"
        for number, part in enumerate(parts)
    )
    rows = connection.execute(
        "SELECT count(*) OVER (), name, least, most FROM ("
        f"SELECT name, if(count(*) < {len(parts)}, 0, min(launches)) AS least, "
        f"max(launches) AS most FROM ({counts}) GROUP BY name) "
        f"WHERE least < most ORDER BY most - least DESC, name LIMIT {_MAX_NAMES}"
    ).fetchall()
    if not rows:
        return []
    named = "; ".join(
        f"{str(name)[:_LONGEST_NAME]} ({least} to {most})" for _, name, least, most in rows
    )
    return [
        Notice(
            "launch-counts-differ",
            f"{rows[0][0]} kernels do not have the same number of launches in every file, and "
            f"some of their counters are unknown: {named}. The program did not do the same work "
            "in every run",
            partial=True,
        )
    ]


def _merged(parts: Sequence[Capture], join: _Join, notices: Sequence[Notice]) -> Provenance:
    origins = [part.provenance for part in parts]
    lost = [origin.lost_launches for origin in origins]
    skipped = sum(int(origin.extra.get("skipped_lines", "0")) for origin in origins)

    def shared(field: str) -> str | None:
        values = {getattr(origin, field) for origin in origins}
        return values.pop() if len(values) == 1 else None

    return msgspec.structs.replace(
        origins[0],
        sources=tuple(name for origin in origins for name in origin.sources),
        devices=tuple(dict.fromkeys(device for origin in origins for device in origin.devices)),
        clock_control=shared("clock_control"),
        cache_control=shared("cache_control"),
        join=join.sentence,
        notices=tuple(
            dict.fromkeys((*notices, *(n for origin in origins for n in origin.notices)))
        ),
        lost_launches=None if None in lost else sum(count or 0 for count in lost),
        extra={"skipped_lines": str(skipped)} if skipped else {},
    )
