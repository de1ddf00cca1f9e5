"""The example that redraws the paper's figures runs, and what it writes can be printed."""

import re
import runpy
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "paper_figures.py"
LAMB = ROOT / "tests" / "data" / "paper" / "pytorch-O1-fusedlamb-optimizer"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    (folder / "raw").mkdir()
    (folder / "raw" / LAMB.name).symlink_to(LAMB)
    output = folder / "figures"
    call = [sys.executable, str(EXAMPLE), str(folder / "raw"), "--output", str(output)]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, output


def test_the_census_is_the_row_of_the_papers_table(done):
    row = next(line for line in done[0].splitlines() if line.startswith(LAMB.name))
    cells = re.split(r"\s{2,}", row)
    assert cells[1:5] == ["35", "5 (14.3 %)", "0.4 %", "3.90 ms"]


def test_every_figure_is_a_vector_file_with_its_fonts_inside(done):
    files = sorted(done[1].glob("*.pdf"))
    assert [file.stem.rsplit("-", 1)[1] for file in files] == ["floors", "roofline", "time"]
    for file in files:
        content = file.read_bytes()
        assert content.startswith(b"%PDF")
        # One font program for each descriptor, and none of the drawn kind that printers refuse.
        descriptors = len(re.findall(rb"/Type /FontDescriptor", content))
        assert len(re.findall(rb"/FontFile2 \d+ \d+ R", content)) == descriptors > 0
        assert b"/Type3" not in content
        assert b"/Subtype /Image" not in content
        assert any(b" l\n" in page for page in _streams(content))


def test_without_a_folder_it_takes_the_run_that_comes_along():
    found = runpy.run_path(str(EXAMPLE))["runs"](None)
    (run,) = found.values()
    assert run.provenance[0].counter_table == "paper-volta"


def _streams(content):
    for found in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL):
        try:
            yield zlib.decompress(found[1])
        except zlib.error:
            yield found[1]
