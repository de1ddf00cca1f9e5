"""Made-up runs whose truth is known: jobs of many ranks, and nights of one program.

``python benchmarks/synthetic_runs.py FOLDER --ranks 64 --launches 5000 --slow 7:1.15``

Names, shapes, times and counters are those of the shipped DeepCAM run, a real forward pass on a
V100, launched in its order, step after step (forward, then the same launches again as backward,
with an all-reduce after every ``CALL_EVERY`` of them). On that lie log-normal noise of each launch
and of each rank, and what a caller injects: slow ranks, and kernels that become slower. In an
all-reduce every rank waits for the slowest, as real ones do, so that a slow rank waits least.
"""

import argparse
import dataclasses
import datetime as dt
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mansard import engine
from mansard.demo import shipped_run
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Provenance
from mansard.store import write_run

SOURCE = "v100-deepcam-forward"
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
#: Launches of the backward pass between two all-reduces.
CALL_EVERY = 80
#: Time that the data of one all-reduce take.
MOVING_S = 300e-6
#: Time between two launches.
GAP_S = 1e-6
LAUNCH_NOISE = 0.02
RANK_NOISE = 0.004
TRAFFIC_NOISE = 0.01
RANKS_A_NODE = 8


@dataclasses.dataclass(frozen=True)
class Slow:
    """A slow rank: its launches take ``factor`` times as long.

    ``where``: ``all`` launches, or those with little work per byte of ``dram``; ``clock`` slows all
    and lowers the SM clock with them; ``work`` adds bytes and FLOP with the time.
    """

    rank: int
    factor: float
    where: str = "all"


@dataclasses.dataclass(frozen=True)
class Job:
    """A job of many ranks."""

    ranks: int
    launches: int
    seed: int = 0
    slow: Sequence[Slow] = ()
    #: Slower kernels: name and factor.
    kernels: Sequence[tuple[str, float]] = ()
    extra: dict[str, str] = dataclasses.field(default_factory=dict)
    created: str = ""


@dataclasses.dataclass(frozen=True)
class Regression:
    """A kernel that takes ``factor`` times as long from one night on (until another)."""

    kernel: str
    factor: float
    night: int
    until: int = 10**9


class Pool:
    """The launches that a step repeats."""

    def __init__(self, connection: Any) -> None:
        file = shipped_run(SOURCE).files[0]
        connection.execute(
            "CREATE OR REPLACE TABLE pool AS SELECT row_number() OVER (ORDER BY launch) - 1 AS k, "
            f"* FROM {engine.parquet([file])} ORDER BY launch"
        )
        columns = connection.execute(
            "SELECT name, duration_s, sm_clock_hz, bytes_dram, coalesce(flop_vector_fp32, 0) "
            "+ coalesce(flop_vector_fp16, 0) + coalesce(flop_tensor_fp16, 0) AS flop FROM pool "
            "ORDER BY k"
        ).fetchnumpy()
        self.names = np.asarray(columns["name"], dtype=object)
        self.duration_s = np.asarray(columns["duration_s"], dtype=float)
        self.dram = np.asarray(columns["flop"] < 10 * columns["bytes_dram"], dtype=bool)
        size = len(self.names)
        calls = np.arange(size) % CALL_EVERY == CALL_EVERY - 1
        # A step: every launch as forward; again as backward, with calls (-1) in between.
        backward: list[int] = []
        for k in range(size):
            backward.append(k)
            if calls[k]:
                backward.append(-1)
        self.step = np.array([*range(size), *backward])
        self.phase = np.array([0] * size + [1] * len(backward))


def write_nights(
    folder: Path, nights: int, launches: int, *, seed: int = 0, slower: Sequence[Regression] = ()
) -> None:
    """Write one run of one rank a night, each with the commit of its day."""
    start = dt.datetime(2026, 1, 1, 3, tzinfo=dt.UTC)
    for night in range(nights):
        job = Job(
            ranks=1,
            launches=launches,
            seed=seed + night,
            kernels=[(r.kernel, r.factor) for r in slower if r.night <= night < r.until],
            extra={"commit": hashlib.sha256(str(seed + night).encode()).hexdigest()[:40]},
            created=(start + dt.timedelta(days=night)).isoformat(timespec="seconds"),
        )
        write_job(folder / f"night{night:03d}", job)


def write_job(folder: Path, job: Job) -> None:
    """Write one run file a rank."""
    folder.mkdir(parents=True, exist_ok=True)
    with engine.connect(threads=1) as connection:
        pool = Pool(connection)
        place = np.arange(job.launches) % len(pool.step)
        k = pool.step[place]
        calls = np.flatnonzero(k < 0)
        work = np.stack(
            [_passed(_durations(pool, job, rank, k), calls) for rank in range(job.ranks)]
        )
        slowest = work.max(axis=0)
        for rank in range(job.ranks):
            duration_s = _durations(pool, job, rank, k)
            if len(calls):
                duration_s[calls] = MOVING_S + slowest - work[rank]
            _write(connection, folder, job, rank, place=place, pool=pool, duration_s=duration_s)


def _durations(pool: Pool, job: Job, rank: int, k: Any) -> Any:
    noise = np.random.default_rng([job.seed, rank])
    duration_s = np.where(k < 0, 0.0, pool.duration_s[k])
    duration_s = duration_s * np.exp(RANK_NOISE * noise.normal())
    duration_s *= np.exp(LAUNCH_NOISE * noise.normal(size=len(k)))
    for slow in job.slow:
        if slow.rank == rank:
            duration_s *= (
                np.where(pool.dram[k], slow.factor, 1.0) if slow.where == "dram" else slow.factor
            )
    for name, factor in job.kernels:
        duration_s *= np.where(pool.names[k] == name, factor, 1.0)
    return duration_s


def _passed(duration_s: Any, calls: Any) -> Any:
    """Compute time between calls."""
    if not len(calls):
        return np.zeros(0)
    total = np.concatenate([[0.0], np.cumsum(duration_s)])
    return np.diff(total[np.concatenate([[0], calls])])


def _write(
    connection: Any,
    folder: Path,
    job: Job,
    rank: int,
    *,
    place: Any,
    pool: Pool,
    duration_s: Any,
) -> None:
    k = pool.step[place]
    mine = {slow.where: slow.factor for slow in job.slow if slow.rank == rank}
    clock = 1 / mine.get("clock", 1.0)
    more = mine.get("work", 1.0)
    connection.register(
        "drawn",
        {
            "launch": np.arange(len(k)),
            "k": k,
            "step": np.arange(len(k)) // len(pool.step),
            "backward": pool.phase[place],
            "start_s": np.concatenate([[0.0], np.cumsum(duration_s + GAP_S)[:-1]]),
            "took_s": duration_s,
            "vary": 1
            + TRAFFIC_NOISE * np.random.default_rng([job.seed, rank, 1]).normal(size=len(k)),
        },
    )
    counted = [
        name
        for name in connection.execute("SELECT * FROM pool LIMIT 0").fetchnumpy()
        if name.startswith(("flop_", "op_", "bytes_"))
    ]
    # Work repeats exactly; traffic below L1 never does, since caches are shared.
    vary = {"bytes_l2": " * d.vary", "bytes_dram": " * d.vary"}
    counts = ", ".join(
        f"round(p.{name} * {more!r}::DOUBLE{vary.get(name, '')}) AS {name}" for name in counted
    )
    select = (
        f"SELECT 'node{rank // RANKS_A_NODE:04d}' AS host, {rank} AS rank, 1 AS process, "
        "0 AS device, "
        "d.step, d.launch, CASE WHEN d.k < 0 THEN 13 ELSE 7 END AS stream, 'kernel' AS kind, "
        f"coalesce(p.name, {engine.literal(COLLECTIVE)}) AS name, p.k % 977 + 1 AS grid_x, "
        "1 AS grid_y, 1 AS grid_z, 256 AS block_x, 1 AS block_y, 1 AS block_z, "
        "CASE d.backward WHEN 1 THEN 'backward' ELSE 'forward' END AS phase, d.start_s, "
        f"d.took_s AS duration_s, p.sm_clock_hz * {clock!r}::DOUBLE AS sm_clock_hz, {counts} "
        "FROM drawn d LEFT JOIN pool p ON p.k = d.k ORDER BY d.launch"
    )
    device = DeviceFacts(
        name="Tesla V100-SXM2-16GB", chip="GV100", compute_capability="7.0", sm_count=80
    )
    origin = Provenance(
        devices=(device,),
        collector="made up",
        created=job.created,
        extra={"rank": str(rank), **job.extra},
    )
    write_run(connection, select, origin, folder / f"rank{rank}.parquet")
    connection.unregister("drawn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--launches", type=int, default=5000, help="of each rank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", nargs="*", default=[], metavar="RANK:FACTOR[:WHERE]")
    given = parser.parse_args()
    slow = [part.split(":") for part in given.slow]
    write_job(
        given.folder,
        Job(
            ranks=given.ranks,
            launches=given.launches,
            seed=given.seed,
            slow=[Slow(int(s[0]), float(s[1]), *s[2:]) for s in slow],
        ),
    )


if __name__ == "__main__":
    main()
