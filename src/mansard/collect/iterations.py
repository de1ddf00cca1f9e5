"""Where one iteration of a training loop ends, learned from the optimizers that step."""


class OptimizerCycle:
    """Finds the period in which the optimizers of a program take turns.

    One optimizer: every step ends an iteration. A GAN steps two in turn, some step one five times
    and then the other: the iteration is the whole cycle. The cycle is known once it was seen twice.
    """

    #: Longest cycle that is looked for; only this many steps are remembered.
    longest = 64

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._forgotten = 0

    @property
    def period(self) -> int | None:
        """Steps in one iteration; None while no period explains what was seen."""
        seen = self._steps
        for period in range(1, len(seen) // 2 + 1):
            if all(seen[i] == seen[i - period] for i in range(period, len(seen))):
                return period
        return None

    def step(self, optimizer: int) -> bool:
        """Note that an optimizer stepped; True when that ended an iteration.

        Args:
            optimizer: identity of the optimizer.
        """
        self._steps.append(optimizer)
        period = self.period
        ended = period is not None and len(self._steps) % period == 0
        if ended and period is not None and len(self._steps) >= 2 * self.longest:
            # Whole periods are dropped, so the position in the cycle stays.
            keep = self.longest // period * period
            self._forgotten += len(self._steps) - keep
            del self._steps[:-keep]
        return ended

    @property
    def seen(self) -> int:
        """All steps so far."""
        return self._forgotten + len(self._steps)
