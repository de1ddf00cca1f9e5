"""What a file is, told by its first bytes."""

import gzip
import lzma
from pathlib import Path

import pytest

from mansard.errors import InputError
from mansard.readers import open as open_source
from mansard.readers.sniff import FileKind, sniff

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("ncu_rep/zoo.ncu-rep.gz", FileKind.NCU_REPORT),
        ("ncu_csv/zoo.raw-base-units.csv.gz", FileKind.NCU_CSV),
    ],
)
def test_a_compressed_file_that_is_cut_is_still_what_it_was(tmp_path, pack, file, kind):
    packed = pack(gzip.decompress((DATA / file).read_bytes()))
    cut = tmp_path / "cut"
    cut.write_bytes(packed[: len(packed) * 3 // 4])
    assert sniff(cut) is kind


def test_the_launches_before_the_cut_are_kept_and_it_is_said(tmp_path):
    packed = (DATA / "ncu_rep" / "zoo.ncu-rep.gz").read_bytes()
    cut = tmp_path / "cut.ncu-rep.gz"
    cut.write_bytes(packed[:60_000])
    run = open_source(cut)
    assert run.partial
    (origin,) = run.provenance
    assert "report-cut" in {notice.code for notice in origin.notices}


def test_a_compressed_file_of_which_nothing_is_left_is_told(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"NVR\0" * 9)[:10])
    with pytest.raises(InputError, match=r"cut\.gz cannot be read"):
        sniff(tmp_path / "cut.gz")
