"""Makes the writer of pages importable, and reads pages for the tests."""

import dataclasses
import io
import sys
from pathlib import Path

import pytest

from mansard.engine import connect
from mansard.model.capture import Capture
from mansard.readers.ncu_csv import read_ncu_csv

DATA = Path(__file__).parents[3] / "data" / "ncu_csv"
if str(DATA) not in sys.path:
    sys.path.append(str(DATA))


@dataclasses.dataclass(frozen=True)
class Read:
    capture: Capture
    rows: list

    @property
    def codes(self):
        return [notice.code for notice in self.capture.provenance.notices]

    def values(self, counter):
        return [row[f"counter.{counter}"] for row in self.rows]

    def column(self, name):
        return [row[name] for row in self.rows]

    def notice(self, code):
        return next(n for n in self.capture.provenance.notices if n.code == code)


@pytest.fixture(scope="module")
def engine():
    with connect(threads=1) as connection:
        yield connection


@pytest.fixture
def read(engine):
    """Read text, bytes or a file as a page: the capture, and its rows as dicts."""

    def opened(source, name="sample.csv"):
        engine.execute("DROP TABLE IF EXISTS launches")
        if isinstance(source, str):
            source = source.encode()
        if isinstance(source, bytes):
            source = io.BytesIO(source)
        capture = read_ncu_csv(source, engine, "launches", name=name)
        found = engine.execute("SELECT * FROM launches ORDER BY row")
        names = [entry[0] for entry in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        left = engine.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert left == [("launches",)], "temporary tables stay behind"
        return Read(capture, rows)

    return opened


@pytest.fixture(scope="session")
def data_folder():
    return DATA
