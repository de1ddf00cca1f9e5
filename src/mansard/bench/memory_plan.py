"""Which memory ceilings, latencies, launch costs and link tasks a GPU gets, and at which sizes."""

from collections.abc import Iterator
from typing import Literal

from mansard.bench.kernels import Variant
from mansard.bench.messages import Opened, Task
from mansard.bench.neighbour import NVLINK, UNKNOWN

_KIB = 1024
_MIB = 1024**2
_WORD = 16
#: Random data first: its run is the one whose result is checked.
_ARMS: tuple[Literal["low-toggle", "random"], ...] = ("random", "low-toggle")

#: Joint L1 and shared memory beyond the largest shared memory of an SM, from 8.0 on; 7.x has 32.
_L1_RESERVE = 28 * _KIB
#: Passes over a tile of shared memory in one iteration of the loop.
_PASSES = 4
#: 16-byte words a thread and tile, and threads of a block: what was best on some GPU.
_STREAM = {
    "read": ((16, 256), (8, 256), (4, 512)),
    "write": ((1, 1024), (2, 1024), (2, 512)),
    "copy": ((1, 512), (1, 256), (2, 512)),
    "triad": ((1, 1024), (1, 512), (2, 512)),
}
#: Rows of 16 bytes a thread in the sweep of the working set.
_SWEEP_ROWS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256)


def memory_tasks(opened: Opened) -> Iterator[Task]:
    """Bandwidth of every level, latency of every level, and the cost of a launch."""
    yield from _shared_tasks(opened)
    yield from _l1_tasks(opened)
    yield from _l2_tasks(opened)
    yield from _dram_tasks()
    yield from _latency_tasks(opened)
    for access in ("stream", "graph node", "synchronize"):
        yield Task(
            name=f"launch {access}",
            recipe="launch",
            kind="launch",
            unit="s",
            access=access,
            expected_s=0.2,
            remark={
                "stream": "of the GPU, with launches queued ahead; a host that is slower sets the "
                "pace itself",
                "graph node": "of a chain of nodes in one graph",
                "synchronize": "launch and wait, called from Python",
            }[access],
        )


def blocks_of(opened: Opened, threads: int) -> int:
    """Blocks of so many threads that fill an SM."""
    return max(1, int(opened.numbers.get("threads_per_sm", 2048)) // threads)


def _shared_tasks(opened: Opened) -> Iterator[Task]:
    room = int(opened.numbers.get("shared_per_sm_bytes", 96 * _KIB))
    two = blocks_of(opened, 1024) >= 2 and room >= 2 * 65 * _KIB
    geometries = [(1024, 2, 64)] if two else []
    geometries += [(1024, 1, 64 if room >= 65 * _KIB else 32)]
    for access in ("read", "write"):
        for arm in _ARMS:
            yield Task(
                name=f"shared {access} {arm}",
                recipe="shared",
                kind="bandwidth",
                level="shared",
                access=access,
                instruction="lds.128" if access == "read" else "sts.128",
                arm=arm,
                variants=tuple(
                    Variant(
                        source="shared.cu",
                        entry=f"shared_{access}",
                        macros=(
                            ("BYTES", str(size * _KIB)),
                            ("PASSES", str(_PASSES)),
                            ("THREADS", str(threads)),
                        ),
                        threads=threads,
                        blocks=blocks,
                        shared_bytes=size * _KIB,
                        carveout=100,
                        work=float(_PASSES * size * _KIB),
                        mnemonic="LDS(\\.U)?\\.128" if access == "read" else "STS\\.128",
                        count=_PASSES * size * _KIB // (_WORD * threads),
                    )
                    for threads, blocks, size in geometries
                ),
            )


def cache_variant(
    operator: str, *, blocks: int, rows: int, unroll: int, fixed: bool = False, entry: str = "read"
) -> Variant:
    """A kernel of ``cache.cu`` with blocks of 1 024 threads.

    Args:
        operator: ``ca`` or ``cg``.
        blocks: per SM.
        rows: of 16 KiB, of a block's part of the set.
        unroll: rows that are loaded before the first is used.
        fixed: compile the number of rows in, so that the loop over them is unrolled.
        entry: ``read``, or ``read_turns``: parts take turns.
    """
    return Variant(
        source="cache.cu",
        entry=f"cache_{entry}",
        macros=(
            ("OPERATOR", f'"{operator}"'),
            *((("ROWS", str(rows)),) if fixed else ()),
            ("THREADS", "1024"),
            ("UNROLL", str(unroll)),
        ),
        threads=1024,
        blocks=blocks,
        carveout=0,
        work=float(rows * 1024 * _WORD),
        rows=rows,
        mnemonic="LDG\\.E\\.128.*",
        count=rows if fixed else unroll,
    )


def _l2_variant(access: str, *, blocks: int, rows: int, unroll: int) -> Variant:
    """A kernel of ``l2.cu`` with blocks of 1 024 threads; see ``cache_variant``."""
    return Variant(
        source="l2.cu",
        entry=f"l2_{access}",
        macros=(("THREADS", "1024"), ("UNROLL", str(unroll))),
        threads=1024,
        blocks=blocks,
        carveout=0,
        work=float((2 if access == "copy" else 1) * rows * 1024 * _WORD),
        rows=rows,
        mnemonic="STG\\.E\\.128.*" if access == "write" else "LDG\\.E\\.128.*",
        count=unroll,
    )


def _l1_tasks(opened: Opened) -> Iterator[Task]:
    room = int(opened.numbers.get("shared_per_sm_bytes", 96 * _KIB)) + _L1_RESERVE
    rows = max(4, room * 3 // 4 // (1024 * _WORD) // 4 * 4)
    variants = [
        cache_variant("ca", blocks=1, rows=count, unroll=4, fixed=fixed)
        for count in dict.fromkeys((rows, max(4, rows - 4)))
        for fixed in (True, False)
    ]
    for arm in _ARMS:
        yield Task(
            name=f"l1 read {arm}",
            recipe="cache",
            kind="bandwidth",
            level="l1",
            access="read",
            instruction="ld.global.ca",
            arm=arm,
            variants=tuple(variants),
            expected_s=0.35,
        )


def _l2_tasks(opened: Opened) -> Iterator[Task]:
    l2 = int(opened.facts.l2_bytes or 0)
    sms = int(opened.facts.sm_count or 0)
    if not l2 or not sms:
        return
    for access in ("read", "write", "copy"):
        variants = tuple(_l2_variants(opened, access, l2, sms))
        for arm in _ARMS:
            yield Task(
                name=f"l2 {access} {arm}",
                recipe="l2",
                kind="bandwidth",
                level="l2",
                access=access,
                instruction={"read": "ld.global.cg", "write": "st.global"}.get(
                    access, "ld.cg, st.global"
                ),
                arm=arm,
                variants=variants,
                remark="each warp its own part of the set, so that no unit before L2 can merge "
                "requests; for equal times, not equal work",
            )
    yield Task(
        name="l2 halves",
        recipe="partition",
        kind=None,
        level="l2",
        variants=(
            Variant(
                source="partition.cu", entry="partition_time", macros=(("UNROLL", "2"),), threads=32
            ),
            Variant(
                source="partition.cu",
                entry="partition_read",
                macros=(("UNROLL", "2"),),
                threads=1024,
                shared_bytes=2048 * 2,
            ),
            *(
                cache_variant("cg", blocks=1, rows=rows, unroll=unroll, entry="read_turns")
                for rows, unroll in ((2, 2), (4, 4), (8, 4))
            ),
        ),
        expected_s=0.4,
    )


def _l2_variants(opened: Opened, access: str, l2: int, sms: int) -> Iterator[Variant]:
    """Sets of at most 0.85 and 0.45 of L2, as near as whole rows allow."""
    blocks = blocks_of(opened, 1024)
    row = sms * blocks * 1024 * _WORD
    sides = 2 if access == "copy" else 1
    for share in (0.85, 0.45):
        rows = int(share * l2 / (sides * row))
        for unroll in (4, 2) if rows >= 2 else (1,):
            fitting = rows // unroll * unroll
            if fitting:
                yield _l2_variant(access, blocks=blocks, rows=fitting, unroll=unroll)


def _dram_tasks() -> Iterator[Task]:
    streams = {"read": (1, 0), "write": (0, 1), "copy": (1, 1), "triad": (2, 1)}
    for arm in _ARMS:
        for access, (reads, writes) in streams.items():
            yield Task(
                name=f"dram {access} {arm}",
                recipe="stream",
                kind="bandwidth",
                level="dram",
                access=access,
                instruction={"read": "ld.global", "write": "st.global"}.get(
                    access, "ld, st.global"
                ),
                arm=arm,
                variants=tuple(
                    Variant(
                        source="stream.cu",
                        entry=f"stream_{access}",
                        macros=(("THREADS", str(threads)), ("UNROLL", str(unroll))),
                        threads=threads,
                        mnemonic="STG\\.E.*128.*" if access == "write" else "LDG\\.E.*128.*",
                        count=unroll * max(1, reads),
                    )
                    for unroll, threads in _STREAM[access]
                ),
                numbers={"streams": reads + writes, "reads": reads, "writes": writes},
                expected_s=0.25,
            )
        yield Task(
            name=f"dram copy memcpy {arm}",
            recipe="memcpy",
            kind="bandwidth",
            level="dram",
            access="copy",
            instruction="memcpy",
            arm=arm,
            expected_s=0.2,
        )


def _latency_tasks(opened: Opened) -> Iterator[Task]:
    l2 = int(opened.facts.l2_bytes or 4 * _MIB)
    quarter = 1 << ((l2 // 4).bit_length() - 1)
    for level, entry, operator, size in (
        ("shared", "chase_shared", "ca", 16 * _KIB),
        ("l1", "chase_global", "ca", 16 * _KIB),
        ("l2", "chase_global", "cg", quarter),
        ("dram", "chase_global", "cg", min(512 * _MIB, 32 * quarter)),
    ):
        yield Task(
            name=f"{level} latency",
            recipe="latency",
            kind="latency",
            unit="s",
            level=level,
            access="read",
            instruction="pointer chase",
            variants=(
                Variant(
                    source="chase.cu",
                    entry=entry,
                    macros=(("OPERATOR", f'"{operator}"'),),
                    threads=1,
                    carveout=0 if level != "shared" else None,
                ),
            ),
            numbers={"bytes": float(size)},
            expected_s=0.2,
        )


def sweep_tasks(opened: Opened) -> Iterator[Task]:
    """The curve of bandwidth over the size of the working set, with and without L1."""
    blocks = blocks_of(opened, 1024)
    for operator in ("ca", "cg"):
        yield Task(
            name=f"working set {operator}",
            recipe="working set",
            kind=None,
            variants=tuple(
                cache_variant(
                    operator,
                    blocks=blocks,
                    rows=rows,
                    unroll=4 if rows % 4 == 0 else 2 if rows % 2 == 0 else 1,
                )
                for rows in _SWEEP_ROWS
            ),
            expected_s=0.5,
        )


def link_tasks(opened: Opened) -> Iterator[Task]:
    """Transfers to the host (unless memory is shared with it) and to a neighbouring GPU."""
    if opened.numbers.get("integrated"):
        return
    generation, width = (
        int(opened.numbers.get(f"pcie_{key}", 0)) for key in ("generation", "width")
    )
    pcie = f"PCIe {generation}.0 x{width}" if generation else "host"
    ends = [(pcie, -1.0)]
    if "peer" in opened.numbers:
        name = NVLINK if opened.numbers.get("peer_is_nvlink") else UNKNOWN
        ends.append((name, opened.numbers["peer"]))
    for instruction, peer in ends:
        for access in ("read", "write", "copy"):
            yield Task(
                name=f"link {access} {instruction}",
                recipe="link",
                kind="bandwidth",
                level="link",
                access=access,
                instruction=instruction,
                arm="random",
                numbers={"peer": peer},
                expected_s=0.7,
                remark={
                    "read": "towards this GPU, by a copy engine",
                    "write": "away from this GPU, by a copy engine",
                    "copy": "both directions at once, added up, by copy engines",
                }[access],
            )
