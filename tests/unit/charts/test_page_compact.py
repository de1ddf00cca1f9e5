"""The columns of the page, read back by a second hand-written reader of the format."""

import base64
import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.charts.page import compact
from mansard.charts.page.compact import embedded, packed, table


def read_packed(column):
    """Read packed numbers as docs/report-page.md describes them."""
    digits, long = column["digits"], list(column["long"])
    found = []
    for kind in column["kinds"]:
        if kind in "?0=":
            found.append({"?": None, "0": 0, "=": "="}[kind])
        elif kind == "*":
            found.append(long.pop(0))
        else:
            found.append(float(f"{digits[:5]}e{ord(kind) - ord('m')}"))
            digits = digits[5:]
    assert digits == ""
    assert long == []
    return found


def read_table(made):
    columns = dict(made["columns"])
    for name, words in made["words"].items():
        columns[name] = [words[code] for code in columns[name]]
    for name, column in made["packed"].items():
        columns[name] = read_packed(column)
    return [
        {**made["same"], **{name: column[place] for name, column in columns.items()}}
        for place in range(made["rows"])
    ]


def test_rows_come_back_as_they_went_in():
    rows = [
        {"name": "a", "tiny": False, "bytes": {"l1": 1, "dram": None}, "time": 0.25},
        {"name": "b", "tiny": False, "bytes": {"l1": 2, "dram": None}, "time": 0},
        {"name": "a", "tiny": True, "bytes": {"l1": 2, "dram": None}, "time": None},
    ]
    made = table(rows)
    assert made["same"] == {"bytes.dram": None}
    assert read_table(made) == [
        {"name": "a", "tiny": False, "bytes.l1": 1, "bytes.dram": None, "time": 0.25},
        {"name": "b", "tiny": False, "bytes.l1": 2, "bytes.dram": None, "time": 0},
        {"name": "a", "tiny": True, "bytes.l1": 2, "bytes.dram": None, "time": None},
    ]


def test_words_that_repeat_are_written_once():
    made = table([{"family": word} for word in ("gemm", "copy", "gemm", "gemm", "copy")])
    assert made["words"] == {"family": ["gemm", "copy"]}
    assert made["columns"] == {"family": [0, 1, 0, 0, 1]}


def test_true_and_one_are_not_the_same():
    assert read_table(table([{"x": True}, {"x": 1}])) == [{"x": True}, {"x": 1}]


def test_a_table_without_rows_is_empty():
    assert table([]) == {"rows": 0, "same": {}, "words": {}, "packed": {}, "columns": {}}


def test_numbers_of_five_digits_take_a_letter_and_five_digits():
    column = packed([12345.0, 1.2e-7, 0, None, 123456.0, 5e20], [None] * 6)
    assert column == {"kinds": "mb0?*" + chr(ord("m") + 16), "digits": "123451200050000",
                      "long": [123456.0]}  # fmt: skip


def test_values_that_follow_are_left_out():
    assert packed([1.5, 2.5], [1.5, 3.5]) == {"kinds": "=i", "digits": "25000", "long": []}


@settings(max_examples=200)
@given(st.lists(st.none() | st.floats(min_value=0, allow_infinity=False) | st.integers(0, 2**64)))
def test_any_number_survives_packing(values):
    column = json.loads(json.dumps(packed(values, [None] * len(values))))
    assert read_packed(column) == values


def test_text_in_a_script_element_cannot_end_it():
    encoding, text = embedded({"name": "</script><!--<script>&\u2028\u2029'\"\n\0é"})
    assert encoding == "json"
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text)["name"] == "</script><!--<script>&\u2028\u2029'\"\n\0é"


def test_large_data_are_compressed():
    value = {"names": [f"kernel {number}" for number in range(40_000)]}
    encoding, text = embedded(value)
    assert encoding == "deflate"
    assert json.loads(zlib.decompress(base64.b64decode(text))) == value
    assert len(text) < compact._READABLE / 2
