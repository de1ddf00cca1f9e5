"""What a run of many ranks shows beside its sums: spread, stragglers, waiting. All values SI."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a time differs over ranks, in terms that a few odd ranks do not move.

    Attributes:
        count: ranks (or nodes) with a value.
        least: smallest value.
        median: the usual one.
        most: largest value.
        deviation: 1.4826 times the median absolute deviation, which estimates a standard
            deviation.
    """

    count: int
    least: float
    median: float
    most: float
    deviation: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankTime:
    """One rank.

    Attributes:
        rank: its number.
        host: name of its node; None where it was not recorded.
        launches: number of launches.
        duration_s: time of all its launches.
        compute_s: time of those that are no collectives.
        collective_s: time of the collectives, waiting included.
        ratio: compute time over the median of the ranks.
        score: robust z-score of the compute time; None with too few ranks to judge.
        exposed_s: time in which nothing but collectives ran; None without start times.
        last_share: share of the matched collectives that this rank entered last, that is, spent
            the least time in; None without matched collectives.
    """

    rank: int
    host: str | None
    launches: int
    duration_s: float
    compute_s: float
    collective_s: float
    ratio: float | None
    score: float | None
    exposed_s: float | None = None
    last_share: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlowKernel:
    """A kernel that takes a rank longer than the others.

    Attributes:
        key: name of the kernel.
        excess_s: its time above the median of the ranks.
        ratio: its mean time per launch over the median of the ranks.
        bound: resource with its largest floor over all ranks; None without a machine.
    """

    key: str
    excess_s: float
    ratio: float | None
    bound: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank whose compute time is beyond what the spread of the others explains.

    Attributes:
        rank: its number.
        host: name of its node, if recorded.
        excess_s: compute time above the median of the ranks.
        ratio: compute time over that median.
        score: robust z-score.
        cause: ``more work``, ``lower clock``, ``slower`` or ``slower at <resource>``.
        counts: ratio to the median of the ranks of ``launches``, ``flop``, ``bytes_dram`` and
            ``sm_clock_hz``, each as far as it was collected.
        by_bound: per resource that bounds kernels, their time over what the other ranks need
            for as many launches.
        kernels: what takes it longer, largest excess first.
    """

    rank: int
    host: str | None
    excess_s: float
    ratio: float
    score: float
    cause: str
    counts: dict[str, float]
    by_bound: dict[str, float]
    kernels: tuple[SlowKernel, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The ranks of one host.

    Attributes:
        host: its name.
        ranks: how many ranks ran there.
        compute_s: median of their compute times.
        ratio: that over the median of the nodes.
        score: robust z-score; None with too few nodes to judge.
        stragglers: how many of its ranks are stragglers.
        slow: whether the whole node is beyond the spread of the others.
    """

    host: str
    ranks: int
    compute_s: float
    ratio: float | None
    score: float | None
    stragglers: int
    slow: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """How unevenly a phase is spread over the ranks, collectives left out.

    Attributes:
        phase: its name; None for launches outside any.
        ranks: ranks that have it.
        mean_s: mean over the ranks.
        most_s: the slowest rank.
        slowest: which rank that is.
        share: ``most_s / mean_s - 1``, 0 for perfect balance.
    """

    phase: str | None
    ranks: int
    mean_s: float
    most_s: float
    slowest: int
    share: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """All launches of one kind of collective, matched over the ranks.

    Attributes:
        key: name of the kernel.
        calls: collective operations that all its ranks took part in.
        ranks: ranks (times GPUs of each) that take part in one.
        moving_s: the least time of each call, once for every rank: what the data take.
        waiting_s: the rest of the ranks' time in these calls.
        unmatched_s: time of launches without a counterpart on every rank.
    """

    key: str
    calls: int
    ranks: int
    moving_s: float
    waiting_s: float
    unmatched_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The ranks of a run side by side.

    Attributes:
        compute: spread of the compute time over ranks.
        ranks: by number.
        stragglers: largest excess first.
        nodes: slowest first; empty where hosts were not recorded.
        phases: as in the analysis.
        collectives: longest first.
        exposed_s: time in which nothing but collectives ran, summed over ranks; None without
            start times.
        unjudged: why no rank was called a straggler or not; None if they were judged.
        gaps: what could not be said, and what it would need.
    """

    compute: Spread
    ranks: tuple[RankTime, ...]
    stragglers: tuple[Straggler, ...]
    nodes: tuple[Node, ...]
    phases: tuple[Imbalance, ...]
    collectives: tuple[Collective, ...]
    exposed_s: float | None
    unjudged: str | None = None
    gaps: tuple[str, ...] = ()
