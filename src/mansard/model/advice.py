"""One thing to do about a run, with the numbers that speak for it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to change, or what to look into.

    Attributes:
        rule: name of the rule that gives it, also its paragraph in docs/advice.md.
        sentence: what a colleague would say, numbers included.
        recoverable_s: time that the change can win at most, as far as the counters show; None
            where they do not say.
        kernels: keys of the kernels that it is about, longest first; empty for the whole run.
        evidence: the numbers behind the sentence, with units in their names.
    """

    rule: str
    sentence: str
    recoverable_s: float | None
    kernels: tuple[str, ...] = ()
    evidence: dict[str, float | str] = dataclasses.field(default_factory=dict)
