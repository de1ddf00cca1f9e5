"""A cheap look at a file: which counters it holds, without reading it whole."""

from collections.abc import Iterable
from pathlib import Path

from mansard.readers.ncu_csv.header import Header, find_header
from mansard.readers.ncu_csv.lines import LineReader
from mansard.readers.ncu_csv.vocabulary import vocabulary

#: Past the program output of any sane run, and some thousand rows.
_LOOK_BYTES = 4 << 20


def counters_asked_for(path: Path) -> frozenset[str]:
    """Names of the metrics that the user asked ncu for, as far as the start of the file shows.

    Empty for a file that is not the output of ncu.
    """
    header: Header | None = None
    found: set[str] = set()
    for lines in LineReader(path, limit=_LOOK_BYTES).chunks():
        for line in lines:
            if header is not None:
                _add_metric(found, header, line)
                continue
            start = find_header(line)
            if start is None:
                continue
            header = start[1]
            if not header.is_long:
                return _asked_for(header.metrics().values())
    return _asked_for(found)


def _add_metric(found: set[str], header: Header, line: bytes) -> None:
    place = header.role("metric")
    fields = header.fields(line)
    if place is not None and fields is not None and header.is_launch(fields) and fields[place]:
        found.add(fields[place])


def _asked_for(metrics: Iterable[str]) -> frozenset[str]:
    always_there = vocabulary().always_there
    return frozenset(metric for metric in metrics if not metric.startswith(always_there))
