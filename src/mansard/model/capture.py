"""What a reader hands on: launches with raw counters, before any counter table is applied."""

import dataclasses

from mansard.model.provenance import Provenance

#: Columns of a capture table beside ``counter.*``; same names, types and units as in a run.
#: ``file`` tells several captures apart, ``row`` is the order within one.
CAPTURE_COLUMNS = (
    ("row", "BIGINT"),
    ("host", "VARCHAR"),
    ("rank", "INTEGER"),
    ("process", "BIGINT"),
    ("device", "INTEGER"),
    ("id", "VARCHAR"),
    ("stream", "BIGINT"),
    ("kind", "VARCHAR"),
    ("name", "VARCHAR"),
    ("grid_x", "BIGINT"),
    ("grid_y", "BIGINT"),
    ("grid_z", "BIGINT"),
    ("block_x", "BIGINT"),
    ("block_y", "BIGINT"),
    ("block_z", "BIGINT"),
    ("phase", "VARCHAR"),
    ("range", "VARCHAR"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Capture:
    """Launches that one reader found in one file, as a table of the engine.

    Attributes:
        table: name of the DuckDB table: CAPTURE_COLUMNS, then one DOUBLE column
            ``counter.<vendor name>`` per counter, in SI base units (s, Hz, byte, count;
            percent stays percent), ``null`` where the file has no value.
        counters: the vendor names of those columns, e.g. ``dram__bytes.sum``.
        provenance: what the file says of its origin; ``devices`` when it holds attributes.
    """

    table: str
    counters: tuple[str, ...]
    provenance: Provenance
