"""A run: Parquet files of launches, one per rank, and where they come from."""

import dataclasses

from mansard.location import File
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A recorded program.

    Attributes:
        files: Parquet files with the columns of ``model.columns.RUN_COLUMNS``, local or at a URL.
        provenance: origin of each file, in the same order.
        notices: what was found while opening (unreadable files of a folder, ...), beside the
            notices that each file's provenance carries.
        label: what to call it, usually the name of the file or folder given.
        owner: keeps the temporary folder of an imported run alive; not part of its value.
    """

    files: tuple[File, ...]
    provenance: tuple[Provenance, ...]
    notices: tuple[Notice, ...] = ()
    label: str = ""
    owner: object = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def all_notices(self) -> tuple[Notice, ...]:
        """Notices of opening and of every file, each once, in order."""
        found = [*self.notices, *(n for origin in self.provenance for n in origin.notices)]
        return tuple(dict.fromkeys(found))

    @property
    def partial(self) -> bool:
        """Whether some of the input could not be read."""
        return any(notice.partial for notice in self.all_notices)
