"""Makes the writer of synthetic reports importable, and opens reports for the tests."""

import io
import sys
from pathlib import Path

import pytest

from mansard.engine import connect
from mansard.readers.ncu_rep import read_ncu_rep

DATA = Path(__file__).parents[3] / "data" / "ncu_rep"
if str(DATA) not in sys.path:
    sys.path.append(str(DATA))


@pytest.fixture(scope="module")
def engine():
    with connect(threads=1) as connection:
        yield connection


@pytest.fixture
def opened(engine):
    """Read bytes as a report: the capture, and its rows as dicts."""

    def read(data: bytes, name: str = "sample.ncu-rep"):
        engine.execute("DROP TABLE IF EXISTS launches")
        capture = read_ncu_rep(io.BytesIO(data), engine, "launches", name=name)
        found = engine.execute("SELECT * FROM launches ORDER BY row")
        names = [entry[0] for entry in found.description]
        return capture, [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    return read


@pytest.fixture(scope="session")
def data_folder():
    return DATA
