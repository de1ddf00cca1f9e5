"""Meaning of names in a report: units of metrics, launch facts, attributes, NVTX domains.

The names themselves are data, in vocabulary.toml beside this module.
"""

import dataclasses
import fnmatch
import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources

from mansard.units import unit_factor


@dataclasses.dataclass(frozen=True, slots=True)
class TimeWords:
    """How times of ranges and whole graphs are told, and what they are worth.

    Attributes:
        added_s: what was in them beside the kernels, where it was measured.
        least_s: shorter ones are taken as unknown.
        times: patterns of counters that are times.
        cycles: patterns of counters that an SM clock can be made of.
        rates: those that are an SM clock.
    """

    added_s: float
    least_s: float
    times: tuple[str, ...]
    cycles: tuple[str, ...]
    rates: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """The data file, ready for look-ups.

    Attributes:
        units: pairs of a pattern of metric names, and the factor to the SI base unit.
        launch: vendor name of each launch fact (``device``, ``grid_x``, ``grid_size``); the one
            of ``graph`` is a shell pattern.
        times: what times of ranges and graphs are worth.
        device: per fact of a GPU, the attributes that say it, best first.
        chips: name of a chip by its id.
        library_domains: NVTX domains in which libraries open ranges for themselves.
    """

    units: tuple[tuple[re.Pattern[str], float], ...]
    launch: Mapping[str, str]
    times: TimeWords
    device: Mapping[str, tuple[str, ...]]
    chips: Mapping[int, str]
    library_domains: re.Pattern[str]


@functools.cache
def vocabulary() -> Vocabulary:
    """Load the data file, once."""
    text = resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Vocabulary(
        units=tuple(
            (_any_of(entry["names"]), unit_factor(entry["unit"])[0]) for entry in data["unit"]
        ),
        launch=data["launch"],
        times=TimeWords(
            added_s=float(data["times"]["added_s"]),
            least_s=float(data["times"]["least_s"]),
            times=tuple(data["times"]["times"]),
            cycles=tuple(data["times"]["cycles"]),
            rates=tuple(data["times"]["rates"]),
        ),
        device={fact: tuple(names) for fact, names in data["device"].items()},
        chips={int(number): name for number, name in data["chips"].items()},
        library_domains=_any_of(data["nvtx"]["library_domains"]),
    )


def si_factor(metric: str) -> float:
    """Factor from the stored value of a metric to its SI base unit; percent stays percent."""
    for pattern, factor in vocabulary().units:
        if pattern.match(metric):
            return factor
    return 1.0


def is_library_domain(domain: str) -> bool:
    """Whether a library opens ranges of this NVTX domain for itself."""
    return vocabulary().library_domains.match(domain.lower()) is not None


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))
