"""From the text columns of a launch to the columns of a capture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mansard.engine import identifier, literal
from mansard.model.capture import CAPTURE_COLUMNS
from mansard.model.columns import COUNTER_PREFIX
from mansard.readers.ncu_csv.ranges import ranges_of
from mansard.readers.ncu_csv.vocabulary import vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SIZE = r"^\(?(\d+)[,;x] *(\d+)[,;x] *(\d+)\)?$"
#: What ncu calls results that are no kernels.
_OTHER_KINDS = ("graph", "range")


def capture_select(
    connection: "DuckDBPyConnection",
    source: str,
    *,
    roles: Mapping[str, str],
    counters: Mapping[str, str],
    ranges: str,
) -> str:
    """SQL that makes the rows of a capture, with ``seq`` in place of ``row``.

    Args:
        connection: of the engine.
        source: a sub-select with ``seq`` and the columns below.
        roles: text column of the source by its role (``process``, ``name``, ``grid``, ...).
        counters: SQL of the value by vendor name, over the columns of the source.
        ranges: name of the temporary table to create for named ranges.
    """
    words = vocabulary()
    columns: dict[str, str] = {
        "host": _text(roles.get("host")),
        "rank": "NULL",
        "id": _text(roles.get("id")),
        "name": _text(roles.get("name")),
        "process": _integer(roles.get("process")),
        "device": _integer(roles.get("device")),
        "stream": _integer(roles.get("stream")),
    }
    for shape in ("grid", "block"):
        for place, axis in enumerate("xyz", start=1):
            columns[f"{shape}_{axis}"] = _size(roles.get(shape), place)
    # A launch fact without a column of its own may stand among the metrics.
    for column, metric in words.launch.items():
        if metric in counters:
            known = columns[column]
            value = f"try_cast({counters[metric]} AS BIGINT)"
            columns[column] = value if known == "NULL" else f"coalesce({known}, {value})"
    others = ", ".join(literal(kind) for kind in _OTHER_KINDS)
    name = columns["name"]
    columns["kind"] = f"CASE WHEN {name} IN ({others}) THEN {name} ELSE 'kernel' END"
    # These have none of their own; what is there is the greatest of their launches.
    for column in (f"{shape}_{axis}" for shape in ("grid", "block") for axis in "xyz"):
        columns[column] = f"CASE WHEN {name} IN ({others}) THEN NULL ELSE {columns[column]} END"
    # A graph is launched into one stream.
    columns["stream"] = f"CASE WHEN {name} = 'range' THEN NULL ELSE {columns['stream']} END"
    join = ""
    columns["phase"] = columns["range"] = "NULL"
    pair = [roles.get("push_pop"), roles.get("start_stop")]
    if any(pair):
        push_pop, start_stop = (f"coalesce({role}, '')" if role else "''" for role in pair)
        _create_ranges(
            connection, ranges, f"SELECT DISTINCT {push_pop}, {start_stop} FROM {source}"
        )
        join = (
            f" LEFT JOIN {identifier(ranges)} AS named "
            f"ON named.push_pop_text = {push_pop} AND named.start_stop_text = {start_stop}"
        )
        columns["phase"], columns["range"] = "named.phase_name", "named.path"
    selected = [
        f"({columns[column]})::{sql_type} AS {identifier(column)}"
        for column, sql_type in CAPTURE_COLUMNS
        if column != "row"
    ]
    selected += [
        f"{value} AS {identifier(COUNTER_PREFIX + counter)}" for counter, value in counters.items()
    ]
    return f"SELECT seq, {', '.join(selected)} FROM {source}{join}"


def launch_filter(role: str | None) -> str:
    """Condition that a row is a launch: its ID is a number."""
    return "true" if role is None else rf"regexp_full_match({role}, '\d[\d.,]*')"


def _text(column: str | None) -> str:
    return "NULL" if column is None else f"nullif({column}, '')"


def _integer(column: str | None) -> str:
    if column is None:
        return "NULL"
    return rf"try_cast(regexp_replace({column}, '[^\d]', '', 'g') AS BIGINT)"


def _size(column: str | None, place: int) -> str:
    if column is None:
        return "NULL"
    return f"try_cast(regexp_extract({column}, {literal(_SIZE)}, {place}) AS BIGINT)"


def _create_ranges(connection: "DuckDBPyConnection", table: str, distinct: str) -> None:
    pairs = connection.execute(distinct).fetchall()
    found = [ranges_of(push_pop, start_stop) for push_pop, start_stop in pairs]
    connection.execute(
        f"CREATE TEMP TABLE {identifier(table)} AS SELECT unnest($1::VARCHAR[]) AS push_pop_text, "
        "unnest($2::VARCHAR[]) AS start_stop_text, unnest($3::VARCHAR[]) AS path, "
        "unnest($4::VARCHAR[]) AS phase_name",
        [
            [push_pop for push_pop, _ in pairs],
            [start_stop for _, start_stop in pairs],
            [path for path, _ in found],
            [phase for _, phase in found],
        ],
    )
