"""Whatever the spelling and the noise: the same values; whatever the bytes: no traceback."""

import gzip
import io

import csv_writer as w
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mansard.errors import MansardError
from mansard.readers.ncu_csv import read_ncu_csv

QUIET = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
COUNTERS = {w.BYTES: "byte", w.TIME: "ns", w.INSTRUCTIONS: "inst"}
PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
# A name may hold anything but what no text file can: half a surrogate pair, and NUL.
NAMES = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=40
).filter(lambda name: name.strip() and "\r\n" not in name)
NOISE = st.sampled_from(
    [
        "",
        "step 1, loss 0.5\n",
        'He said "go", twice\n',
        '"open quote\n',
        '==PROF== Profiling "k" - 0: 0%....50%....100% - 9 passes\n',
        "1,2,3\n",
        "\n",
        "no newline ",
    ]
)


@st.composite
def profiles(draw):
    """Launches with whole-number values, and how to write them."""
    launches = draw(
        st.lists(
            st.tuples(
                NAMES,
                st.integers(0, 3),
                st.lists(st.integers(0, 10**15), min_size=3, max_size=3),
            ),
            min_size=1,
            max_size=5,
        )
    )
    return {
        "launches": launches,
        "page": draw(st.sampled_from(["long", "wide"])),
        "order": draw(st.permutations(range(11))),
        "signs": draw(st.sampled_from([",.", ".,", "\u202f.", " ,", ".", ","])),
        "prefix": draw(st.sampled_from(list(PREFIXES))),
        "noise": draw(st.lists(NOISE, min_size=12, max_size=12)),
        "ending": draw(st.sampled_from(["\n", "\r\n"])),
        "packed": draw(st.booleans()),
    }


def _number(value, signs, scale):
    """A value with six decimals at least, so that the decimal sign is never in doubt."""
    grouping, decimal = signs[:-1], signs[-1]
    digits = len(str(scale)) - 1
    whole, rest = divmod(value, scale)
    fraction = str(rest).rjust(digits, "0") if digits else ""
    return f"{whole:,}".replace(",", grouping) + decimal + fraction.ljust(6, "0")


def _text(profile):
    scale = PREFIXES[profile["prefix"]]
    units = {**COUNTERS, w.BYTES: f"{profile['prefix']}byte"}
    titles = [w.IDENTITY[place] for place in profile["order"]]
    launches, cells = [], []
    for number, (name, process, values) in enumerate(profile["launches"]):
        texts = {
            metric: _number(value, profile["signs"], scale if metric == w.BYTES else 1)
            for metric, value in zip(COUNTERS, values, strict=True)
        }
        fields = {"id": str(number), "name": name, "process": str(process)}
        launches.append(w.launch(**fields, **texts))
        cells += [w.cell(metric, text, units[metric], **fields) for metric, text in texts.items()]
    if profile["page"] == "long":
        return w.long_page(cells, [*titles, *w.CELL])
    return w.wide_page(launches, units, titles)


def _with_noise(text, profile):
    """Noise before the header and between rows; the row of units stays right below its header."""
    lines = text.split("\n")[:-1]
    head = 2 if profile["page"] == "wide" else 1
    noise = profile["noise"]
    mixed = [noise[0], *(line + "\n" for line in lines[:head])]
    for place, line in enumerate(lines[head:], start=1):
        mixed += [noise[place % len(noise)], line + "\n"]
    return "".join(mixed).replace("\n", profile["ending"])


@QUIET
@given(profile=profiles())
def test_rows_written_in_any_spelling_read_back_as_the_same_values(engine, profile):
    text = _text(profile)
    if not any("\n" in name or "\r" in name for name, _, _ in profile["launches"]):
        text = _with_noise(text, profile)
    data = text.encode()
    data = gzip.compress(data) if profile["packed"] else data
    engine.execute("DROP TABLE IF EXISTS launches")
    read_ncu_csv(io.BytesIO(data), engine, "launches", name="x")
    columns = ", ".join(f'"counter.{metric}"' for metric in COUNTERS)
    rows = engine.execute(f"SELECT name, process, {columns} FROM launches ORDER BY row").fetchall()
    expected = [
        (name, process, *(pytest.approx(value, rel=1e-14) for value in (size, time / 10**9, count)))
        for name, process, (size, time, count) in profile["launches"]
    ]
    assert rows == expected


IDENTITY = [w.DEFAULTS[title] for title in w.IDENTITY]
PIECES = st.sampled_from(
    [
        w.line([*w.IDENTITY, *w.CELL]).encode(),
        w.line([*w.IDENTITY, w.BYTES, w.TIME]).encode(),
        w.line([""] * 11 + ["Kbyte", "us"]).encode(),
        w.line([*IDENTITY, "1,234", "5.5"]).encode(),
        w.line([*IDENTITY, "s", w.BYTES, "byte", "1.234"]).encode(),
        w.line([*IDENTITY, "s", "", "", ""]).encode(),
        b'"', b'""', b"\n", b"\r\n", b",", b'","', b"==ERROR== ", b"ID", b"Kernel Name", b"\0", b"\xff",
        b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b\x08\0", b"(1, 2, 3)", b"1e999", b"-", b"0",
    ]
)  # fmt: skip


SHREDS = st.lists(PIECES, max_size=30).map(b"".join)


def _read_or_refuse(engine, data):
    """The capture, or None after an error of ours; anything else fails the test."""
    engine.execute("DROP TABLE IF EXISTS launches")
    try:
        return read_ncu_csv(io.BytesIO(data), engine, "launches", name="x")
    except MansardError as refusal:
        message = str(refusal)
    assert message
    assert "\n" not in message
    return None


@QUIET
@given(
    data=st.one_of(st.binary(max_size=300), SHREDS, SHREDS.map(gzip.compress)),
    cut=st.integers(0, 60),
)
def test_random_bytes_never_raise_anything_but_our_own_errors(engine, data, cut):
    capture = _read_or_refuse(engine, data[: max(len(data) - cut, 0)])
    if capture is not None:
        columns = {row[0] for row in engine.execute("DESCRIBE launches").fetchall()}
        assert {f"counter.{name}" for name in capture.counters} <= columns
        assert all(notice.message for notice in capture.provenance.notices)


@QUIET
@given(data=st.binary(max_size=2000), place=st.integers(0, 3000))
def test_a_damaged_recording_never_raises_anything_but_our_own_errors(
    engine, data_folder, data, place
):
    whole = (data_folder / "noisy.csv").read_bytes()
    _read_or_refuse(engine, whole[:place] + data + whole[place:])
