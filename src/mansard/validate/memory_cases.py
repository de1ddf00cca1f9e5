"""Cases of known traffic: streams, what stays in L2 or L1, shared memory, and bulk copies.

Sizes are chosen so that what happens once (filling a cache or a tile) is far below the tolerance.
"""

from collections.abc import Iterator

from mansard.bench.kernels import Variant
from mansard.validate.cases import (
    Buffer,
    Case,
    Expected,
    KernelLaunch,
    Lacking,
    Number,
    almost_none,
    between,
    bytes_of,
    exactly,
    no_other_work,
)

_NULL = Number(0, "address")
#: Elements of a stream, of 8 bytes; more where L2 holds more than an eighth of them.
_ELEMENTS = 1 << 26
_L2_TIMES = 8
_WORD = 16

_STREAM_THREADS, _STREAM_UNROLL = 256, 4
_SET_THREADS, _SET_ROWS = 512, 2
_L2_PASSES, _L1_PASSES = 512, 2048
_OWN = "mansard.validate:own.cu"
_OWN_ROWS = 2 * _SET_ROWS
_TILE, _TILE_PASSES, _TILE_ITERATIONS = 32 * 1024, 4, 256
_CHUNK = 32 * 1024
_BULK = "mansard.validate:bulk.cu"
_BULK_NAMES = ("bulk copy", "bulk multicast")
#: More than half of the shared memory of an SM (228 KiB where there are clusters): two blocks of a
#: cluster on one SM would make the TMA unit ask L2 again for each of them.
_ALONE = 120 * 1024

_RESIDENT = "a set far smaller than L2 is read {times} times: device memory gives it once at most"
_MERGED = (
    "the {warps} warps of a block read the same lines, and requests for a line that is on its way "
    "already may be answered together, at best those of all warps"
)
_ONCE = "{arrays} of {size} bytes, each byte once"
_STEADY = "; the launch before leaves as many dirty lines in L2 as this one"
_TAGS = ", all through the tag stage"


def stream_bytes(l2_bytes: int) -> int:
    """Bytes of each array of a stream."""
    size = 8 * _ELEMENTS
    while size < _L2_TIMES * l2_bytes:
        size *= 2
    return size


def memory_cases(
    capability: tuple[int, int], sms: int, *, l2_bytes: int, free_bytes: int
) -> Iterator[Case | Lacking]:
    """Every level with traffic that is known.

    Args:
        capability: compute capability.
        sms: multiprocessors.
        l2_bytes: size of the L2 cache.
        free_bytes: device memory that may be used.
    """
    size = stream_bytes(l2_bytes)
    if free_bytes < 4 * size:
        why = f"three arrays of {size} bytes do not fit into {free_bytes} bytes of free memory"
        names = ("copy", "add", "fill", "read", *_BULK_NAMES)
        yield from (Lacking(name, why) for name in names)
    else:
        yield from _streams(sms, size)
    yield from _l2_resident(sms)
    yield _l1_resident(sms)
    yield from _shared(sms)
    if free_bytes >= 4 * size:
        yield from _bulk(capability, sms, size)


def _streams(sms: int, size: int) -> Iterator[Case]:
    """Reads last: they leave nothing in L2 that must be written back later."""
    a, b, c = (Buffer(name, size) for name in "abc")
    copy = _traffic(read=1, written=1, size=size)
    yield _stream("copy", "stream_copy", sms, ((b, b, c), (a, a, b)), copy)
    add = _traffic(read=2, written=1, size=size)
    flop = exactly(
        "flop_vector_fp64", 2.0 * (size // 8), f"one multiply-add for each of {size // 8} doubles"
    )
    yield _stream(
        "add", "stream_triad", sms, ((b, c, a), (a, b, c)), (*add, flop), "flop_vector_fp64"
    )
    fill = _traffic(read=0, written=1, size=size)
    yield _stream("fill", "stream_write", sms, ((a, a, b), (a, a, c)), fill)
    read = _traffic(read=1, written=0, size=size)
    yield _stream("read", "stream_read", sms, ((c, c, c), (b, b, c), (a, b, c)), read)


def _traffic(*, read: int, written: int, size: int) -> tuple[Expected, ...]:
    total = float((read + written) * size)
    arrays = f"{read + written} array{'s' if read + written > 1 else ''}"
    why = _ONCE.format(arrays=arrays, size=size)
    return (
        bytes_of("l1", total, why + _TAGS),
        bytes_of("l2", total, why),
        bytes_of("dram", total, why + _STEADY),
        _part("dram_read", read * size, total, why),
        _part("dram_write", written * size, total, why + _STEADY),
        almost_none("shared", total, "the kernel uses no shared memory"),
    )


def _part(level: str, value: int, total: float, why: str) -> Expected:
    if value:
        return bytes_of(level, float(value), why)
    return almost_none(level, total, "the kernel has none")


def _stream(
    name: str,
    entry: str,
    sms: int,
    buffers: tuple[tuple[Buffer, Buffer, Buffer], ...],
    expected: tuple[Expected, ...],
    *work: str,
) -> Case:
    """The last of ``buffers`` is counted, the others run before."""
    variant = Variant(
        source="stream.cu",
        entry=entry,
        macros=(("THREADS", str(_STREAM_THREADS)), ("UNROLL", str(_STREAM_UNROLL))),
        threads=_STREAM_THREADS,
        blocks=8,
        mnemonic=f"{'STG' if name == 'fill' else 'LDG'}\\.E.*128.*",
        count=_STREAM_UNROLL * (2 if name == "add" else 1),
    )
    tiles = Number(buffers[-1][0].size // (_WORD * _STREAM_THREADS * _STREAM_UNROLL))
    *before, launch = (
        KernelLaunch(variant=variant, blocks=sms * variant.blocks, arguments=(*three, _NULL, tiles))
        for three in buffers
    )
    return Case(
        name=name,
        group="memory",
        launch=launch,
        before=tuple(before),
        expected=(
            *expected,
            no_other_work(*work, threads=launch.blocks * _STREAM_THREADS),
        ),
    )


def _set_kernel(operator: str, sms: int, passes: int) -> tuple[KernelLaunch, float, float]:
    """Each block reads its own part of a set again and again: launch, bytes read, the set."""
    variant = Variant(
        source="cache.cu",
        entry="cache_read",
        macros=(
            ("OPERATOR", f'"{operator}"'),
            ("THREADS", str(_SET_THREADS)),
            ("UNROLL", str(_SET_ROWS)),
        ),
        threads=_SET_THREADS,
        mnemonic="LDG\\.E\\.128.*",
        count=_SET_ROWS,
    )
    size = sms * _SET_THREADS * _SET_ROWS * _WORD
    launch = KernelLaunch(
        variant=variant,
        blocks=sms,
        arguments=(
            Buffer("a", size),
            _NULL,
            Number(_SET_ROWS, "int32"),
            Number(passes, "int32"),
        ),
    )
    return launch, float(size * passes), float(size)


def _own_kernel(sms: int) -> tuple[KernelLaunch, float, float]:
    """Each warp reads lines of its own again and again: launch, bytes read, the set."""
    variant = Variant(
        source=_OWN,
        entry="own_read",
        macros=(("THREADS", str(_SET_THREADS)), ("UNROLL", str(_SET_ROWS))),
        threads=_SET_THREADS,
        mnemonic="LDG\\.E\\.128.*",
        count=_SET_ROWS,
    )
    size = sms * _SET_THREADS * _OWN_ROWS * _WORD
    launch = KernelLaunch(
        variant=variant,
        blocks=sms,
        arguments=(
            Buffer("a", size),
            _NULL,
            Number(_OWN_ROWS, "int32"),
            Number(_L2_PASSES * _OWN_ROWS // _SET_ROWS, "int32"),
        ),
    )
    return launch, float(size * _L2_PASSES), float(size)


def _l2_resident(sms: int) -> Iterator[Case]:
    for name, kernel, least, told in (
        ("L2-resident read", _own_kernel(sms), 1, "each warp reads lines of its own"),
        (
            "L2-resident read, lines shared",
            _set_kernel("cg", sms, _L2_PASSES),
            _SET_THREADS // 32,
            _MERGED.format(warps=_SET_THREADS // 32),
        ),
    ):
        launch, total, size = kernel
        why = f"{_L2_PASSES} passes over {size:.0f} bytes, with loads that do not stay in L1"
        yield Case(
            name=name,
            group="memory",
            launch=launch,
            expected=(
                bytes_of("l1", total, why + _TAGS),
                between("l2", total / least, total, f"{why}; {told}"),
                almost_none("dram", total, _RESIDENT.format(times=_L2_PASSES)),
                no_other_work(threads=sms * _SET_THREADS),
            ),
        )


def _l1_resident(sms: int) -> Case:
    launch, total, size = _set_kernel("ca", sms, _L1_PASSES)
    why = f"{_L1_PASSES} passes over {size:.0f} bytes"
    once = f"{size / sms:.0f} bytes a block stay in L1: L2 gives them once"
    return Case(
        name="L1-resident read",
        group="memory",
        launch=launch,
        expected=(
            bytes_of("l1", total, why + _TAGS),
            almost_none("l2", total, once),
            almost_none("dram", total, once),
            almost_none("shared", total, "the kernel uses no shared memory"),
            no_other_work(threads=sms * _SET_THREADS),
        ),
    )


def _shared(sms: int) -> Iterator[Case]:
    """Accesses of 16 bytes by consecutive threads: 4 wavefronts of 128 bytes a warp."""
    for name, entry in (("shared read", "shared_read"), ("shared write", "shared_write")):
        variant = Variant(
            source="shared.cu",
            entry=entry,
            macros=(
                ("BYTES", str(_TILE)),
                ("PASSES", str(_TILE_PASSES)),
                ("THREADS", "256"),
            ),
            threads=256,
            shared_bytes=_TILE,
            mnemonic="LDS(\\.U)?\\.128" if entry == "shared_read" else "STS\\.128",
            count=_TILE_PASSES * _TILE // (256 * _WORD),
        )
        moved = _TILE * _TILE_PASSES * _TILE_ITERATIONS
        total = float(sms * moved)
        yield Case(
            name=name,
            group="memory",
            launch=KernelLaunch(
                variant=variant,
                blocks=sms,
                arguments=(
                    Buffer("a", sms * _TILE),
                    _NULL,
                    Number(_TILE_ITERATIONS, "int32"),
                ),
            ),
            expected=(
                bytes_of(
                    "shared",
                    total,
                    f"{sms} blocks x {moved} bytes in accesses without bank conflicts; the tile "
                    "itself is filled or read back once",
                ),
                almost_none("l1", total, "the tile is read from memory once at most"),
                no_other_work(threads=sms * variant.threads),
            ),
        )


def _bulk(capability: tuple[int, int], sms: int, size: int) -> Iterator[Case | Lacking]:
    """TMA copies into shared memory; they do not pass the tag stage of the L1."""
    if capability < (9, 0):
        why = f"compute capability {capability[0]}.{capability[1]} has no bulk copies (TMA)"
        yield from (Lacking(name, why) for name in _BULK_NAMES)
        return
    chunks = Number(size // _CHUNK)
    why = f"{chunks.value} bulk copies of {_CHUNK} bytes, each byte once"
    yield _bulk_case("bulk copy", sms * 4, size, _received(size, 1, why))
    if capability >= (12, 0):
        yield Lacking("bulk multicast", "clusters of this chip have one block")
        return
    why += " into both blocks of a cluster"
    yield _bulk_case("bulk multicast", sms // 2 * 2, size, _received(size, 2, why))


def _received(size: int, receivers: int, why: str) -> tuple[Expected, ...]:
    sm_side = "; the L1 level counts what arrives" + (" at each block" if receivers > 1 else "")
    return (
        bytes_of("l1", float(receivers * size), why + sm_side),
        bytes_of("l2", float(size), why + ("; L2 gives it once" if receivers > 1 else "")),
        bytes_of("dram", float(size), why),
        no_other_work(),
    )


def _bulk_case(name: str, blocks: int, size: int, expected: tuple[Expected, ...]) -> Case:
    multicast = name == "bulk multicast"
    macros = (("CHUNK", str(_CHUNK)), *((("MULTICAST", "1"),) if multicast else ()))
    variant = Variant(
        source=_BULK,
        entry="bulk_multicast" if multicast else "bulk_read",
        macros=macros,
        feature=multicast,
        threads=32,
        shared_bytes=_ALONE if multicast else _CHUNK,
        mnemonic=r"UBLKCP\.S\.G\.MULTICAST" if multicast else r"UBLKCP\.S\.G",
        count=1,
    )
    *before, launch = (
        KernelLaunch(
            variant=variant,
            blocks=blocks,
            arguments=(Buffer(array, size), _NULL, Number(size // _CHUNK)),
        )
        for array in ("b", "c", "a")
    )
    return Case(name=name, group="bulk", launch=launch, before=tuple(before), expected=expected)
