"""A part of a run: one phase or one rank of it."""

import dataclasses

from mansard import engine
from mansard.analysis.launches import Launches
from mansard.model.run import Run


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The launches of a run in one phase, on one rank, or both.

    Attributes:
        run: the whole.
        phase: only launches of this phase.
        rank: only launches of this rank.
    """

    run: Run
    phase: str | None = None
    rank: int | None = None

    @property
    def label(self) -> str:
        """What to call it."""
        which = [] if self.phase is None else [self.phase]
        which += [] if self.rank is None else [f"rank {self.rank}"]
        return f"{self.run.label} [{', '.join(which)}]" if which else self.run.label

    def of(self, launches: Launches) -> Launches:
        """Narrow the query of the whole run down to this part."""
        wanted = [] if self.phase is None else [f"phase = {engine.literal(self.phase)}"]
        wanted += [] if self.rank is None else [f"rank = {int(self.rank)}"]
        if not wanted:
            return launches
        narrow = f"SELECT * FROM ({launches.sql}) WHERE {' AND '.join(wanted)}"
        # How many launches are null is known of the whole only.
        return dataclasses.replace(launches, sql=narrow, alike={}, alike_nulls={})
