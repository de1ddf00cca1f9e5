"""The raw page: one row per launch, one column per metric, units in a row of their own."""

import functools
from collections.abc import Sequence
from typing import Any

from mansard.model.device import DeviceFacts
from mansard.readers.ncu_csv.device import attribute_names, device_facts
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
from mansard.readers.ncu_csv.page import Page, is_counter
from mansard.readers.wanted import MOST_COUNTERS
from mansard.units import unit_factor

#: Columns that are looked at together: what the engine holds grows with them.
SLICE = 1_000
_GPU = ("host", "process", "device")


class WidePage(Page):
    """Rows of a raw page."""

    def is_usual(self) -> bool:  # noqa: D102
        if any(unusual for *_, unusual in self._looked):
            return False
        return not any(self._look(unusual_sql(cells))[0] for cells in self._cells[1:])

    def evidence(self) -> Evidence:  # noqa: D102
        found = (Evidence(*self._look(evidence_sql(cells))) for cells in self._cells)
        return sum(found, Evidence())

    def names(self) -> Sequence[str]:  # noqa: D102
        return [metric for metric in self.part.header.metrics().values() if is_counter(metric)]

    def counters(self) -> dict[str, str | None]:  # noqa: D102
        return {
            metric: next((texts[metric] for texts, _, _ in self._looked if texts[metric]), None)
            for metric in self._places.values()
        }

    def devices(self) -> tuple[DeviceFacts, ...]:  # noqa: D102
        facts = (device_facts(texts, capability) for texts, capability, _ in self._looked)
        return tuple(dict.fromkeys(found for found in facts if found != DeviceFacts()))

    def select(self, convention: Convention) -> str:  # noqa: D102
        units = self.part.units or ()
        values = {}
        for place, metric in self._places.items():
            number = number_sql(f"c{place}", convention)
            factor, divisor = si_terms(unit_factor(units[place])[0]) if units else (1.0, 1.0)
            scale = f" * {factor!r}::DOUBLE" if factor != 1.0 else ""
            values[metric] = number + scale + (f" / {divisor!r}::DOUBLE" if divisor != 1.0 else "")
        return capture_select(
            self.connection,
            self._source,
            roles=self.roles(),
            counters=values,
            ranges=f"{self.scratch} ranges",
        )

    def unread(self, convention: Convention) -> tuple[int, str | None]:  # noqa: D102
        if not convention.mixed or not self._places:
            return 0, None
        bad = [(unread_sql(f"c{place}", convention), f"c{place}") for place in self._places]
        count = " + ".join(f"count(*) FILTER ({condition})" for condition, _ in bad)
        sample = ", ".join(f"any_value({text}) FILTER ({condition})" for condition, text in bad)
        row = self.connection.execute(
            f"SELECT {count}, coalesce({sample}) FROM {self._source}"
        ).fetchone()
        return (0, None) if row is None else (int(row[0]), row[1])

    @property
    def _source(self) -> str:
        rows = self.part.scan_sql()
        return f"(SELECT * FROM {rows} WHERE {launch_filter(self.roles().get('id'))})"

    def _look(self, aggregates: str) -> tuple[Any, ...]:
        row = self.connection.execute(f"SELECT {aggregates} FROM {self._source}").fetchone()
        return row or ()

    @functools.cached_property
    def _cells(self) -> list[str]:
        """SQL of the values of a row, some columns at a time.

        Also those are looked at that are not read: one of them may be the only one to tell how
        the file writes numbers.
        """
        metrics = self.part.header.metrics()
        columns = [f", c{place}" for place, metric in metrics.items() if is_counter(metric)]
        most = min(max(1, len(columns)), MOST_COUNTERS)
        slices = (columns[at : at + SLICE] for at in range(0, most, SLICE))
        return [f"'|' || concat_ws('|', ''{''.join(names)}) || '|'" for names in slices]

    @functools.cached_property
    def _places(self) -> dict[int, str]:
        metrics = self.part.header.metrics()
        return {place: metric for place, metric in metrics.items() if metric in self.chosen}

    @functools.cached_property
    def _looked(self) -> list[tuple[dict[str, str | None], str | None, bool]]:
        """One look at all values.

        Per GPU: a text of each metric, the capability, whether numbers are written unusually.
        """
        roles = self.roles()
        metrics = {metric: place for place, metric in self.part.header.metrics().items()}
        sampled = [*self._places.values(), *(name for name in attribute_names() if name in metrics)]
        texts = "".join(f", any_value(c{metrics[name]})" for name in sampled)
        keys = ", ".join(roles[role] for role in _GPU if role in roles)
        device = roles.get("device", "NULL")
        rows = self.connection.execute(
            f"SELECT {unusual_sql('cells')}, any_value({roles.get('capability', 'NULL')}){texts} "
            f"FROM (SELECT *, {self._cells[0]} AS cells FROM {self._source}) "
            + (f"GROUP BY {keys} ORDER BY try_cast(any_value({device}) AS BIGINT)" if keys else "")
        ).fetchall()
        return [
            (dict(zip(sampled, found, strict=True)), capability, unusual)
            for unusual, capability, *found in rows
        ]
