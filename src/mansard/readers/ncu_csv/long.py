"""The details page and the live output: one row per launch and metric, with its unit."""

import functools
from collections.abc import Sequence

from mansard.engine import identifier, literal
from mansard.errors import FormatError
from mansard.model.device import DeviceFacts
from mansard.readers.ncu_csv.device import attribute_names, devices_of
from mansard.readers.ncu_csv.launch import capture_select, launch_filter
from mansard.readers.ncu_csv.numbers import (
    Convention,
    Evidence,
    evidence_sql,
    number_sql,
    si_terms,
    unread_sql,
    unusual_sql,
)
from mansard.readers.ncu_csv.page import MAX_COLUMNS, Page, is_counter
from mansard.units import unit_factor


class LongPage(Page):
    """Rows of a details page.

    Rows with equal launch columns belong to one launch, wherever they stand. If nearly all
    metrics of a launch come twice, two profiles were appended without a header between them, and
    these are two launches.
    """

    def is_usual(self) -> bool:  # noqa: D102
        looks = unusual_sql("'|' || value || '|'")
        return self.connection.execute(f"SELECT {looks} FROM {self._cells}").fetchone() == (False,)

    def evidence(self) -> Evidence:  # noqa: D102
        looks = evidence_sql("'|' || value || '|'")
        row = self.connection.execute(f"SELECT {looks} FROM {self._cells}").fetchone()
        return Evidence(*(row or ()))

    def names(self) -> Sequence[str]:  # noqa: D102
        return [name for name, _, _ in self._meanings]

    def counters(self) -> dict[str, str | None]:  # noqa: D102
        return {name: sample for name, _, sample in self._read}

    def select(self, convention: Convention) -> str:  # noqa: D102
        launches = f"(SELECT launch AS seq, * EXCLUDE (launch) FROM {self._launches})"
        names = self.counters()
        if names:
            pivoted = self._pivot(convention, len(names))
            launches = f"(SELECT * FROM {launches} AS l LEFT JOIN {pivoted} AS p ON seq = p.launch)"
        return capture_select(
            self.connection,
            launches,
            roles={role: role for role in self.roles()},
            counters={name: identifier(f"m{place}") for place, name in enumerate(names)},
            ranges=f"{self.scratch} ranges",
        )

    def unread(self, convention: Convention) -> tuple[int, str | None]:  # noqa: D102
        if not convention.mixed:
            return 0, None
        row = self.connection.execute(
            f"SELECT count(*), any_value(value) FROM {self._cells} "
            f"WHERE {unread_sql('value', convention)}"
        ).fetchone()
        return (0, None) if row is None else (int(row[0]), row[1])

    def devices(self) -> tuple[DeviceFacts, ...]:  # noqa: D102
        roles = self.roles()
        known = ", ".join(
            f"{role if role in roles else 'NULL'} AS {role}"
            for role in ("host", "process", "device", "capability")
        )
        attributes = {
            name: f"CASE WHEN metric = {literal(name)} THEN value END"
            for name in attribute_names()
            if name in self._machine_metrics
        }
        cells = f"{self._cells} JOIN {self._launches} USING (launch)"
        return devices_of(
            self.connection, f"(SELECT {known}, metric, value FROM {cells})", attributes
        )

    @functools.cached_property
    def _tables(self) -> tuple[str, str]:
        """Two temporary tables: cells (launch, metric, unit, value), and launches."""
        sql = self.connection
        raw, cells, launches = (
            identifier(f"{self.scratch} {name}") for name in ("raw", "cells", "launches")
        )
        roles = self.roles()
        header = self.part.header
        keys = ", ".join(("profile", *roles))
        texts = {
            name: "''" if (place := header.role(name)) is None else f"coalesce(c{place}, '')"
            for name in ("section", "unit")
        }
        sql.execute(
            f"CREATE TEMP TABLE {raw} AS SELECT profile, seq, "
            + "".join(f"coalesce({column}, '') AS {role}, " for role, column in roles.items())
            + f"{texts['section']} AS section, {texts['unit']} AS unit, "
            f"c{header.role('metric')} AS metric, c{header.role('value')} AS value "
            f"FROM {self.part.scan_sql()} "
            f"WHERE metric IS NOT NULL AND {launch_filter(roles.get('id'))}"
        )
        sql.execute(
            f"CREATE TEMP TABLE {launches} AS "
            f"SELECT min(seq) AS launch, {keys} FROM {raw} GROUP BY {keys}"
        )
        sql.execute(
            f"CREATE TEMP TABLE {cells} AS SELECT launch, seq, section, metric, unit, value "
            f"FROM {raw} JOIN {launches} USING ({keys})"
        )
        sql.execute(f"DROP TABLE {raw}")
        repeated = sql.execute(
            f"SELECT 1 FROM {cells} GROUP BY launch, section, metric HAVING count(*) > 1 LIMIT 1"
        ).fetchone()
        if repeated is not None:
            self._split_appended(cells, launches)
        return cells, launches

    def _split_appended(self, cells: str, launches: str) -> None:
        """Tell launches of appended profiles apart: the n-th time of a metric is the n-th launch.

        A metric that a page shows twice in one launch does not make two of it: three quarters of
        the rows must come again.
        """
        split = identifier(f"{self.scratch} split")
        self.connection.execute(
            f"CREATE TEMP TABLE {split} AS SELECT * EXCLUDE (nth), "
            "min(seq) OVER (PARTITION BY whole, nth) AS launch FROM ("
            "SELECT whole, seq, section, metric, unit, value, "
            "if(quantile_disc(times, 0.25) OVER (PARTITION BY whole) > 1, turn, 1) AS nth FROM ("
            "SELECT launch AS whole, * EXCLUDE (launch), "
            "count(*) OVER same AS times, row_number() OVER (same ORDER BY seq) AS turn "
            f"FROM {cells} WINDOW same AS (PARTITION BY launch, section, metric)))"
        )
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {launches} AS SELECT s.launch, l.* EXCLUDE (launch) "
            f"FROM {launches} AS l JOIN (SELECT DISTINCT whole, launch FROM {split}) AS s "
            "ON l.launch = s.whole"
        )
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {cells} AS SELECT * EXCLUDE (whole) FROM {split}"
        )
        self.connection.execute(f"DROP TABLE {split}")

    @property
    def _cells(self) -> str:
        return self._tables[0]

    @property
    def _launches(self) -> str:
        return self._tables[1]

    @functools.cached_property
    def _metrics(self) -> list[tuple[str, str, str | None]]:
        """All (metric, unit) in order of appearance, with a sample of the text."""
        rows = self.connection.execute(
            f"SELECT metric, unit, any_value(value) FROM {self._cells} "
            f"GROUP BY metric, unit ORDER BY min(seq) LIMIT {4 * MAX_COLUMNS}"
        ).fetchall()
        return [(metric, unit, sample) for metric, unit, sample in rows]

    @property
    def _machine_metrics(self) -> set[str]:
        return {metric for metric, _, _ in self._metrics if not is_counter(metric)}

    @functools.cached_property
    def _meanings(self) -> list[tuple[str, list[tuple[str, str, float]], str | None]]:
        """Counters: name, the (metric, unit, factor) that make it, and a sample of the text.

        A display label may stand for two metrics ("Memory Throughput" in % and in byte/s): these
        are told apart by their base unit.
        """
        bases: dict[str, set[str]] = {}
        for metric, unit, _ in self._metrics:
            bases.setdefault(metric.lower(), set()).update({unit_factor(unit)[1]} - {""})
        found: dict[str, tuple[str, list[tuple[str, str, float]], str | None]] = {}
        for metric, unit, sample in self._metrics:
            if not is_counter(metric):
                continue
            factor, base = unit_factor(unit)
            name = f"{metric} ({base})" if len(bases[metric.lower()]) > 1 and base else metric
            # The engine does not tell column names apart by case.
            known = found.setdefault(name.lower(), (name, [], sample))
            known[1].append((metric, unit, factor))
            if known[2] is None:
                found[name.lower()] = (known[0], known[1], sample)
        if len(found) > MAX_COLUMNS:
            raise FormatError(f"more than {MAX_COLUMNS} different metrics: no page of ncu has that")
        return list(found.values())

    @property
    def _read(self) -> list[tuple[str, list[tuple[str, str, float]], str | None]]:
        return [meaning for meaning in self._meanings if meaning[0] in self.chosen]

    def _pivot(self, convention: Convention, count: int) -> str:
        entries = [
            (place, metric, unit, *si_terms(factor))
            for place, (_, made_of, _) in enumerate(self._read)
            for metric, unit, factor in made_of
        ]
        meaning, pivoted = (identifier(f"{self.scratch} {name}") for name in ("meaning", "pivoted"))
        self.connection.execute(
            f"CREATE TEMP TABLE {meaning} AS SELECT 'm' || unnest($1::INTEGER[]) AS counter, "
            "unnest($2::VARCHAR[]) AS metric, unnest($3::VARCHAR[]) AS unit, "
            "unnest($4::DOUBLE[]) AS factor, unnest($5::DOUBLE[]) AS divisor",
            [list(column) for column in zip(*entries, strict=True)],
        )
        names = ", ".join(f"'m{place}'" for place in range(count))
        self.connection.execute(
            f"CREATE TEMP TABLE {pivoted} AS PIVOT (SELECT launch, seq, counter, "
            f"{number_sql('value', convention)} * factor / divisor AS number "
            f"FROM {self._cells} JOIN {meaning} USING (metric, unit)) "
            f"ON counter IN ({names}) USING arg_min(number, seq) GROUP BY launch"
        )
        return pivoted
