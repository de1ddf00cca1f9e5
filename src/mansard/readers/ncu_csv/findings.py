"""What is wrong with a file as a whole: errors where nothing can be read, notices otherwise."""

from collections.abc import Sequence

from mansard.errors import FormatError, InputError
from mansard.model.notice import Notice
from mansard.readers.ncu_csv.messages import notices_of
from mansard.readers.ncu_csv.numbers import Convention
from mansard.readers.ncu_csv.page import MAX_COLUMNS, Page
from mansard.readers.ncu_csv.records import Found
from mansard.readers.ncu_csv.vocabulary import vocabulary
from mansard.readers.wanted import MOST_COUNTERS


def check(found: Found, name: str, *, is_empty: bool) -> None:
    """Refuse a file in which no launch can be read.

    Args:
        found: what the file holds.
        name: what to call it.
        is_empty: whether it has no bytes at all.

    Raises:
        FormatError: it is not the output of ncu, or lacks what a reader needs.
        InputError: ncu said why it recorded nothing.
    """
    words = vocabulary().identity
    unit = vocabulary().cell["unit"]
    if is_empty:
        raise FormatError(f"{name} is empty: nothing was recorded, or the copy was cut short")
    if not found.headers:
        said = notices_of(found.messages)
        if said:
            raise InputError(f"{name} holds no launches. {said[0].message}", slug=said[0].code)
        if found.cut is not None:
            raise FormatError(f"{name} cannot be read: {found.cut}")
        raise FormatError(
            f"{name} is not the output of ncu --csv: no line has the columns "
            f'"{words["id"]}" and "{words["name"]}"'
        )
    if found.broken and not any(part.rows for part in found.parts):
        raise FormatError(
            f"{name} has a header but no usable row: all {found.broken} rows have a wrong number "
            "of fields"
        )
    for part in found.parts:
        header = part.header
        if header.role("name") is None:
            raise FormatError(
                f'{name} has no column "{words["name"]}": export it again with all columns'
            )
        if header.is_long and header.role("unit") is None:
            raise FormatError(
                f'{name} has no column "{unit}", so byte and Gbyte cannot be told apart: export it '
                "again with all columns"
            )
        if not header.is_long and part.units is None and part.rows:
            raise FormatError(
                f"{name} has no row of units under its header, so byte and Gbyte cannot be told "
                "apart: export the raw page again and keep its second row"
            )
        if len(header.titles) > MAX_COLUMNS:
            raise FormatError(f"{name} has {len(header.titles)} columns: no page of ncu has that")


def notices_on(found: Found, name: str, *, launches: int) -> tuple[Notice, ...]:
    """Say what was left out of a file, and what is odd about it."""
    notices = []
    if not launches:
        notices.append(Notice("no-launches", f"{name} has a header but no launches"))
    if found.cut is not None:
        notices.append(
            Notice(
                "file-cut-short",
                f"{name} could not be read to its end ({found.cut}): launches are missing",
                partial=True,
            )
        )
    if found.broken:
        notices.append(
            Notice(
                "rows-broken",
                f"{name}: {found.broken} lines are rows with a wrong number of fields and were "
                f"left out, the first near line {found.first_broken}. Program output in the middle "
                "of a row does that, or a copy cut short: let ncu write a report (-o) or a file of "
                "its own (--log-file)",
                partial=True,
            )
        )
    repeated = dict.fromkeys(title for part in found.parts for title in part.header.repeated())
    if repeated:
        notices.append(
            Notice(
                "columns-repeated",
                f"{name} has columns of the same title ({', '.join(list(repeated)[:3])}): "
                "the first of each counts",
            )
        )
    return tuple(notices)


def number_notices(pages: Sequence[Page], convention: Convention, name: str) -> tuple[Notice, ...]:
    """Say how many numbers are written in another way than the others."""
    counts = [page.unread(convention) for page in pages]
    total = sum(count for count, _ in counts)
    if not total:
        return ()
    sample = next(text for count, text in counts if count)
    return (
        Notice(
            "numbers-unread",
            f"{name}: {total} numbers such as {sample} do not fit the others, whose decimal sign "
            f"is '{convention.decimal}'; they are read as unknown",
            partial=True,
        ),
    )


def left_out_notices(pages: Sequence[Page], name: str) -> tuple[Notice, ...]:
    """Say so if there are more counters than are read."""
    left_out = sum(page.left_out for page in pages)
    if not left_out:
        return ()
    return (
        Notice(
            "counters-left-out",
            f"{name} has more counters than the {MOST_COUNTERS} that are read at most: the last "
            f"{left_out} are left out. Ask for fewer (--keep)",
            partial=True,
        ),
    )


def label_notices(counters: Sequence[str], name: str) -> tuple[Notice, ...]:
    """Say so if the metrics have display labels in place of names."""
    if not counters or any("__" in counter for counter in counters):
        return ()
    return (
        Notice(
            "metric-labels",
            f"{name} names its metrics by labels such as '{counters[0]}', which counter tables do "
            "not know: add --print-metric-name name, or use --page raw",
        ),
    )
