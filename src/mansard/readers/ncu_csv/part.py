"""The rows under one header (or several equal ones), as a CSV file that the engine reads."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from mansard.engine import file_list, literal
from mansard.readers.ncu_csv.header import Header

#: The engine's own default for its longest line.
_LINE_BYTES = 2_000_000


@dataclasses.dataclass(slots=True)
class Part:
    """Rows of one shape, each with its number in the whole file and that of its profile.

    The numbers are written in front of the row: the engine may then read in parallel, in any
    order.

    Attributes:
        header: their columns.
        units: unit per column (wide page); None when the page has no row of units.
        path: the file to read.
        writer: the same file while rows are being added.
        rows: number of rows.
        longest: bytes of the longest row.
        multiline: whether a row spans lines.
    """

    header: Header
    units: tuple[str, ...] | None
    path: Path
    writer: IO[bytes]
    rows: int = 0
    longest: int = 0
    multiline: bool = False

    def add(self, records: list[bytes], *, first: int, profile: int) -> None:
        """Write records.

        Args:
            records: without line ends.
            first: number of the first of them in the whole file.
            profile: number of the profile that they belong to.
        """
        delimiter = self.header.delimiter.encode()
        head = delimiter + b"%d" % profile + delimiter
        self.writer.writelines(_numbered(records, head, first))
        self.rows += len(records)
        self.longest = max(self.longest, *map(len, records)) if records else self.longest

    def scan_sql(self) -> str:
        """A table function over the rows: ``seq``, ``profile``, then columns ``c0``, ``c1``...

        The columns are text; empty is null.
        """
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(self.header.titles)))
        longest = max(_LINE_BYTES, 2 * self.longest)
        # A row that spans lines cannot be told from two by a worker that starts in its middle.
        parallel = "false" if self.multiline else "true"
        return (
            f"read_csv({file_list([self.path])}, "
            f"columns = {{'seq': 'BIGINT', 'profile': 'INTEGER', {columns}}}, header = false, "
            f"delim = {literal(self.header.delimiter)}, quote = '\"', escape = '\"', "
            "auto_detect = false, compression = 'none', nullstr = '', new_line = '\\n', "
            f"max_line_size = {longest}, parallel = {parallel})"
        )


def _numbered(records: list[bytes], head: bytes, first: int) -> Iterable[bytes]:
    return (b"%d%b%b\n" % (number, head, record) for number, record in enumerate(records, first))
