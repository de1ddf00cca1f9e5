"""A report as blocks, from which Markdown and the HTML page are written. Text is plain text."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Heading:
    """A title; level 1 is that of the whole."""

    text: str
    level: int = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences.

    Attributes:
        text: the sentences.
        strong: whether they must not be overlooked.
    """

    text: str
    strong: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows of text.

    Attributes:
        head: one entry a column.
        rows: of as many entries.
        words: number of columns on the left that hold words; the others hold numbers.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1

    def __post_init__(self) -> None:
        """Refuse a row that does not fit."""
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError("a row of a table has not as many entries as its head")


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """A picture.

    Attributes:
        file: its path below the folder of the report.
        text: what it shows, also for those who do not see it.
    """

    file: str
    text: str


Block = Heading | Paragraph | Items | Table | Figure
Blocks = Sequence[Block]
