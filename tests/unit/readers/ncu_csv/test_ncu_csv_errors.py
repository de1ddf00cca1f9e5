"""Files that are not what they should be, and what Nsight Compute itself complained of."""

import gzip
import re
import tracemalloc

import csv_writer as w
import pytest

from mansard.errors import FormatError, InputError, MansardError

PAGE = w.long_page([w.cell(w.BYTES, "1", "byte")])
HEADER, ROW = PAGE.splitlines(keepends=True)
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0. For instructions on enabling permissions and to "
    "get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)
NO_KERNELS = "==WARNING== No kernels were profiled.\n"


@pytest.mark.parametrize(
    "empty",
    [b"", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf", b"\xff\xfe"],
    ids=["nothing", "packed nothing", "UTF-8 mark", "UTF-16 mark"],
)
def test_an_empty_file_is_refused_in_one_sentence(read, empty):
    with pytest.raises(FormatError, match=r"^empty.csv is (empty|not the output of ncu)") as caught:
        read(empty, name="empty.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        '"ID","Name"\n"1","x"\n',
        "Kernel Name,sm__cycles_elapsed.avg,Count\nk,1,2\n",
        "\0" * 5000,
        '{"ID": "Kernel Name"}',
        '"' * 1001,
    ],
)
def test_what_is_not_from_ncu_is_refused_with_the_columns_that_are_missing(read, text):
    with pytest.raises(
        FormatError, match=r'x.csv is not the output of ncu --csv: .*"ID".*"Kernel Name"'
    ):
        read(text, name="x.csv")


def test_damaged_compression_is_refused_with_the_reason(read):
    with pytest.raises(FormatError, match="cannot be read"):
        read(b"\x1f\x8b\x08" + b"\xff" * 50)


def test_a_header_without_launches_is_a_profile_of_zero_launches(read):
    for text in (HEADER, HEADER + NO_KERNELS, w.wide_page([], {w.BYTES: "byte"})):
        found = read(text)
        assert found.rows == []
        assert "no-launches" in found.codes
        assert found.capture.counters == ()
        assert list(found.rows) == []


def test_no_usable_row_is_an_error(read):
    with pytest.raises(FormatError, match="has a header but no usable row: all 2 rows"):
        read(HEADER + '"0","441"\n"1","441"\n')


def test_without_kernel_names_a_page_is_of_no_use(read):
    titles = tuple(title for title in (*w.IDENTITY, *w.CELL) if title != "Kernel Name")
    with pytest.raises(FormatError, match='no column "Kernel Name"'):
        read(w.long_page([w.cell(w.BYTES, "1")], titles))


def test_a_raw_page_without_its_row_of_units_is_refused_since_no_value_is_sure(read):
    header, _, row = w.wide_page([w.launch(**{w.TIME: "5"})], {w.TIME: "us"}).splitlines(True)
    with pytest.raises(FormatError, match="no row of units"):
        read(header + row)


def test_a_long_page_without_its_units_is_refused_since_no_value_is_sure(read):
    titles = tuple(title for title in (*w.IDENTITY, *w.CELL) if title != "Metric Unit")
    with pytest.raises(FormatError, match='no column "Metric Unit"'):
        read(w.long_page([w.cell(w.BYTES, "1")], titles))


def test_a_file_that_is_not_there_or_is_a_folder_is_an_input_error(read, tmp_path):
    with pytest.raises(InputError, match=r"gone.csv cannot be read: .*No such file"):
        read(tmp_path / "gone.csv", name="gone.csv")
    with pytest.raises(InputError, match=r"folder cannot be read: .*directory"):
        read(tmp_path, name="folder")


def test_quotes_that_never_close_do_not_fill_the_memory(read):
    tracemalloc.start()
    found = read(PAGE + '"0",' + ("x" * 1_000_000 + "\n") * 40 + ROW.replace('"0"', '"1"', 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.column("id") == ["0", "1"]
    # The text itself takes 80 MB here, as text and as bytes.
    assert peak < 180e6


def test_a_row_with_too_many_or_too_few_fields_is_left_out_and_said(read):
    long_row = w.line(["5", *(["x"] * 20)])
    found = read(PAGE + long_row + '"6","x"\n' + ROW.replace('"0"', '"7"', 1))
    assert found.column("id") == ["0", "7"]
    assert found.codes == ["rows-broken"]
    assert "2 lines" in found.notice("rows-broken").message


@pytest.mark.parametrize(
    ("message", "code", "advice"),
    [
        (PERMISSION, "ncu-no-permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        (NO_KERNELS, "ncu-no-kernels", "start/end ranges"),
        (
            "==ERROR== LibraryNotLoaded. Check that a compatible driver library is loaded.\n",
            "ncu-driver",
            "Update the driver",
        ),
        ("==ERROR== The CUDA driver is not compatible\n", "ncu-driver", "Update the driver"),
        ("==ERROR== Unknown Error on device 0.\n", "ncu-driver", "Update the driver"),
        (
            "==ERROR== Ensure that no other tool is concurrently collecting profiling data.\n",
            "ncu-counters-busy",
            "dcgmi profile --pause",
        ),
        (
            "==ERROR== The application returned an error code (9).\n",
            "ncu-program-failed",
            "missing",
        ),
        ("==ERROR== Something new\n", "ncu-error", "Something new"),
    ],
)
def test_what_ncu_complained_of_is_explained_b15_b25_b34(read, message, code, advice):
    with pytest.raises(InputError, match="log holds no launches") as caught:
        read("program output\n" + message, name="log")
    assert advice in str(caught.value)
    assert caught.value.slug == code
    # With launches in the same file it is a notice, and an error makes the result partial.
    found = read(PAGE + "some text " + message)
    assert found.column("id") == ["0"]
    notice = found.notice(code)
    assert advice in notice.message
    assert notice.partial == ("==ERROR==" in message)


def test_an_error_of_ncu_is_never_a_success_b34(read):
    found = read("==ERROR== The driver is not compatible\n" + PAGE)
    assert found.capture.provenance.lost_launches is None
    assert any(notice.partial for notice in found.capture.provenance.notices)


def test_messages_are_bounded_and_cannot_write_to_a_terminal(read):
    found = read(PAGE + "==ERROR== \x1b[31m" + "x" * 10_000 + "\n" + "".join(
        f"==ERROR== number {i}\n" for i in range(5000)
    ))  # fmt: skip
    message = found.notice("ncu-error").message
    assert len(message) < 1000
    assert not re.search(r"[\x00-\x1f]", message)
    assert "more" in message


def test_the_same_message_a_thousand_times_is_one_notice(read):
    found = read(PAGE + "==WARNING== Backing up device memory in system memory.\n" * 1000)
    assert found.codes == ["ncu-warning"]
    assert not found.notice("ncu-warning").partial


def test_more_headers_than_anybody_appends_are_refused(read):
    pages = (
        w.long_page([w.cell(w.BYTES, "1")], (*w.IDENTITY, f"x{i}", *w.CELL)) for i in range(100)
    )
    with pytest.raises(FormatError, match="different headers"):
        read("".join(pages))


def test_a_failure_names_the_file_and_leaves_no_table_behind(engine, read):
    engine.execute("DROP TABLE IF EXISTS launches")
    with pytest.raises(MansardError, match=r"^my-log.txt "):
        read("nothing\n", name="my-log.txt")
    assert engine.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []
