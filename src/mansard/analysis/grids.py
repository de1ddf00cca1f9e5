"""Grids smaller than the GPU: launches that leave SMs without any block."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mansard.analysis.launches import Launches
from mansard.analysis.sql_engine import Scan, embedded
from mansard.model.machine import Machine
from mansard.model.provenance import Provenance

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def sm_count(origins: Iterable[Provenance], machine: Machine | None) -> int | None:
    """Multiprocessors of the GPUs of a run, else of its machine; None where they differ."""
    counts = {device.sm_count for origin in origins for device in origin.devices}
    if not counts and machine is not None:
        counts = {machine.device.sm_count}
    return counts.pop() if len(counts) == 1 else None


def shapes(
    connection: "DuckDBPyConnection", launches: Launches, scan: Scan = embedded
) -> dict[str, int]:
    """Number of distinct (grid, block) pairs by kernel; leaves them in the table ``shape``.

    Args:
        connection: with the table ``names`` of the cube.
        launches: the query.
        scan: what runs it.
    """
    if not launches.has_shape:
        return {}
    scan(
        connection,
        "shape",
        "SELECT name, kind, shape, min(blocks) AS blocks, CAST(count(*) AS BIGINT) AS launches, "
        f"sum(duration_s) AS duration_s FROM ({launches.sql}) AS launched "
        "GROUP BY name, kind, shape",
    )
    return dict(
        connection.execute(
            "SELECT key, count(DISTINCT shape) FROM shape JOIN names USING (name, kind) "
            "GROUP BY key"
        ).fetchall()
    )


def idle_sms(
    connection: "DuckDBPyConnection", launches: Launches, sm_count: int | None
) -> dict[str | None, tuple[int, float]]:
    """How many launches of a kernel have fewer blocks than there are SMs, and what that costs.

    Args:
        connection: with the tables ``names`` of the cube and ``shape``.
        launches: the query.
        sm_count: multiprocessors of the GPU.

    Returns:
        By key of the kernel: number of such launches, and their time times the share of the SMs
        that got no block. Kernels whose grids are unknown are not in it.
    """
    if not launches.has_shape or not sm_count:
        return {}
    small = f"blocks < {int(sm_count)}"
    rows = connection.execute(
        f"SELECT key, coalesce(sum(launches) FILTER ({small}), 0)::BIGINT, "
        f"coalesce(sum(duration_s * (1 - blocks / {int(sm_count)})) FILTER ({small}), 0) "
        "FROM shape JOIN names USING (name, kind) WHERE blocks IS NOT NULL GROUP BY key"
    ).fetchall()
    return {key: (count, idle_s) for key, count, idle_s in rows}
