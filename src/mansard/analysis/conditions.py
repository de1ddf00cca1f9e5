"""Whether two runs were recorded alike, so that their numbers can be compared."""

from collections.abc import Iterable, Iterator, Sequence

from mansard.model.provenance import Provenance

#: What must agree, and how to call it.
_CONDITIONS = (
    ("clock_control", "clock control"),
    ("cache_control", "cache control"),
    ("counter_table", "counter table"),
)


def unlike(a: Sequence[Provenance], b: Sequence[Provenance]) -> tuple[str, ...]:
    """Conditions in which two runs differ, one phrase each.

    Not recorded on one side is no difference: nobody knows.
    """
    found = list(_differ("GPU", _gpus(a), _gpus(b)))
    for attribute, word in _CONDITIONS:
        found += _differ(word, _values(a, attribute), _values(b, attribute))
    return tuple(found)


def unlike_definitions(a: Sequence[Provenance], b: Sequence[Provenance]) -> tuple[str, ...]:
    """Columns that both runs have, made by different formulas."""
    formulas_a, formulas_b = _formulas(a), _formulas(b)
    return tuple(
        column
        for column in formulas_a
        if column in formulas_b and formulas_a[column] != formulas_b[column]
    )


def _differ(word: str, a: frozenset[str], b: frozenset[str]) -> Iterator[str]:
    if a and b and a != b:
        yield f"{word}: {', '.join(sorted(a))} against {', '.join(sorted(b))}"


def _values(origins: Iterable[Provenance], attribute: str) -> frozenset[str]:
    found = (getattr(origin, attribute) for origin in origins)
    return frozenset(value for value in found if value)


def _gpus(origins: Iterable[Provenance]) -> frozenset[str]:
    devices = (device for origin in origins for device in origin.devices)
    return frozenset(device.name for device in devices if device.name)


def _formulas(origins: Iterable[Provenance]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for origin in origins:
        for column, definition in origin.definitions.items():
            # Line breaks and indentation of a table do not change what it says.
            found.setdefault(column, set()).add(" ".join(definition.formula.split()))
    return {column: frozenset(formulas) for column, formulas in found.items()}
