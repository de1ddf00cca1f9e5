"""The names of vocabulary.toml."""

import dataclasses
import functools
import re
import tomllib
from importlib import resources


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """The data file, ready for use.

    Attributes:
        collectives: expressions for kernels that wait for other ranks.
        shared_bytes: metric with the dynamic shared memory of a block, in bytes.
        passes: metric with the number of passes of a launch.
        needs: by option of ncu, what it is needed for.
    """

    collectives: tuple[str, ...]
    shared_bytes: str
    passes: str
    needs: dict[str, str]


@functools.cache
def vocabulary() -> Vocabulary:
    """Load the data file, once."""
    text = resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Vocabulary(
        collectives=tuple(data["collectives"]["names"]),
        shared_bytes=data["launch"]["shared_bytes"],
        passes=data["launch"]["passes"],
        needs=data["needs"],
    )


def is_collective(name: str) -> bool:
    """Whether a kernel waits for kernels of other ranks, as far as its name tells."""
    return re.search("|".join(vocabulary().collectives), name) is not None
