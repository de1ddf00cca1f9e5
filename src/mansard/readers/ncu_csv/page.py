"""What the wide and the long page have in common: a table of launches, read in two steps."""

import abc
from typing import TYPE_CHECKING

from mansard.model.device import DeviceFacts
from mansard.readers.ncu_csv.numbers import Convention, Evidence
from mansard.readers.ncu_csv.part import Part
from mansard.readers.ncu_csv.vocabulary import vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A report with every metric of every section has about 3000.
MAX_COUNTERS = 20_000


class Page(abc.ABC):
    """The rows under one header, on their way to a table of launches."""

    def __init__(self, connection: "DuckDBPyConnection", part: Part, scratch: str) -> None:
        """Prepare to read.

        Args:
            connection: of the engine.
            part: the rows.
            scratch: start of the names of temporary tables.
        """
        self.connection = connection
        self.part = part
        self.scratch = scratch

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
    def counters(self) -> dict[str, str | None]:
        """Vendor names in order, each with a sample of its text; None where all is empty."""

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
