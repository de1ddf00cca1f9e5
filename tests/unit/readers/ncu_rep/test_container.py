"""Header, blocks and entries of the container."""

import io
import struct
import tracemalloc

import pytest
import report_writer as w

from mansard.errors import FormatError
from mansard.readers.ncu_rep.container import Container


def _open(data: bytes) -> Container:
    return Container(io.BytesIO(data), len(data), name="x.ncu-rep")


def _results(container: Container) -> list[bytes]:
    return [data for block in container.blocks() for data, _ in container.results(block)]


class _CountingFile(io.BytesIO):
    taken = 0

    def read(self, size=-1):
        data = super().read(size)
        self.taken += len(data)
        return data


def test_sources_come_first_then_results_then_ranges_then_graphs():
    block = w.block(
        sources=[b"code"], results=[b"one", b"two"], ranges=[b"range"], graphs=[b"graph"]
    )
    data = w.header() + block
    container = _open(data)
    (block,) = container.blocks()
    assert list(container.results(block)) == [
        (b"one", None),
        (b"two", None),
        (b"range", "range"),
        (b"graph", "graph"),
    ]
    assert container.version == 7
    assert container.cut_at is None
    assert container.lost_results == 0


def test_a_block_has_its_process_host_and_names():
    data = w.header() + w.block(names=["a", "b"], process=(77, "node3"))
    (block,) = _open(data).blocks()
    assert (block.process, block.host, block.strings) == (77, "node3", ["a", "b"])


def test_machine_code_is_passed_over_unread():
    data = w.header() + w.block(sources=[bytes(5_000_000)], results=[b"result"])
    file = _CountingFile(data)
    assert _results(Container(file, len(data), name="x")) == [b"result"]
    assert file.taken < 1000


def test_a_cut_inside_the_results_says_how_many_of_the_block_are_lost():
    whole = w.header() + w.block(results=[b"first", b"second", b"third"])
    container = _open(whole[:-3])
    assert _results(container) == [b"first", b"second"]
    assert container.cut_at == len(whole) - 3
    assert container.lost_results == 1
    assert not container.lost_unknown


def test_a_cut_inside_the_machine_code_loses_the_results_of_its_block():
    whole = w.header() + w.block(sources=[bytes(100)], results=[b"first", b"second"])
    container = _open(whole[:-60])
    assert _results(container) == []
    assert container.lost_results == 2


def test_a_cut_inside_a_block_without_results_leaves_the_number_unknown():
    whole = w.header() + w.block(results=[b"first"]) + w.block(sources=[bytes(100)])
    container = _open(whole[:-60])
    assert _results(container) == [b"first"]
    assert container.lost_unknown


def test_a_cut_inside_a_block_header_leaves_the_number_unknown():
    first = w.header() + w.block(results=[b"first"])
    container = _open(first + w.block(results=[b"second"])[:9])
    assert _results(container) == [b"first"]
    assert container.cut_at == len(first)
    assert container.lost_unknown


def test_a_wrong_size_inside_a_block_loses_its_rest_and_not_the_next_block():
    bad = w.block(results=[b"first", b"second"]).replace(
        struct.pack("<I", 6) + b"second", struct.pack("<I", 2**31) + b"second"
    )
    container = _open(w.header() + bad + w.block(results=[b"third"]))
    assert _results(container) == [b"first", b"third"]
    assert container.lost_results == 1
    assert container.cut_at is None


def test_more_results_announced_than_there_are_count_as_lost():
    container = _open(w.header() + w.block(results=[b"first"], announced_results=4))
    assert _results(container) == [b"first"]
    assert container.lost_results == 3


def test_a_damaged_session_part_costs_only_itself():
    head = w.message((1, 0), (2, 1), (3, b"\xff\xff"), (5, 9))
    container = _open(w.header() + w.sized(head) + w.sized(b"first"))
    assert _results(container) == [b"first"]


def test_a_damaged_table_of_names_ends_the_reading_since_later_names_would_shift():
    head = w.message((1, 0), (2, 1), (4, b"\x0a\xff"), (5, 9))
    container = _open(w.header() + w.sized(head) + w.sized(b"first"))
    assert _results(container) == []
    assert container.lost_unknown


def test_a_file_that_starts_at_a_block_is_read_all_the_same():
    container = _open(w.block(results=[b"first"]))
    assert container.version is None
    assert _results(container) == [b"first"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty"),
        (b"SQLite format 3\0" + bytes(100), "SQLite"),
        (b"PK\x03\x04" + bytes(100), "ZIP"),
        (b"\x7fELF" + bytes(100), "cubin"),
        (b"PAR1" + bytes(100), "Parquet"),
        (b'"ID","Process ID","Kernel Name"\n', "text"),
        (bytes(range(128, 228)), "not known"),
        (bytes(100), "not known"),
    ],
)
def test_what_is_no_report_is_named(data, what):
    with pytest.raises(FormatError, match=rf"x\.ncu-rep is no report.*{what}"):
        _open(data)


@pytest.mark.parametrize("size", range(4, 10))
def test_a_file_cut_inside_its_header_is_named_as_such(size):
    with pytest.raises(FormatError, match="cut off after"):
        _open(w.header()[:size])


def test_huge_sizes_take_no_memory():
    huge = struct.pack("<I", 2**32 - 1)
    head = w.message((1, 0), (2, 2**32 - 1), (5, 2**32 - 1))
    tracemalloc.start()
    for data in (
        w.header() + huge + b"x",
        w.header() + w.sized(head) + huge + b"x",
        w.header() + w.sized(w.message((2, 2**60), (5, 2**60))),
        b"NVR\0" + huge + b"x" * 10,
    ):
        try:
            assert _results(_open(data)) == []
        except FormatError:
            continue
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_zeros_after_the_header_end_the_reading_at_once():
    container = _open(w.header() + bytes(1_000_000))
    assert _results(container) == []
    assert container.cut_at == len(w.header())
