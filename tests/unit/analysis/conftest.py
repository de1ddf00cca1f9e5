"""Runs and machines small enough to work out by hand."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mansard import engine
from mansard.model.columns import RUN_COLUMNS
from mansard.model.machine import Ceiling, Machine
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.store import write_run

#: Every path and level of a chip that tells all of them apart, counted and zero.
NOTHING = {
    column.name: 0.0
    for column in RUN_COLUMNS
    if column.name.startswith(("flop_", "op_", "bytes_"))
    and not column.name.endswith(("_read", "_write", "_fp4_fp6_fp8"))
}


@pytest.fixture(scope="session")
def write_rows() -> Iterator[Callable[..., None]]:
    """Write launches given as dictionaries to a run file; columns not given are null."""
    types = {column.name: column.sql_type for column in RUN_COLUMNS}
    with engine.connect(threads=1) as connection:

        def write(
            rows: Sequence[dict[str, Any]], path: Path, provenance: Provenance | None = None
        ) -> None:
            columns = list(dict.fromkeys(name for row in rows for name in row)) or ["name"]
            selected = ", ".join(
                f"unnest(${number}::{types[name]}[]) AS {name}"
                for number, name in enumerate(columns, start=1)
            )
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE rows AS SELECT {selected}",
                [[row.get(name) for row in rows] for name in columns],
            )
            write_run(connection, "SELECT * FROM rows", provenance or Provenance(), path)

        yield write


@pytest.fixture
def make_run(tmp_path: Path, write_rows: Callable[..., None]) -> Callable[..., Run]:
    """Make a run of one file out of launches."""

    def make(*rows: dict[str, Any], provenance: Provenance | None = None) -> Run:
        path = tmp_path / "run.parquet"
        write_rows(rows, path, provenance)
        return Run(files=(path,), provenance=(provenance or Provenance(),), label="run")

    return make


@pytest.fixture
def nothing() -> dict[str, float]:
    """A launch that did nothing at all, on a chip whose every path and level was counted."""
    return dict(NOTHING)


def _compute(path: str, flop_per_s: float) -> Ceiling:
    return Ceiling(kind="compute", value=flop_per_s, unit="flop/s", path=path)


def _bandwidth(level: str, byte_per_s: float) -> Ceiling:
    return Ceiling(kind="bandwidth", value=byte_per_s, unit="byte/s", level=level)


@pytest.fixture
def machine() -> Machine:
    """Round roofs: fp32 1 TFLOP/s, fp64 half of it, tensor fp16 10, int8 20; DRAM 10 GB/s, ..."""
    return Machine(
        name="round",
        basis="measured",
        ceilings=(
            _compute("vector fp32", 1e12),
            _compute("vector fp64", 0.5e12),
            _compute("tensor fp16", 10e12),
            _compute("tensor int8", 20e12),
            _bandwidth("l1", 100e9),
            _bandwidth("l2", 40e9),
            _bandwidth("dram", 10e9),
        ),
    )
