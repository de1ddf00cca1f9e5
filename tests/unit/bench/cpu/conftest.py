from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mansard.bench.cpu.processor import Cache, Processor
from mansard.bench.cpu.team import Timing

KIB = 1024
MIB = 1024**2


class ScriptedWorkload:
    """Takes the time that a script says: work per second, core clock and core share of each run.

    When the script is at its end its last line repeats.
    """

    def __init__(self, script: Iterable[tuple[float, float]], clock_hz: float = 3e9) -> None:
        self.script = list(script)
        self.clock_hz = clock_hz
        self.amounts: list[int] = []

    def run(self, amount: int) -> tuple[float, Timing]:
        rate, share = self.script[min(len(self.amounts), len(self.script) - 1)]
        self.amounts.append(amount)
        work = 1000.0 * amount
        return work, Timing(work / rate, self.clock_hz, share)


@pytest.fixture
def scripted() -> type[ScriptedWorkload]:
    return ScriptedWorkload


@pytest.fixture
def caches() -> Callable[[int], tuple[Cache, ...]]:
    """Caches of a small server: 48 KiB and 2 MiB for each core, 64 MiB for all."""

    def make(cores: int) -> tuple[Cache, ...]:
        own = [
            Cache(level, size, frozenset({cpu}))
            for cpu in range(cores)
            for level, size in ((1, 48 * KIB), (2, 2 * MIB))
        ]
        return (*own, Cache(3, 64 * MIB, frozenset(range(cores))))

    return make


@pytest.fixture
def server(caches: Callable[[int], tuple[Cache, ...]]) -> Processor:
    return Processor(
        name="Test(R) Server CPU @ 3.00GHz",
        architecture="x86_64",
        flags=frozenset({"avx", "avx2", "fma", "avx512f", "avx512_vnni"}),
        cpus=tuple(range(8)),
        cores=(0, 1, 2, 3),
        caches=caches(4),
        memory_bytes=32 * 1024 * MIB,
        memory_free_bytes=16 * 1024 * MIB,
    )


class System:
    """Files of /proc and /sys under a folder of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def cache(self, cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> None:
        folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
        for name, text in (
            ("level", str(level)),
            ("type", kind),
            ("size", size),
            ("shared_cpu_list", shared),
        ):
            self.write(f"{folder}/{name}", f"{text}\n")


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)
