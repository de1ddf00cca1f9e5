"""What the wide and the long page have in common: a table of launches, read in two steps."""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mansard.model.device import DeviceFacts
from mansard.readers.ncu_csv.numbers import Convention, Evidence
from mansard.readers.ncu_csv.part import Part
from mansard.readers.ncu_csv.vocabulary import vocabulary
from mansard.readers.wanted import first_counters

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A page with more columns is none of ncu's: all its counters in all forms are fewer.
MAX_COLUMNS = 20_000


class Page(abc.ABC):
    """The rows under one header, on their way to a table of launches."""

    def __init__(
        self,
        connection: "DuckDBPyConnection",
        part: Part,
        scratch: str,
        *,
        is_wanted: Callable[[str], bool],
    ) -> None:
        """Prepare to read.

        Args:
            connection: of the engine.
            part: the rows.
            scratch: start of the names of temporary tables.
            is_wanted: whether to read a counter of that name.
        """
        self.connection = connection
        self.part = part
        self.scratch = scratch
        self._is_wanted = is_wanted

    @abc.abstractmethod
    def is_usual(self) -> bool:
        """Whether no value contradicts the usual way to write numbers, point and commas."""

    @abc.abstractmethod
    def evidence(self) -> Evidence:
        """Look at all values for how the file writes numbers."""

    @abc.abstractmethod
    def select(self, convention: Convention) -> str:
        """SQL of the launches: ``seq`` (their order), the columns of a capture, counters.

        Args:
            convention: of the whole file.
        """

    @abc.abstractmethod
    def names(self) -> Sequence[str]:
        """Vendor names of all counters that the page has, read or not, in order."""

    @abc.abstractmethod
    def counters(self) -> dict[str, str | None]:
        """Those that are read, each with a sample of its text; None where all is empty."""

    @functools.cached_property
    def chosen(self) -> frozenset[str]:
        """Names of the counters to read."""
        return frozenset(first_counters(self._wanted))

    @property
    def left_out(self) -> int:
        """How many counters are wanted and not read, since they are too many."""
        return len(self._wanted) - len(self.chosen)

    @functools.cached_property
    def _wanted(self) -> list[str]:
        return [name for name in self.names() if self._is_wanted(name)]

    @abc.abstractmethod
    def unread(self, convention: Convention) -> tuple[int, str | None]:
        """How many numbers do not fit the convention, and one of them."""

    @abc.abstractmethod
    def devices(self) -> tuple[DeviceFacts, ...]:
        """The GPUs, in the order of their index."""

    def roles(self) -> dict[str, str]:
        """Text column of the part by its role, for the columns that are there."""
        found = ((role, self.part.header.role(role)) for role in vocabulary().identity)
        return {role: f"c{place}" for role, place in found if place is not None}


def is_counter(metric: str) -> bool:
    """Whether a metric belongs to the launch and not to the machine."""
    return not metric.startswith(vocabulary().not_counters)
