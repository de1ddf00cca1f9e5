"""The rows under one header (or several equal ones), as a CSV file that the engine reads."""

import dataclasses
from pathlib import Path
from typing import IO

from mansard.engine import file_list, literal
from mansard.readers.ncu_csv.header import Header

#: The engine's own default for its longest line.
_LINE_BYTES = 2_000_000


@dataclasses.dataclass(slots=True)
class Part:
    """Rows of one shape.

    Attributes:
        header: their columns.
        units: unit per column (wide page); None when the page has no row of units.
        path: the file to read.
        skip: lines before the first row in that file.
        rows: number of rows.
        starts: pairs (first row, number of the profile) where appended profiles begin.
        longest: bytes of the longest row.
        multiline: whether a row spans lines.
        writer: open while rows are being added; None when ``path`` is the file of the user.
    """

    header: Header
    units: tuple[str, ...] | None
    path: Path
    skip: int = 0
    rows: int = 0
    starts: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    longest: int = 0
    multiline: bool = False
    writer: IO[bytes] | None = None

    def scan_sql(self) -> str:
        """A sub-select of the rows: ``seq`` from 0, ``profile``, and the columns ``c0``, ``c1``...

        All columns are text; empty is null.
        """
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(self.header.titles)))
        longest = max(_LINE_BYTES, 2 * self.longest)
        # A row that spans lines cannot be told from two by a worker that starts in its middle.
        parallel = "false" if self.multiline else "true"
        rows = (
            f"(SELECT row_number() OVER () - 1 AS seq, * FROM read_csv({file_list([self.path])}, "
            f"columns = {{{columns}}}, header = false, skip = {self.skip}, "
            f"delim = {literal(self.header.delimiter)}, quote = '\"', escape = '\"', "
            f"auto_detect = false, compression = 'none', nullstr = '', new_line = '\\n', "
            f"max_line_size = {longest}, parallel = {parallel}))"
        )
        if len(self.starts) < 2:
            number = self.starts[0][1] if self.starts else 0
            return f"(SELECT {number} AS profile, * FROM {rows})"
        firsts = ", ".join(str(first) for first, _ in self.starts)
        numbers = ", ".join(str(number) for _, number in self.starts)
        return (
            f"(SELECT * EXCLUDE (first_row) FROM {rows} ASOF JOIN (SELECT "
            f"unnest([{firsts}]) AS first_row, unnest([{numbers}]) AS profile) "
            "ON seq >= first_row)"
        )
