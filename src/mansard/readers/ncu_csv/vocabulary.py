"""Names of the columns of an Nsight Compute CSV, as data in vocabulary.toml beside this module."""

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from importlib import resources


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """The data file, ready for look-ups.

    Attributes:
        identity: title of the column by its role (``id``, ``process``, ``name``, ``grid``, ...).
        cell: titles of ``section``, ``metric``, ``unit`` and ``value`` of the long page.
        launch: metric by column of a capture, for launch facts without a column of their own.
        not_counters: prefixes of metrics that describe the machine.
        always_there: prefixes of metrics that ncu writes whatever was asked for.
        largest_value: a value beyond it is no count.
        no_value: spellings of "no value".
        display_name: attribute with the product name of the GPU.
    """

    identity: Mapping[str, str]
    cell: Mapping[str, str]
    launch: Mapping[str, str]
    not_counters: tuple[str, ...]
    always_there: tuple[str, ...]
    largest_value: float
    no_value: frozenset[str]
    display_name: str


@functools.cache
def vocabulary() -> Vocabulary:
    """Load the data file, once."""
    text = resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    counters = data["counters"]
    return Vocabulary(
        identity=data["identity"],
        cell=data["cell"],
        launch=data["launch"],
        not_counters=tuple(counters["not_counters"]),
        always_there=tuple(counters["always_there"]),
        largest_value=float(counters["largest_value"]),
        no_value=frozenset(counters["no_value"]),
        display_name=data["device"]["display_name"],
    )
