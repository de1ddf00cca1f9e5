"""The protobuf wire format."""

import struct
import tracemalloc

import pytest
import report_writer as w
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.errors import FormatError
from mansard.readers.ncu_rep.wire import Message, fields, varint


@pytest.mark.parametrize(
    ("data", "value", "after"),
    [
        (b"\x00", 0, 1),
        (b"\x7f", 127, 1),
        (b"\x80\x01", 128, 2),
        # 150 and 300 are the worked examples of the protobuf encoding guide.
        (b"\x96\x01", 150, 2),
        (b"\xac\x02", 300, 2),
        (b"\xff" * 9 + b"\x01", 2**64 - 1, 10),
    ],
)
def test_an_integer_has_the_value_of_the_encoding_guide(data, value, after):
    assert varint(data, 0) == (value, after)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 5])
def test_a_cut_integer_is_an_error(data):
    with pytest.raises(FormatError, match="cut off"):
        varint(data, 0)


def test_an_integer_without_end_is_an_error():
    with pytest.raises(FormatError, match="longer than 64 bits"):
        varint(b"\xff" * 1000, 0)


def test_fields_come_in_order_with_their_values():
    data = b"\x08\x96\x01" + b"\x12\x07testing" + b"\x1d\x00\x00\x80\x3f" + b"\x21" + b"\0" * 8
    assert list(fields(data)) == [
        (1, 150),
        (2, b"testing"),
        (3, struct.pack("<f", 1.0)),
        (4, b"\0" * 8),
    ]


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_a_kind_that_does_not_exist_is_an_error(kind):
    with pytest.raises(FormatError, match="unknown kind"):
        list(fields(bytes([1 << 3 | kind, 0])))


def test_the_field_number_0_is_an_error():
    with pytest.raises(FormatError, match="number 0"):
        list(fields(b"\x00\x01"))


@pytest.mark.parametrize("size", [3, 2**31, 2**63])
def test_a_field_longer_than_its_message_is_an_error_and_takes_no_memory(size):
    data = b"\x12" + w.varint(size) + b"ab"
    tracemalloc.start()
    with pytest.raises(FormatError, match="longer than its message"):
        Message(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("key", [b"\x11", b"\x15"])
def test_a_cut_number_is_an_error(key):
    with pytest.raises(FormatError, match="longer than its message"):
        list(fields(key + b"\0\0\0"))


def test_the_last_of_several_values_counts_and_all_can_be_had():
    message = Message(w.message((1, 5), (1, 6), (2, "a"), (2, "b")))
    assert message.integer(1) == 6
    assert message.text(2) == "b"
    assert message.chunks(2) == [b"a", b"b"]


def test_a_field_of_another_kind_counts_as_absent():
    message = Message(w.message((1, "text"), (2, 7), (3, 1.5)))
    assert message.integer(1) is None
    assert message.text(2) is None
    assert message.float64(2) is None
    assert message.float32(3) is None
    assert message.float64(3) == 1.5


def test_bytes_that_are_no_text_do_not_stop_the_reading():
    assert Message(w.message((1, b"a\xff\xfeb"))).text(1) == "a\ufffd\ufffdb"


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_random_bytes_give_fields_or_a_format_error(data):
    try:
        message = Message(data)
    except FormatError:
        return
    assert sum(len(values) for values in message.values.values()) <= len(data)


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**20),
            st.one_of(
                st.integers(0, 2**64 - 1), st.binary(max_size=300), st.floats(allow_nan=False)
            ),
        ),
        max_size=20,
    )
)
def test_what_was_written_is_read(entries):
    found = list(fields(w.message(*entries)))
    expected = [
        (number, struct.pack("<d", value) if isinstance(value, float) else value)
        for number, value in entries
    ]
    assert found == expected
