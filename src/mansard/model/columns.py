"""The columns of a run: name, SQL type, meaning. One row of a run is one launch.

``null`` means unknown (not collected, or not countable on this chip); ``0`` means zero.
"""

import dataclasses

from mansard.model.paths import LEVELS, PATHS


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a run file."""

    name: str
    sql_type: str
    meaning: str


IDENTITY_COLUMNS = (
    Column("host", "VARCHAR", "host name of the process, as the collector wrote it"),
    Column("rank", "INTEGER", "rank of the process in its job"),
    Column("process", "BIGINT", "process id"),
    Column("device", "INTEGER", "GPU index within the process"),
    Column("step", "INTEGER", "iteration of the program"),
    Column("launch", "BIGINT", "position in launch order within (host, rank, process), from 0"),
    Column("stream", "BIGINT", "CUDA stream"),
    Column("kind", "VARCHAR", "kernel, graph, range, memcpy or memset"),
    Column("name", "VARCHAR", "full (demangled) name"),
    Column("grid_x", "BIGINT", "blocks along x"),
    Column("grid_y", "BIGINT", "blocks along y"),
    Column("grid_z", "BIGINT", "blocks along z"),
    Column("block_x", "BIGINT", "threads along x"),
    Column("block_y", "BIGINT", "threads along y"),
    Column("block_z", "BIGINT", "threads along z"),
    Column("phase", "VARCHAR", "outermost named range around the launch"),
    Column("range", "VARCHAR", "all named ranges around the launch, outermost first, joined by /"),
    Column("op", "VARCHAR", "framework operator that launched it"),
    Column("module", "VARCHAR", "framework module that launched it"),
    Column("start_s", "DOUBLE", "start, in s since the first launch of the run"),
    Column("duration_s", "DOUBLE", "time on the GPU, in s"),
    Column("sm_clock_hz", "DOUBLE", "mean SM clock while it ran, in Hz"),
    Column(
        "counters_from",
        "VARCHAR",
        "measured: counted on this launch; inferred: on another with the same kernel and shape",
    ),
)

WORK_COLUMNS = tuple(
    Column(path.column, "DOUBLE", f"operations on the path '{path.name}'") for path in PATHS
)

_LEVEL_MEANING = {
    "shared": "bytes through shared memory",
    "l1": "bytes through the L1 level",
    "l2": "bytes through the L2 level",
    "dram": "bytes through device memory",
    "link": "bytes through NVLink, PCIe or C2C",
}
TRAFFIC_COLUMNS = tuple(
    Column(f"bytes_{level}{suffix}", "DOUBLE", _LEVEL_MEANING[level] + detail)
    for level in LEVELS
    for suffix, detail in (("", ""), ("_read", ", read part"), ("_write", ", write part"))
)

#: What a counter table may define (every other column comes from the reader).
QUANTITY_COLUMNS = (
    *(column for column in IDENTITY_COLUMNS if column.name in ("duration_s", "sm_clock_hz")),
    *WORK_COLUMNS,
    *TRAFFIC_COLUMNS,
)

RUN_COLUMNS = (*IDENTITY_COLUMNS, *WORK_COLUMNS, *TRAFFIC_COLUMNS)

#: Prefix of raw vendor counters that the user asked to keep, for example
#: ``counter.sm__inst_executed.sum``.
COUNTER_PREFIX = "counter."
