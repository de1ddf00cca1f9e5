"""Compressed reports, streams, and what is not meant to be unpacked."""

import gzip
import io
import lzma
import os
import sys

import pytest

from mansard.errors import FormatError, InputError
from mansard.readers.ncu_rep import unpack
from mansard.readers.ncu_rep.unpack import open_plain

PLAIN = b"NVR\0" + os.urandom(300_000)


def _all(source) -> bytes:
    with open_plain(source, name="x.ncu-rep") as (file, size):
        data = file.read()
        assert len(data) == size
        return data


def _zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard", reason="the optional package zstandard")
    return zstandard.ZstdCompressor().compress(data)


class _Pipe(io.RawIOBase):
    """Standard input of a pipe: it cannot seek."""

    def __init__(self, data):
        self._inner = io.BytesIO(data)

    def readable(self):
        return True

    def seekable(self):
        return False

    def readinto(self, buffer):
        return self._inner.readinto(buffer)


@pytest.mark.parametrize(
    "pack",
    [
        lambda data: data,
        gzip.compress,
        lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
        lzma.compress,
        lambda data: lzma.compress(data[:1000]) + b"\0" * 8 + lzma.compress(data[1000:]),
        _zstd,
        lambda data: _zstd(data[:1000]) + _zstd(data[1000:]),
        lambda data: gzip.compress(_zstd(data)),
    ],
    ids=["plain", "gzip", "two gzip", "xz", "two xz", "zstd", "two zstd", "zstd in gzip"],
)
@pytest.mark.parametrize("wrap", [io.BytesIO, _Pipe], ids=["file", "pipe"])
def test_the_content_tells_how_it_is_packed(pack, wrap):
    assert _all(wrap(pack(PLAIN))) == PLAIN


def test_a_path_is_opened_whatever_its_name(tmp_path):
    path = tmp_path / "report.bin"
    path.write_bytes(gzip.compress(PLAIN))
    assert _all(path) == PLAIN
    assert _all(str(path)) == PLAIN


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_a_cut_stream_gives_its_beginning(pack):
    packed = pack(PLAIN)
    data = _all(io.BytesIO(packed[: len(packed) * 2 // 3]))
    assert 100_000 < len(data) < len(PLAIN)
    assert PLAIN.startswith(data)


@pytest.mark.parametrize("head", [b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"])
def test_a_stream_damaged_from_its_start_is_an_error(head):
    pytest.importorskip("zstandard", reason="the optional package zstandard")
    with pytest.raises(FormatError, match="damaged from its start"):
        _all(io.BytesIO(head + b"\xff" * 50))


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"x\.ncu-rep cannot be opened: No such file"):
        _all(tmp_path / "missing.ncu-rep")


def test_a_bomb_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(unpack, "UNPACKED_LIMIT", 5_000_000)
    for packed in (gzip.compress(bytes(9_000_000)), lzma.compress(bytes(9_000_000))):
        with pytest.raises(InputError, match="unpacks to more than 5000000 bytes"):
            _all(io.BytesIO(packed))


def test_an_xz_file_that_asks_for_much_memory_is_refused(monkeypatch):
    # The default preset asks for 9 MiB.
    monkeypatch.setattr(unpack, "_XZ_MEMORY", 1 << 20)
    with pytest.raises(FormatError, match="damaged from its start"):
        _all(io.BytesIO(lzma.compress(PLAIN)))


def test_zstd_without_a_decoder_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(FormatError, match=r"mansard\[zstd\].*ncu --import") as caught:
        _all(io.BytesIO(b"\x28\xb5\x2f\xfd" + bytes(20)))
    assert caught.value.slug == "zstd"


def test_a_read_error_on_the_way_is_told_as_such():
    with (
        pytest.raises(InputError, match=r"x\.ncu-rep cannot be read"),
        open_plain(io.BytesIO(PLAIN), name="x.ncu-rep"),
    ):
        raise OSError(5, "Input/output error")
