"""One thing to do about a run, with the numbers that speak for it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SecondFault:
    """Another thing to do about some of the kernels of an advice.

    Attributes:
        rule: name of the rule that would give it.
        kernels: keys of the kernels, longest first.
        recoverable_s: time that this change alone can win at most; of the time that the advice
            is about already, so that both must not be added.
    """

    rule: str
    kernels: tuple[str, ...]
    recoverable_s: float


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
        also: what else is the matter with some of its kernels, most time first.
    """

    rule: str
    sentence: str
    recoverable_s: float | None
    kernels: tuple[str, ...] = ()
    evidence: dict[str, float | str] = dataclasses.field(default_factory=dict)
    also: tuple[SecondFault, ...] = ()
