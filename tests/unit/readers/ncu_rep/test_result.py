"""One result: names, shape, metric values of every kind."""

import math
import struct

import pytest
import report_writer as w
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.errors import FormatError
from mansard.readers.ncu_rep.result import MetricValues, read_result


def _metrics(*entries: bytes) -> list[tuple[int, float]]:
    values = MetricValues()
    read_result(w.result(metrics=entries), values)
    assert list(values.counts) == [len(values.ids)]
    return list(zip(values.ids, values.values, strict=True))


@pytest.mark.parametrize(
    ("demangled", "function", "mangled", "name"),
    [
        ("void f<int>(int)", "f", "_Z1fIiEvT_", "void f<int>(int)"),
        # Kernels of C and OpenACC have no demangled name.
        ("", "main_42_gpu", "main_42_gpu", "main_42_gpu"),
        ("", "", "_Z1f", "_Z1f"),
        (None, None, "_Z1f", "_Z1f"),
        ("", "", "", None),
    ],
)
def test_the_name_is_the_demangled_one_or_the_best_there_is(demangled, function, mangled, name):
    data = w.result(name=demangled, function=function, mangled=mangled)
    assert read_result(data, MetricValues()).name == name


def test_shape_stream_thread_and_code_are_read():
    result = read_result(
        w.result(grid=(65536, 2, 3), threads=(384, 1, 1), stream=13, thread=5), MetricValues()
    )
    assert result.grid == (65536, 2, 3)
    assert result.block == (384, 1, 1)
    assert (result.stream, result.thread, result.context) == (13, 5, 1)
    assert result.has_code
    assert not read_result(w.result(code=None), MetricValues()).has_code


def test_the_driver_version_is_read_where_it_is():
    data = w.result(more=w.float32(35, 580.159))
    assert f"{read_result(data, MetricValues()).driver:.6g}" == "580.159"


def test_whole_numbers_and_doubles_are_read_whatever_their_size():
    numbers = [0, 1, 127, 128, 2**32, 2**53, 0.0, -1.5, 1e300]
    found = _metrics(*(w.metric(number, entry) for number, entry in enumerate(numbers)))
    assert found == list(enumerate(map(float, numbers)))


def test_counts_beyond_the_signed_range_survive():
    assert _metrics(w.metric(0, 2**64 - 1)) == [(0, float(2**64))]


def test_name_ids_of_one_two_and_three_bytes_are_told_apart():
    ids = [0, 127, 128, 16383, 16384, 2**21]
    assert _metrics(*(w.metric(number, 1) for number in ids)) == [(number, 1.0) for number in ids]


def test_values_in_single_precision_and_of_32_bits_are_read():
    single = w.field(1, 3) + w.field(2, w.float32(2, 0.5))
    narrow = w.field(1, 4) + w.field(2, w.field(4, 99))
    assert _metrics(single, narrow) == [(3, 0.5), (4, 99.0)]


def test_texts_and_missing_values_leave_nothing():
    empty = w.field(1, 2) + w.field(2, b"")
    assert _metrics(w.metric(0, "PolicySpread"), w.metric(1, None), empty, b"") == []


def test_nan_is_kept_for_the_table_to_make_null():
    ((number, value),) = _metrics(w.metric(7, math.nan))
    assert number == 7
    assert math.isnan(value)


def test_instances_are_skipped_and_never_taken_for_the_value():
    many = w.metric(0, 5, instances=3000)
    only_instances = w.metric(1, None, instances=3)
    assert _metrics(many, only_instances, w.metric(2, 6.0)) == [(0, 5.0), (2, 6.0)]


def test_the_order_of_the_parts_does_not_matter():
    turned = w.field(2, w.value(4.0)) + w.field(4, 0) + w.field(1, 9)
    assert _metrics(turned) == [(9, 4.0)]


def test_a_last_metric_without_value_does_not_read_past_the_end():
    bare = w.result(metrics=[w.metric(0, 1)], code=None)
    for tail in (b"", w.field(1, 5), w.field(1, 300), w.field(1, 5) + w.field(2, b"")):
        values = MetricValues()
        read_result(bare + w.field(13, tail), values)
        assert list(values.ids) == [0]


def test_unknown_fields_are_skipped():
    more = w.field(31, "later") + w.field(4000, 1) + w.field(77, 1.5) + w.float32(78, 1.0)
    values = MetricValues()
    result = read_result(w.result(more=more, metrics=[w.metric(0, 1)]), values)
    assert result.name is not None
    assert list(values.values) == [1.0]


def test_a_damaged_result_leaves_no_trace():
    values = MetricValues()
    read_result(w.result(metrics=[w.metric(0, 1)]), values)
    whole = w.result(metrics=[w.metric(0, 2), w.metric(1, 3)])
    with pytest.raises(FormatError):
        read_result(whole[:-1], values)
    assert list(values.values) == [1.0]
    assert list(values.counts) == [1]


def test_a_value_that_runs_over_its_metric_is_damage():
    entry = w.field(1, 0) + w.varint(2 << 3 | 2) + w.varint(9) + b"\x19" + b"\0" * 4
    with pytest.raises(FormatError):
        read_result(w.result(metrics=[entry]), MetricValues())


def test_a_number_that_runs_over_its_value_is_damage():
    entry = w.field(1, 0) + w.varint(2 << 3 | 2) + w.varint(2) + b"\x28\xff" + w.field(4, 0)
    with pytest.raises(FormatError):
        read_result(w.result(metrics=[entry]), MetricValues())


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"\x2a\x01a", struct.pack("<d", 1.0) * 9])
def test_what_is_no_result_is_damage(data):
    with pytest.raises(FormatError):
        read_result(data, MetricValues())


WHOLE = w.result(
    metrics=[w.metric(0, 1), w.metric(1, 2.5), w.metric(300, 2**40), w.metric(2, "text")],
    nvtx=w.nvtx_state(pushed=[(1234, 0, [("step", 1)])]),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4))
def test_changed_bytes_give_a_result_or_a_format_error(changes):
    data = bytearray(WHOLE)
    for at, byte in changes:
        data[at] = byte
    values = MetricValues()
    try:
        read_result(bytes(data), values)
    except FormatError:
        assert len(values.ids) == len(values.values) == len(values.counts) == 0
    else:
        assert list(values.counts) == [len(values.ids)]
        assert len(values.ids) == len(values.values)


def test_a_kernel_of_which_nothing_was_counted_keeps_its_name():
    """Though a part of it, of a version to come, has the form of a metric."""
    like_a_metric = w.field(44, w.message((1, 1), (2, w.value(5.0))))
    values = MetricValues()
    result = read_result(w.result(name="k", more=like_a_metric), values)
    assert (result.name, list(values.ids)) == ("k", [])
