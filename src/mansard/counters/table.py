"""Counter tables: which counters make which column of a run, per chip.

The tables are TOML files in ``tables/``. A table extends others: a column that it defines
replaces theirs (``quantity``), or is added to as a later choice (``further``).
"""

import dataclasses
import functools
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

from mansard.counters.formula import Formula
from mansard.errors import CounterError
from mansard.model.columns import QUANTITY_COLUMNS
from mansard.model.notice import Notice

#: What a half-precision instruction of the CUDA cores counts: packed pairs as Nsight Compute
#: does (add 2, mul 2, fma 4), or single values as the paper does (1, 1, 2).
HalfWeights = Literal["vendor", "unpacked"]

#: Narrow integers: up to three passes to count, and no network of today uses them.
RARE_COLUMNS = ("op_tensor_int4", "op_tensor_int1")

_COLUMN_NAMES = tuple(column.name for column in QUANTITY_COLUMNS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way to make a column.

    Attributes:
        formula: expression over counters.
        meaning: what it counts, one sentence.
        source: document or measurement that it comes from.
        verified_on: where it was compared with known work; empty when it was not.
        notice: what is wrong with it, if anything is.
        label: name within the column, e.g. ``total`` or ``dense``.
        half_weights: the convention that it belongs to; None for both.
    """

    formula: Formula
    meaning: str
    source: str
    verified_on: tuple[str, ...] = ()
    notice: Notice | None = None
    label: str = ""
    half_weights: HalfWeights | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CounterTable:
    """The definitions for one family of chips.

    Attributes:
        name: stem of its file, e.g. ``gh100``.
        title: what people call these chips.
        chips: names in NVIDIA's counter library, e.g. ``GH100``.
        compute_capabilities: e.g. ``9.0``.
        half_weights: convention for half precision when none is asked for.
        quantities: by column of a run, the ways to make it, best first.
        unavailable: by column, why this chip cannot give it.
        evidence: by counter, the columns that are 0 where that counter is 0.
    """

    name: str
    title: str
    chips: tuple[str, ...]
    compute_capabilities: tuple[str, ...]
    half_weights: HalfWeights
    quantities: Mapping[str, tuple[Alternative, ...]]
    unavailable: Mapping[str, Notice]
    evidence: Mapping[str, tuple[str, ...]]

    def alternatives(self, column: str, half_weights: HalfWeights) -> tuple[Alternative, ...]:
        """The ways to make a column under a convention for half precision, best first."""
        return tuple(
            each
            for each in self.quantities.get(column, ())
            if each.half_weights in (None, half_weights)
        )


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    formula: str
    meaning: str
    source: str
    notice: str = ""
    label: str = ""
    half_weights: HalfWeights | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A file of ``tables/`` as it stands there, or several merged."""

    title: str = ""
    extends: list[str] = []
    chips: list[str] = []
    compute_capabilities: list[str] = []
    half_weights: HalfWeights | None = None
    sources: dict[str, str] = {}
    notices: dict[str, str] = {}
    quantity: dict[str, list[_Entry]] = {}
    further: dict[str, list[_Entry]] = {}
    absent: dict[str, str] = {}
    unavailable: dict[str, list[str]] = {}
    evidence: dict[str, list[str]] = {}
    verified: dict[str, dict[str, list[str]]] = {}


def table_names() -> tuple[str, ...]:
    """Names of all tables, in order."""
    return tuple(sorted(stem for stem in _stems() if not stem.startswith("_")))


def tables() -> tuple[CounterTable, ...]:
    """All tables, by name."""
    return tuple(load_table(name) for name in table_names())


@functools.cache
def load_table(name: str) -> CounterTable:
    """Read a table by its name.

    Raises:
        CounterError: for a name that does not exist, or a table that is wrong.
    """
    if name not in table_names():
        raise CounterError(
            f"no counter table is called {name!r}; there are {', '.join(table_names())}"
        )
    return _build(name, _merged(name, ()))


def table_for(
    *, name: str | None = None, chip: str | None = None, compute_capability: str | None = None
) -> CounterTable:
    """Choose the table for a processor; ``generic`` where none is for it.

    Args:
        name: a table by name; it must be for this processor, as far as that is known.
        chip: name in NVIDIA's counter library, e.g. ``GH100``; it decides before the other.
        compute_capability: e.g. ``9.0``.

    Raises:
        CounterError: for a name that does not exist or is for other processors.
    """
    fitting = _fitting(chip, compute_capability)
    if name is None:
        return fitting
    table = load_table(name)
    known = chip is not None or compute_capability is not None
    fits = (chip or "").upper() in table.chips or compute_capability in table.compute_capabilities
    if known and table.chips and not fits:
        raise CounterError(
            f"counter table {name!r} is for {', '.join(table.chips)} "
            f"(compute capability {', '.join(table.compute_capabilities)}), not for "
            f"{chip or 'compute capability'} {compute_capability or ''}".rstrip()
            + f"; the same counters mean something else there. Use {fitting.name!r}"
        )
    return table


def _fitting(chip: str | None, compute_capability: str | None) -> CounterTable:
    for table in tables():
        if chip is not None and chip.upper() in table.chips:
            return table
    # Turing parts with and without tensor cores share 7.5; the one with them comes first.
    for table in tables():
        if compute_capability in table.compute_capabilities:
            return table
    return load_table("generic")


@functools.cache
def _stems() -> frozenset[str]:
    folder = resources.files(__package__) / "tables"
    return frozenset(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


@functools.cache
def _read(stem: str) -> _File:
    if stem not in _stems():
        raise CounterError(f"there is no counter table file {stem!r}")
    text = (resources.files(__package__) / "tables" / f"{stem}.toml").read_text(encoding="utf-8")
    return _decode(text, stem)


def _decode(text: str, stem: str) -> _File:
    """Read the text of a table file; what no table has is an error, as is what is not TOML."""
    try:
        return msgspec.toml.decode(text, type=_File)
    except (msgspec.DecodeError, ValueError) as error:
        raise CounterError(f"counter table {stem}: {error}") from error


def _merged(stem: str, above: tuple[str, ...]) -> _File:
    """A file with all that it extends; what comes later replaces what came before."""
    if stem in above:
        raise CounterError(f"counter tables extend each other: {' -> '.join((*above, stem))}")
    own = _read(stem)
    whole = _File()
    for part in [*(_merged(parent, (*above, stem)) for parent in own.extends), own]:
        _lay_over(whole, part)
    whole.title, whole.chips = own.title, own.chips
    whole.compute_capabilities = own.compute_capabilities
    return whole


def _lay_over(whole: _File, part: _File) -> None:
    whole.half_weights = part.half_weights or whole.half_weights
    whole.sources = whole.sources | part.sources
    whole.notices = whole.notices | part.notices
    whole.evidence = part.evidence or whole.evidence
    whole.verified = whole.verified | part.verified
    refused = [column for columns in part.unavailable.values() for column in columns]
    new = {*part.quantity, *part.absent, *refused}
    whole.quantity = {c: e for c, e in whole.quantity.items() if c not in new} | part.quantity
    whole.absent = {c: m for c, m in whole.absent.items() if c not in new} | part.absent
    whole.unavailable = {
        code: [column for column in columns if column not in new]
        for code, columns in whole.unavailable.items()
    } | part.unavailable
    for column, entries in part.further.items():
        whole.quantity[column] = [*whole.quantity.get(column, []), *entries]


def _build(name: str, file: _File) -> CounterTable:
    quantities = {
        column: tuple(_alternative(entry, column, name, file) for entry in entries)
        for column, entries in file.quantity.items()
    }
    for column, meaning in file.absent.items():
        quantities[column] = (
            Alternative(
                formula=Formula.parse("0"), meaning=meaning, source=file.sources["catalogue"]
            ),
        )
    unavailable = {
        column: _notice(code, name, file)
        for code, columns in file.unavailable.items()
        for column in columns
    }
    for column in _COLUMN_NAMES:
        if (column in quantities) == (column in unavailable):
            raise CounterError(
                f"counter table {name}: column {column} must be defined or named as unavailable"
            )
    named = {*quantities, *unavailable, *(c for cs in file.evidence.values() for c in cs)}
    if unknown := named - {*_COLUMN_NAMES}:
        raise CounterError(f"counter table {name}: a run has no column {min(unknown)!r}")
    _check_verified(name, file)
    return CounterTable(
        name=name,
        title=file.title,
        chips=tuple(file.chips),
        compute_capabilities=tuple(file.compute_capabilities),
        half_weights=file.half_weights or "vendor",
        quantities=MappingProxyType({c: quantities[c] for c in _COLUMN_NAMES if c in quantities}),
        unavailable=MappingProxyType(unavailable),
        evidence=MappingProxyType({k: tuple(columns) for k, columns in file.evidence.items()}),
    )


def _alternative(entry: _Entry, column: str, name: str, file: _File) -> Alternative:
    if entry.source not in file.sources:
        raise CounterError(f"counter table {name}: {column} has unknown source {entry.source!r}")
    return Alternative(
        formula=Formula.parse(entry.formula),
        meaning=entry.meaning,
        source=file.sources[entry.source],
        verified_on=tuple(
            where
            for where, columns in file.verified.items()
            if entry.label and entry.label in columns.get(column, ())
        ),
        notice=_notice(entry.notice, name, file) if entry.notice else None,
        label=entry.label,
        half_weights=entry.half_weights,
    )


def _check_verified(name: str, file: _File) -> None:
    for columns in file.verified.values():
        for column, labels in columns.items():
            known = {entry.label for entry in file.quantity.get(column, ())}
            for label in labels:
                if label not in known:
                    raise CounterError(
                        f"counter table {name}: {column} has no alternative {label!r} to verify"
                    )


def _notice(code: str, name: str, file: _File) -> Notice:
    if code not in file.notices:
        raise CounterError(f"counter table {name}: no sentence for the notice {code!r}")
    return Notice(code=code, message=file.notices[code])
