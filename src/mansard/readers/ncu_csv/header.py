"""The header row of an Nsight Compute CSV: found by its columns, wherever it stands in a line."""

import csv
import dataclasses
import re
from collections.abc import Callable

from mansard.readers.ncu_csv.vocabulary import vocabulary

#: Metrics of the wide page are plain words: dram__bytes.sum, breakdown:sm__throughput, ...
_METRIC = re.compile(r"[a-z][\w.:/+-]*")
#: Text that a program left before the header on the same line may hold this many quotes.
_MAX_STARTS = 32
#: A longer line is not searched for a header or record behind other text.
_MAX_LINE_BYTES = 1 << 20
_DELIMITERS = (",", ";", "\t")
_LAUNCH_ID = re.compile(r"\d[\d.,]*")
_QUOTED_ID = re.compile(rb'"\d+"')


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """The columns of a page.

    Attributes:
        titles: of all columns, in order.
        delimiter: between fields; ncu writes commas, a spreadsheet may not.
        quoted: whether titles stand in quotes; ncu quotes every field, a spreadsheet does not.
    """

    titles: tuple[str, ...]
    delimiter: str = ","
    quoted: bool = True

    @property
    def is_long(self) -> bool:
        """Whether each row is one metric of a launch (details page, live output)."""
        cell = vocabulary().cell
        return cell["metric"] in self.titles and cell["value"] in self.titles

    def index(self, title: str) -> int | None:
        """Place of the first column of that title."""
        return self.titles.index(title) if title in self.titles else None

    def role(self, role: str) -> int | None:
        """Place of a column by its role, e.g. ``process``."""
        words = vocabulary()
        return self.index(words.identity.get(role) or words.cell[role])

    def metrics(self) -> dict[int, str]:
        """Metric columns of a wide page by place; a repeated title counts once."""
        found: dict[str, int] = {}
        for place, title in enumerate(self.titles):
            if _METRIC.fullmatch(title):
                # The engine does not tell column names apart by case.
                found.setdefault(title.lower(), place)
        return {place: self.titles[place] for place in found.values()}

    def repeated(self) -> tuple[str, ...]:
        """Titles that stand over more than one column."""
        lower = [title.lower() for title in self.titles]
        return tuple(
            title for place, title in enumerate(self.titles) if title.lower() in lower[:place]
        )

    def fields(self, record: bytes) -> list[str] | None:
        """The fields of a record; None when it is not one record with a field per column."""
        if self.quoted and not record.startswith(b'"'):
            return None
        fields = _parse(record, self.delimiter)
        return fields if fields is not None and len(fields) == len(self.titles) else None

    def resembles_row(self, line: bytes) -> bool:
        """Whether a line that is no record looks like a part of one."""
        half = (len(self.titles) - 1) / 2
        delimiter = self.delimiter.encode()
        if not self.quoted:
            return line.count(delimiter) >= half
        return line.startswith(b'"') and (
            _QUOTED_ID.match(line) is not None or line.count(b'"' + delimiter + b'"') >= half
        )

    def is_launch(self, fields: list[str]) -> bool:
        """Whether the fields of a record name a launch."""
        place = self.role("id")
        return place is not None and _LAUNCH_ID.fullmatch(fields[place]) is not None


def plain_row_test(header: Header) -> Callable[[bytes], bool]:
    """Make the quick test of a line: surely one whole record as ncu writes it, fields quoted.

    It never says yes to a line that is not; it may say no to a record in other spelling.
    """
    separator = b'"' + header.delimiter.encode() + b'"'
    last = len(header.titles) - 1
    bare_quotes = 2 * last + 2
    id_is_first = header.role("id") == 0
    title = b'"' + vocabulary().identity["id"].encode() + b'"'

    def is_plain_row(line: bytes) -> bool:
        if line[:1] != b'"' or line[-1:] != b'"' or len(line) < 2:
            return False
        # It may be the header of the next profile.
        if not line[1:2].isdigit() if id_is_first else title in line:
            return False
        if line.count(b'"') == bare_quotes:
            return line.count(separator) == last
        # Quotes inside fields are doubled. Separators are taken out so that none pairs up.
        inner = line[1:-1].replace(separator, b"\n")
        return inner.count(b"\n") == last and b'"' not in inner.replace(b'""', b"")

    return is_plain_row


def find_header(line: bytes) -> tuple[int, Header] | None:
    """Find a header in a line: where it starts (a program may have printed before it), and it.

    Args:
        line: of the file, without its end.
    """
    words = vocabulary()
    if len(line) > _MAX_LINE_BYTES or words.identity["id"].encode() not in line:
        return None
    if not any(title.encode() in line for title in (words.identity["name"], words.cell["metric"])):
        return None
    for start in _starts(line):
        for delimiter in _DELIMITERS:
            titles = _parse(line[start:], delimiter)
            if titles is not None:
                quoted = line[start : start + 1] == b'"'
                header = Header(tuple(title.strip() for title in titles), delimiter, quoted)
                if _is_header(header):
                    return start, header
    return None


def find_record(line: bytes, header: Header) -> tuple[int, list[str]] | None:
    """Find a launch's record behind text that a program left on the same line.

    Returns:
        Where it starts, and its fields.
    """
    if len(line) > _MAX_LINE_BYTES:
        return None
    delimiter = header.delimiter.encode()
    for start in _starts(line)[1:]:
        # Behind a delimiter it would be the rest of a row with too many fields.
        if line[start - 1 : start] == delimiter:
            continue
        fields = header.fields(line[start:])
        if fields is not None and header.is_launch(fields):
            return start, fields
    return None


def _is_header(header: Header) -> bool:
    words = vocabulary()
    # A quote inside a title is the start of the true header behind other text.
    if words.identity["id"] not in header.titles or any('"' in title for title in header.titles):
        return False
    return header.is_long or (words.identity["name"] in header.titles and bool(header.metrics()))


def _starts(line: bytes) -> list[int]:
    starts = [0]
    at = line.find(b'"')
    while at >= 0 and len(starts) <= _MAX_STARTS:
        if at:
            starts.append(at)
        at = line.find(b'"', at + 1)
    return starts


def _parse(record: bytes, delimiter: str) -> list[str] | None:
    text = record.decode("utf-8", "replace")
    try:
        rows = list(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None
