"""Tables as columns: the same values in a fraction of the room, so that 20,000 kernels fit.

A table is ``{"rows": n, "same": {...}, "words": {...}, "packed": {...}, "columns": {...}}``.
Columns of one value are written once; columns of text that repeats as numbers into a list of the
different words; nested values stand under ``outer.inner``. ``script/data.js`` is the other half.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Digits of a packed number.
PACKED_DIGITS = 5

#: Characters of JSON up to which the page holds it readable; more is compressed.
_READABLE = 400_000

#: Kinds of a packed number; other letters are its power of ten, from this letter on.
_UNKNOWN, _ZERO, _FOLLOWS, _LONG = "?", "0", "=", "*"
_POWER_ZERO = ord("m")
_POWERS = range(ord("A") - _POWER_ZERO, ord("~") - _POWER_ZERO)

Row = Mapping[str, Any]


def flat(row: Row) -> dict[str, Any]:
    """Return a row with nested values under ``outer.inner``."""
    found = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            for inner, item in value.items():
                found[f"{key}.{inner}"] = item
        else:
            found[key] = value
    return found


def table(rows: Sequence[Row], follows: Sequence[Row] | None = None) -> dict[str, Any]:
    """Turn rows into columns; a key that a row lacks is unknown there.

    Args:
        rows: the rows; values are plain.
        follows: per row, what the page would work out for some of its values. Given, columns
            of fractional numbers are packed, and values that follow are left out.
    """
    flats = [flat(row) for row in rows]
    made: dict[str, Any] = {"rows": len(rows), "same": {}, "words": {}, "packed": {}, "columns": {}}
    for name in dict.fromkeys(name for row in flats for name in row):
        values = [row.get(name) for row in flats]
        different = dict.fromkeys((type(value), value) for value in values)
        if len(different) == 1:
            made["same"][name] = values[0]
        elif any(isinstance(value, str) for value in values):
            if 2 * len(different) < len(values):
                known = {value: place for place, (_, value) in enumerate(different)}
                made["words"][name] = list(known)
                values = [known[value] for value in values]
            made["columns"][name] = values
        elif follows is not None and any(name in row for row in follows):
            made["packed"][name] = packed(values, [row.get(name) for row in follows])
        else:
            made["columns"][name] = values
    return made


def packed(values: Iterable[float | None], follows: Iterable[float | None]) -> dict[str, Any]:
    """Write numbers as a letter each, and PACKED_DIGITS digits where they have no more.

    The letter is ``?`` for unknown, ``0`` for zero, ``=`` for a value that follows from others,
    ``*`` for a number in full (in ``long``), else the power of ten of the digits: ``m`` is 0.
    """
    kinds, digits, long = [], [], []
    for value, following in zip(values, follows, strict=True):
        if value is None:
            kinds.append(_UNKNOWN)
        elif value == following:
            kinds.append(_FOLLOWS)
        elif value == 0:
            kinds.append(_ZERO)
        else:
            mantissa, power = f"{value:.{PACKED_DIGITS - 1}e}".replace(".", "").split("e")
            shift = int(power) - PACKED_DIGITS + 1
            if float(f"{mantissa}e{shift}") == value and value > 0 and shift in _POWERS:
                kinds.append(chr(_POWER_ZERO + shift))
                digits.append(mantissa)
            else:
                kinds.append(_LONG)
                long.append(value)
    return {"kinds": "".join(kinds), "digits": "".join(digits), "long": long}


def embedded(value: Any) -> tuple[str, str]:
    """Return JSON for a script element as (encoding, text); the text is ASCII without ``<``.

    ``json`` is readable; ``deflate`` is its zlib stream in base64.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    if len(text) > _READABLE:
        return "deflate", base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return "json", text
