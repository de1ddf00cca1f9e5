"""Rows are found by their shape, whatever else stands in the file."""

import gzip
import io

import csv_writer as w
import pytest

PAGE = w.long_page(
    [
        w.cell(w.BYTES, "1,024", "byte", id="0"),
        w.cell(w.BYTES, "2,048", "byte", id="1"),
        w.cell(w.BYTES, "4,096", "byte", id="2"),
    ]
)
HEADER, FIRST, SECOND, THIRD = PAGE.splitlines(keepends=True)


def _is_whole(found):
    assert found.column("id") == ["0", "1", "2"]
    assert found.values(w.BYTES) == [1024, 2048, 4096]
    assert not any(notice.partial for notice in found.capture.provenance.notices)
    assert found.capture.provenance.lost_launches == 0
    return True


@pytest.mark.parametrize(
    "noise",
    [
        ':::MLLOG {"key": "epoch", "value": 1, "metadata": {}}\n',
        "step,loss,accuracy\n1,0.5,0.25\n",
        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n",
        'He said "go", and "left"\n',
        '"a quote that is never closed\n',
        '"two","fields"\n',
        '"\n',
        "\n\n",
        '==PROF== Profiling "kernel" - 0: 0%....50%....100% - 9 passes\n',
        "caf\u00e9 \u2713 \U0001f600\n",
    ],
)
def test_application_output_before_between_and_after_rows_is_skipped_b09(read, noise):
    found = read(noise + HEADER + noise + FIRST + noise + SECOND + noise + THIRD + noise)
    assert _is_whole(found)


def test_skipped_lines_are_counted_b09(read):
    found = read(
        "one\n" + HEADER + "two\n" + FIRST + "==PROF== three\n\n" + SECOND + THIRD + "four"
    )
    assert _is_whole(found)
    assert found.capture.provenance.extra == {"skipped_lines": "3"}


def test_a_clean_file_says_nothing_of_skipped_lines(read):
    assert read(PAGE).capture.provenance.extra == {}


@pytest.mark.parametrize(
    "before",
    [
        "",
        "==PROF== Connected to process 1\n==PROF== Disconnected from process 1\n",
        "==PROF== Disconnected from process 1\nthe program goes on\n" * 200,
        "no newline at the end of the program",
        'a last "word',
        "100%|####| 3/3\r",
    ],
)
def test_the_header_is_the_row_with_an_id_column_wherever_it_stands_b11(read, before):
    assert _is_whole(read(before + PAGE))


def test_a_program_line_without_newline_before_a_row_loses_no_row_b11(read):
    found = read(
        HEADER + "loss 0.5, " + FIRST + 'the "best", so far' + SECOND + '"quoted" text' + THIRD
    )
    assert _is_whole(found)


def test_text_before_a_header_whose_first_column_is_not_the_id_is_not_part_of_it_b11(read):
    titles = ("Process ID", *(title for title in w.IDENTITY if title != "Process ID"), *w.CELL)
    found = read("no newline " + w.long_page([w.cell(w.BYTES, "7", "byte")], titles))
    assert found.column("process") == [441]


@pytest.mark.parametrize("end", ["\r", "\r\r", "\x85", "\u2028", "\x0c"])
def test_what_other_programs_take_for_a_line_end_is_part_of_a_name(read, end):
    name = f"a{end}b"
    found = read(w.long_page([w.cell(w.BYTES, "7", "byte", name=name)]))
    assert found.column("name") == [name]


def test_output_in_the_middle_of_a_row_costs_that_row_and_is_said_b15(read):
    cut = SECOND.index('"python')
    found = read(HEADER + FIRST + SECOND[:cut] + "loss 0.5\n" + SECOND[cut:] + THIRD)
    assert found.column("id") == ["0", "2"]
    notice = found.notice("rows-broken")
    assert notice.partial
    assert "2 lines" in notice.message
    assert "near line 3" in notice.message
    assert "--log-file" in notice.message
    assert found.capture.provenance.lost_launches is None


@pytest.mark.parametrize("missing", [1, 30, 80])
def test_a_copy_cut_short_keeps_the_rows_before_and_is_partial(read, missing):
    found = read(PAGE[: -missing - 1])
    assert found.column("id") == ["0", "1"]
    assert found.codes == ["rows-broken"]
    assert found.notice("rows-broken").partial


def test_a_last_row_without_newline_is_whole(read):
    assert _is_whole(read(PAGE.rstrip("\n")))


def test_a_gzip_file_cut_short_keeps_what_can_be_read(read):
    import random

    source = random.Random(1)
    cells = [w.cell(w.BYTES, str(source.getrandbits(60)), "byte", id=str(i)) for i in range(20_000)]
    packed = gzip.compress(w.long_page(cells).encode())
    found = read(packed[: len(packed) // 2])
    assert 5_000 < len(found.rows) < 15_000
    assert found.notice("file-cut-short").partial
    assert found.capture.provenance.lost_launches is None


def test_two_profiles_appended_are_two_times_the_launches(read):
    found = read(PAGE + "==PROF== Disconnected from process 441\n" + PAGE)
    assert found.column("id") == ["0", "1", "2"] * 2
    assert found.values(w.BYTES) == [1024, 2048, 4096] * 2
    assert found.column("row") == list(range(6))


def test_a_second_profile_with_other_metrics_has_null_where_it_lacks_one(read):
    other = w.long_page([w.cell(w.TIME, "2", "us", id="0")])
    found = read(PAGE + other)
    assert found.column("id") == ["0", "1", "2", "0"]
    assert found.values(w.BYTES) == [1024, 2048, 4096, None]
    assert found.values(w.TIME) == [None, None, None, 2e-6]


def test_a_long_and_two_wide_pages_in_one_file_keep_the_order_of_the_file(read):
    def wide(unit):
        return w.wide_page([w.launch(id="5", **{w.BYTES: "1.50"})], {w.BYTES: unit})

    found = read(wide("Kbyte") + PAGE + wide("Mbyte") + wide("Kbyte"))
    assert found.column("id") == ["5", "0", "1", "2", "5", "5"]
    assert found.values(w.BYTES) == [1500, 1024, 2048, 4096, 1.5e6, 1500]


def test_appended_profiles_without_a_second_header_are_launches_of_their_own(read):
    found = read(PAGE + FIRST + SECOND + THIRD)
    assert found.column("id") == ["0", "1", "2"] * 2
    assert found.values(w.BYTES) == [1024, 2048, 4096] * 2


def test_a_metric_shown_twice_in_one_launch_does_not_make_two_launches(read):
    cells = [w.cell(name, "5", id="0") for name in (w.BYTES, w.TIME, w.INSTRUCTIONS, w.BYTES)]
    assert len(read(w.long_page(cells)).rows) == 1


def test_a_name_with_newlines_and_hostile_text_survives_byte_for_byte(read):
    name = (
        'void f<a, "b", \'c\'>(int)\n\n"0","441"\r<script>alert(1)</script>\u00e9\u2713, \\N % _ '
        + "x, y" * 150
    )
    for page in (
        w.long_page(
            [w.cell(w.BYTES, "7", "byte", name=name), w.cell(w.BYTES, "8", "byte", id="1")]
        ),
        w.wide_page(
            [w.launch(name=name, **{w.BYTES: "7"}), w.launch(id="1", **{w.BYTES: "8"})],
            {w.BYTES: "byte"},
        ),
    ):
        for before in ("", "noise\n"):
            found = read(before + page)
            assert found.rows[0]["name"] == name
            assert found.values(w.BYTES) == [7, 8]


def test_a_name_that_holds_a_whole_row_is_still_a_name(read):
    name = "evil\n" + w.line(["9", "1", "p", "h", "k", "", "", "", "", "", "", "", "m", "", "1"])
    found = read(w.long_page([w.cell(w.BYTES, "7", "byte", name=name)]) + SECOND)
    assert found.column("name") == [name, w.DEFAULTS["Kernel Name"]]


def test_an_open_quote_does_not_swallow_the_file(read):
    found = read(HEADER + FIRST + '"0","cut\n' + "line\n" * 3000 + SECOND + THIRD)
    assert found.column("id") == ["0", "1", "2"]
    assert found.notice("rows-broken").partial


def test_open_quotes_one_after_another_do_not_change_the_order_of_the_rows(read):
    opened = '"one open\n"and "two" and" three\nfour\n"five\n'
    found = read(HEADER + opened + FIRST + opened + "\n" + opened + SECOND + opened * 3 + THIRD)
    assert found.column("id") == ["0", "1", "2"]
    # A row behind an open quote, glued to the text of a program, between two others.
    found = read(HEADER + '"open\n"open\ntext ' + FIRST + '"open\ntext ' + SECOND + THIRD)
    assert found.column("id") == ["0", "1", "2"]


def test_a_page_in_quotes_only_where_needed_is_read(read):
    text = PAGE.replace('"', "").replace("(128, 1, 1)", '"(128, 1, 1)"')
    text = text.replace("(16, 2, 1)", '"(16, 2, 1)"').replace("1,024", "1024")
    text = text.replace("2,048", "2048").replace("4,096", '"4,096"')
    assert _is_whole(read("some output, with commas\n" + text))


def test_bytes_that_are_no_text_are_replaced_and_nothing_else_is_lost(read):
    page = PAGE.encode().replace(b"void kernel", b"void k\xff\xfe\0ernel", 1)
    found = read(page)
    assert found.rows[0]["name"] == "void k\ufffd\ufffd\ufffdernel<float>(float *)"
    assert _is_whole(found)


def test_a_file_is_read_and_not_changed_whatever_its_name(read, tmp_path):
    path = tmp_path / "run[1]*?'.csv"
    path.write_text(PAGE)
    assert _is_whole(read(path))
    assert path.read_text() == PAGE
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_stream_that_cannot_seek_is_read(engine):
    from mansard.readers.ncu_csv import read_ncu_csv

    class Pipe(io.RawIOBase):
        def __init__(self, data):
            self._left = data

        def readable(self):
            return True

        def readinto(self, buffer):
            piece, self._left = self._left[:100], self._left[100:]
            buffer[: len(piece)] = piece
            return len(piece)

    engine.execute("DROP TABLE IF EXISTS launches")
    capture = read_ncu_csv(Pipe(PAGE.encode()), engine, "launches", name="standard input")
    assert capture.provenance.sources == ("standard input",)
    assert engine.execute("SELECT count(*) FROM launches").fetchone() == (3,)
